"""What a shift is: the mean of the inputs as a sequence over steps."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike


class Shift(NamedTuple):
    """A mean sequence, made by one of the factories of `resonance_jax.shifts`.

    `init` draws the state, once per run; `means` then yields the means of consecutive blocks of steps. A shift without
    memory carries `()`. A mean of shape (1,) moves every input of the problem alike.
    """

    init: Callable[[Array], Any]  # key -> state
    means: Callable[[Array, Array, Any], tuple[Array, Any]]  # key, steps k (block,), state -> means (block, dim), state
    spread: ArrayLike = 0.0  # variance that the mean of each single sample adds: a mean that is new for every sample
    period: Array | None = None  # in steps, inf where the mean stands still; None: not periodic
    profile: Callable[[Array], Array] | None = None  # phase in [0, 1) -> mean (dim,); all that theory needs


def phase_after(k: Array, f: Array) -> Array:
    """Phase f k mod 1 in [0, 1) after k steps at frequency f, in turns.

    The phase is an unsigned integer fraction of a turn, which wraps by itself: no error grows with k, where `f * k` in
    float32 is off by a thousandth of a turn after 10^6 steps and by a tenth after 10^8.

    >>> float(phase_after(jnp.int32(2 * 10**9 + 1), jnp.float32(0.25)))
    0.25
    """
    info = jnp.finfo(f.dtype)
    integer = jnp.dtype(f"uint{info.bits}")
    turn_per_step = (f * 2.0**info.bits).astype(integer)
    leading = (k.astype(integer) * turn_per_step) >> (info.bits - info.nmant - 1)  # as many bits as a float holds
    return leading.astype(f.dtype) * 2.0 ** -(info.nmant + 1)


def periodic(f: Array, profile: Callable[[Array], Array]) -> Shift:
    """The memoryless shift whose mean at step k is `profile(f k mod 1)`."""

    def means(key: Array, k: Array, state: tuple[()]) -> tuple[Array, tuple[()]]:
        return jax.vmap(lambda one: profile(phase_after(one, f)))(k), state

    period = jnp.where(f > 0, 1 / jnp.where(f > 0, f, 1), jnp.inf)
    return Shift(init=lambda key: (), means=means, period=period, profile=profile)
