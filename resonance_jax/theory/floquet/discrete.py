"""Floquet theory in discrete time: SGDm with the expected gradient, step by step over one period."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from resonance_jax import checks
from resonance_jax.numerics import entrywise, logscale
from resonance_jax.numerics.derivatives import FORWARD_ONLY, NO_SLOPE, forward_only, refused
from resonance_jax.numerics.logscale import Scaled
from resonance_jax.theory.floquet.expected import GradientMatrix

MOST_STEPS = 2.0**20  # of a period


def whole_steps(period: Any) -> Array:
    """The period as a whole number of steps; -1 for a traced one that is not whole, or too long."""
    period = refused(jnp.asarray(period), NO_SLOPE)
    rounded = jnp.round(period)
    tolerance = 4 * float(jnp.finfo(period.dtype).eps)
    whole = (jnp.abs(period - rounded) <= tolerance * rounded) & (rounded <= MOST_STEPS)
    if checks.is_concrete(whole) and not whole:
        raise ValueError(
            f"the discrete monodromy needs a period of a whole number of steps, at most {MOST_STEPS:g}, "
            f"got {float(period):.7g}; take f = 1/T for a whole T, or discrete=False"
        )
    return jnp.where(whole, rounded, -1).astype(jnp.int32)


def product(B: GradientMatrix, num_steps: Array, mu: Array, eta: Array) -> Scaled:
    """M_{N-1} ... M_1 M_0 for the N steps of a period, entries in nested tuples; NaN for N = -1."""
    n = jax.eval_shape(B, mu).shape[0]
    d_phase = 1 / num_steps.astype(mu.dtype)

    def step(k: Array, matrix: Scaled) -> Scaled:
        error, velocity = matrix.mantissa  # upper and lower half of the product, (n, 2n) each
        pull = entrywise.matmul(entrywise.matrix(B(k.astype(mu.dtype) * d_phase)), error)
        velocity = jax.tree.map(lambda v, p: mu * v - eta * p, velocity, pull)
        error = jax.tree.map(jnp.add, error, velocity)
        return logscale.normalize(Scaled((error, velocity), matrix.exponent))

    identity = entrywise.matrix(jnp.where(num_steps < 0, jnp.nan, jnp.eye(2 * n, dtype=mu.dtype)))
    matrix = jax.lax.fori_loop(0, num_steps, step, Scaled((identity[:n], identity[n:]), jnp.int32(0)))
    return Scaled(forward_only(matrix.mantissa[0] + matrix.mantissa[1], FORWARD_ONLY), matrix.exponent)
