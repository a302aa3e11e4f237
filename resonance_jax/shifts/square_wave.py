"""Experiment 3: the mean of the inputs jumps between two opposite points."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks
from resonance_jax.shifts.base import Shift


def square_wave(T: ArrayLike, *, dim: ArrayLike, norm: ArrayLike = 0.5, max_dim: int | None = None) -> Shift:
    """Mean  m_k = +u for the first half of each period of T steps, -u for the second; u random, ||u|| = norm.

    Args:
        T: period in steps, >= 0; 0 is the iid baseline, mean 0.
        dim: number of inputs.
        norm: length of u. The paper's table has 1/2, its text 1.
        max_dim: largest value that `dim` takes where it is an axis of a sweep; u is 0 beyond the actual one.

    Returns:
        A periodic shift. Its direction is drawn from the key; `profile` points along the first input, which is the same
        to theory, since turning the inputs changes nothing.

    >>> shift = square_wave(4, dim=1)
    >>> means, _ = shift.means(None, jnp.arange(8), jnp.array([0.5]))
    >>> means[:, 0].tolist()
    [0.5, 0.5, -0.5, -0.5, 0.5, 0.5, -0.5, -0.5]
    """
    checks.between("T", T, 0, jnp.inf, "give a period in steps; 0 is the iid baseline")
    num_inputs, mask = checks.count("dim", dim, max_dim, "count the inputs without the bias")
    checks.between("norm", norm, 0, jnp.inf, "give the length of the mean")
    dtype = jnp.result_type(float)
    period, norm = jnp.asarray(T, dtype), jnp.asarray(norm, dtype)
    moving = period > 0
    safe = jnp.where(moving, period, 1)

    def init(key: Array) -> Array:
        xi = checks.masked(jax.random.normal(key, (num_inputs,), dtype), mask)
        return norm * xi / jnp.linalg.norm(xi)

    def means(key: Array, k: Array, u: Array) -> tuple[Array, Array]:
        half_turns = jnp.floor(2 * k.astype(dtype) / safe)
        sign = jnp.where(moving, 1 - 2 * (half_turns % 2), 0)
        return sign[:, None] * u[None, :], u

    def profile(phase: Array) -> Array:
        return norm * jnp.where(phase % 1 < 0.5, 1, -1).astype(dtype) * jnp.eye(num_inputs, dtype=dtype)[0]

    def stationary(key: Array, u: Array) -> Array:
        return jnp.where(moving, jax.random.rademacher(key, (), dtype), 0) * u

    period = jnp.where(moving, period, jnp.inf)
    return Shift(
        init=init,
        means=means,
        period=period,
        profile=profile,
        stationary=stationary,
        straight=True,
    )
