"""Floquet theory in discrete time: an optimizer with the expected gradient, step by step over one period."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from resonance_jax import checks
from resonance_jax.numerics import entrywise, logscale
from resonance_jax.numerics.derivatives import FORWARD_ONLY, NO_SLOPE, forward_only, refused
from resonance_jax.numerics.logscale import Scaled
from resonance_jax.optimizers.linear import LinearOptimizer
from resonance_jax.optimizers.numbers import weighted
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


def product(B: GradientMatrix, num_steps: Array, optimizer: LinearOptimizer) -> Scaled:
    """M_{N-1} ... M_1 M_0 for the N steps of a period, entries in nested tuples; NaN for N = -1."""
    dtype = jnp.result_type(float)
    n = jax.eval_shape(B, jax.ShapeDtypeStruct((), dtype)).shape[0]
    d_phase = 1 / num_steps.astype(dtype)
    rows = [
        (gradient.value, [weight.value, *(each.value for each in old)]) for gradient, weight, old in optimizer.rows()
    ]

    def step(k: Array, matrix: Scaled) -> Scaled:
        parts = matrix.mantissa  # the rows of the weights and those of each buffer, (n, size) each
        pull = entrywise.matmul(entrywise.matrix(B(k.astype(dtype) * d_phase)), parts[0])
        moved = tuple(
            jax.tree.map(
                lambda p, *before, gradient=gradient, others=others: jnp.asarray(
                    weighted([(gradient, p), *zip(others, before, strict=True)]), dtype
                ),
                pull,
                *parts,
            )
            for gradient, others in rows
        )
        return logscale.normalize(Scaled(moved, matrix.exponent))

    size = len(rows) * n
    identity = entrywise.matrix(jnp.where(num_steps < 0, jnp.nan, jnp.eye(size, dtype=dtype)))
    start = tuple(identity[i : i + n] for i in range(0, size, n))
    matrix = jax.lax.fori_loop(0, num_steps, step, Scaled(start, jnp.int32(0)))
    return Scaled(forward_only(sum(matrix.mantissa, ()), FORWARD_ONLY), matrix.exponent)
