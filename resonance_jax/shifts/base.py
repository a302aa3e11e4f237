"""What a shift is: the mean of the inputs as a sequence over steps."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks


class Redrawn(NamedTuple):
    """Law of a mean that is drawn anew from N(0, variance I) now and then, and stands in between."""

    interval: Array  # (), steps between two draws; 0: the iid baseline, the variance is in `Shift.spread`
    variance: Array  # (), of each entry
    dim: int  # entries drawn


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
    stationary: Callable[[Array, Any], Array] | None = None  # key, state -> one mean (dim,) of the law it visits
    straight: bool = False  # whether `profile` stays on a line through 0: theory then follows one input for all
    redrawn: Redrawn | None = None  # the law of a mean that is drawn anew, for theory
    iid_spread: ArrayLike = 0.0  # variance that the iid baseline, of mean 0, adds to the inputs


@jax.custom_jvp
def phase_after(k: Array, f: Array) -> Array:
    """Phase f k mod 1 in [0, 1) after k steps at frequency f, in turns.

    The phase is an unsigned integer fraction of a turn, which wraps by itself: no error grows with k, where `f * k` in
    float32 is off by a thousandth of a turn after 10^6 steps and by a tenth after 10^8.

    >>> float(phase_after(jnp.int32(2 * 10**9 + 1), jnp.float32(0.25)))
    0.25
    """
    info = jnp.finfo(f.dtype)
    integer = jnp.dtype(f"uint{info.bits}")
    k = k.astype(integer)
    turns = f * 2.0**info.bits
    whole = jnp.floor(turns)
    rest = ((turns - whole) * 2.0**info.bits).astype(integer)  # what a small f has beyond the last bit of a turn
    phase = k * whole.astype(integer) + _high_half(k, rest, info.bits // 2)
    leading = phase >> (info.bits - info.nmant - 1)  # as many bits as a float holds
    return leading.astype(f.dtype) * 2.0 ** -(info.nmant + 1)


@phase_after.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Any, Array]) -> tuple[Array, Array]:
    """An integer has no derivative, the phase has: k."""
    k, f = primals
    return phase_after(k, f), k.astype(f.dtype) * tangents[1]


def _high_half(a: Array, b: Array, half: int) -> Array:
    """Upper half of the bits of a * b, up to 2 in its last place; `half` is half the bits of the integers."""
    mask = (1 << half) - 1
    return (a >> half) * (b >> half) + ((a >> half) * (b & mask) >> half) + ((a & mask) * (b >> half) >> half)


def resting(spread: ArrayLike = 0.0) -> Shift:
    """No shift: a mean of 0 at every step, of inputs whose variance is larger by `spread`.

    >>> resting().means(None, jnp.arange(2), ())[0].tolist()
    [[0.0], [0.0]]
    """
    dtype = jnp.result_type(float)
    return Shift(
        init=lambda key: (),
        means=lambda key, k, state: (jnp.zeros((k.shape[0], 1), dtype), state),
        spread=spread,
        period=jnp.asarray(jnp.inf, dtype),
        profile=lambda phase: jnp.zeros((1,), dtype),
        stationary=lambda key, state: jnp.zeros((1,), dtype),
        straight=True,
        iid_spread=spread,
    )


def periodic(f: ArrayLike, profile: Callable[[Array], Array], *, straight: bool = False) -> Shift:
    """The shift without memory whose mean at step k is `profile(f k mod 1)`; f = 0 is the iid baseline, mean 0.

    Args:
        f: frequency in turns per step, in [0, 0.5].
        profile: phase in [0, 1) -> mean (dim,).
        straight: whether the mean of several inputs stays on a line through 0, which makes theory faster.
    """
    checks.between("f", f, 0, 0.5, "give a frequency in turns per step; a period of T steps is f = 1/T")
    f = jnp.asarray(f, jnp.result_type(float))
    moving = f > 0

    def means(key: Array, k: Array, state: tuple[()]) -> tuple[Array, tuple[()]]:
        return jax.vmap(lambda one: jnp.where(moving, profile(phase_after(one, f)), 0))(k), state

    def stationary(key: Array, state: tuple[()]) -> Array:
        return jnp.where(moving, profile(jax.random.uniform(key, (), f.dtype)), 0)

    period = jnp.where(moving, 1 / jnp.where(moving, f, 1), jnp.inf)
    return Shift(
        init=lambda key: (),
        means=means,
        period=period,
        profile=profile,
        stationary=stationary,
        straight=straight,
    )
