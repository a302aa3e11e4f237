"""Experiments 4 to 6: the mean of the inputs is drawn anew every T steps."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks
from resonance_jax.shifts.base import Redrawn, Shift


def switching(T: ArrayLike, *, dim: ArrayLike, variance: ArrayLike, max_dim: int | None = None) -> Shift:
    """Mean  m_k = xi_i  with  i = floor(k / T)  and  xi_i ~ N(0, variance I)  independent.

    Args:
        T: steps between two switches, >= 0. 0 is the iid baseline: a new mean for every *sample*, so that inputs have
            mean 0 and the mean's variance adds to their own; 1 is a new mean for every step.
        dim: number of inputs.
        variance: of each entry of a mean.
        max_dim: largest value that `dim` takes where it is an axis of a sweep; means are 0 beyond the actual one.

    Returns:
        A shift without memory: the i-th mean follows from the key and i.
    """
    checks.between("T", T, 0, jnp.inf, "give the steps between two switches; 0 is the iid baseline")
    checks.between("variance", variance, 0, jnp.inf, "give a variance")
    num_inputs, mask = checks.count("dim", dim, max_dim, "count the inputs without the bias")
    dtype = jnp.result_type(float)
    interval, variance = jnp.asarray(T, dtype), jnp.asarray(variance, dtype)
    moving = interval > 0
    safe = jnp.where(moving, interval, 1)
    scale = jnp.where(moving, jnp.sqrt(variance), 0)

    def xi(key: Array) -> Array:
        return scale * checks.masked(jax.random.normal(key, (num_inputs,), dtype), mask)

    def means(key: Array, k: Array, state: tuple[()]) -> tuple[Array, tuple[()]]:
        switches = jnp.floor(k.astype(dtype) / safe).astype(jnp.int32)
        return jax.vmap(lambda i: xi(jax.random.fold_in(key, i)))(switches), state

    return Shift(
        init=lambda key: (),
        means=means,
        spread=jnp.where(moving, 0, variance),
        stationary=lambda key, state: xi(key),
        redrawn=Redrawn(interval, variance, num_inputs),
        iid_spread=variance,
    )
