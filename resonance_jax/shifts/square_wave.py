"""Experiment 3: the mean of the inputs jumps between two opposite points."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks, naming
from resonance_jax.shifts.base import Shift
from resonance_jax.shifts.inputs import Inputs
from resonance_jax.shifts.laws.periodic import Periodic


def square_wave(T: ArrayLike, *, dim: ArrayLike, norm: ArrayLike = 0.5, max_dim: int | None = None) -> Shift:
    """Mean  m_k = +u for the first half of each period of T steps, -u for the second; u random, ||u|| = norm.

    Args:
        T: period in steps, >= 0; 0 is the iid baseline, mean 0.
        dim: number of inputs.
        norm: length of u. The paper's table has 1/2, its text 1.
        max_dim: largest value that `dim` takes where it is an axis of a sweep; u is 0 beyond the actual one.

    Returns:
        A periodic shift. Each run draws the direction of u from its key. By rotational symmetry it does not matter to
        theory, unless the inputs have different variances; theory then refuses.

    >>> shift = square_wave(4, dim=1)
    >>> inputs, _ = shift.inputs(None, jnp.arange(8), jnp.array([0.5]))
    >>> inputs.mean[:, 0].tolist()
    [0.5, 0.5, -0.5, -0.5, 0.5, 0.5, -0.5, -0.5]
    """
    checks.between("T", T, 0, jnp.inf, "give a period in steps; 0 is the iid baseline")
    num_inputs, mask = checks.count("dim", dim, max_dim, "count the inputs without the bias")
    checks.between("norm", norm, 0, jnp.inf, "give the length of the mean")
    dtype = jnp.result_type(float)
    period, norm = jnp.asarray(T, dtype), jnp.asarray(norm, dtype)
    moving = period > 0
    safe = jnp.where(moving, period, 1)
    zero = jnp.zeros((), dtype)

    def init(key: Array) -> Array:
        xi = checks.masked(jax.random.normal(key, (num_inputs,), dtype), mask)
        return norm * xi / jnp.linalg.norm(xi)

    def inputs(key: Array, k: Array, u: Array) -> tuple[Inputs, Array]:
        half_turns = jnp.floor(2 * k.astype(dtype) / safe)
        sign = jnp.where(moving, 1 - 2 * (half_turns % 2), 0)
        return Inputs(sign[:, None] * u[None, :], jnp.zeros_like(sign)), u

    def profile(phase: Array) -> Inputs:
        sign = jnp.where(phase % 1 < 0.5, 1, -1).astype(dtype)
        return Inputs(jnp.where(moving, norm * sign, 0)[None], zero)

    def stationary(key: Array, u: Array) -> Inputs:
        return Inputs(jnp.where(moving, jax.random.rademacher(key, (), dtype), 0) * u, zero)

    first = jnp.eye(num_inputs, dtype=dtype)[:1]
    return Shift(
        init=init,
        inputs=inputs,
        law=Periodic(jnp.where(moving, period, jnp.inf), profile, first, random=True),
        stationary=stationary,
        label=naming.call("square_wave", T=T, dim=dim, norm=norm),
    )
