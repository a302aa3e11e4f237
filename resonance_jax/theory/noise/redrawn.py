"""A mean drawn anew every T steps: the average over means, exactly.

Over T steps with the mean held, SGDm is a polynomial in the mean. The law N(0, v I) is alike in all directions, so what
is left is a polynomial of degree 2T in the square of the mean's length, v times a chi-square number: Gauss-Laguerre
quadrature with more than T nodes integrates it exactly. Far nodes have weights below the floating range, and products
above it; both keep their exponents.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax import checks
from resonance_jax.numerics import logscale
from resonance_jax.numerics.derivatives import NO_SLOPE, refused
from resonance_jax.numerics.logscale import Scaled
from resonance_jax.shifts.base import Redrawn
from resonance_jax.theory.noise.products import BLOCK, Entries, Step, along

MOST_NODES = 128  # beyond, SciPy's weights fall below the range of float64


class Nodes(NamedTuple):
    """Lengths of the mean and their weights, which sum to 1."""

    lengths: Array  # (nodes,)
    weights: Scaled  # (nodes,), an exponent each


def check_redrawn(redrawn: Redrawn, dim: int, nodes: int) -> Array:
    """Steps that a mean stays; NaN for a traced number that is not whole or too large, ValueError for a plain one."""
    checks.at_least_one("nodes", nodes, "it is one more than the longest interval T")
    if nodes > MOST_NODES:
        raise ValueError(f"nodes must be at most {MOST_NODES}, got {nodes}; longer intervals are not covered")
    if redrawn.dim != dim:
        raise ValueError(
            f"the shift draws {redrawn.dim} inputs but the problem has dim={dim}; give both the same number"
        )
    T = refused(redrawn.interval, NO_SLOPE)
    fits = (jnp.round(T) == T) & (nodes > T)
    if checks.is_concrete(fits) and not fits:
        raise ValueError(
            f"the average over means needs an interval of a whole number of steps below nodes={nodes}, got "
            f"T={float(T):g}; round T, or raise nodes"
        )
    return jnp.where(fits, jnp.maximum(T, 1), jnp.nan)  # T = 0, the iid baseline: one step with the mean at 0


def nodes_of(redrawn: Redrawn, dim: Array, num_nodes: int) -> Nodes:
    """For means of `dim` entries, which may be traced up to `redrawn.dim`."""
    from scipy.special import gammaln, roots_genlaguerre  # slow to import, and only means drawn anew need it

    dtype = redrawn.variance.dtype
    tables = [roots_genlaguerre(num_nodes, each / 2 - 1) for each in range(1, redrawn.dim + 1)]
    squares = 2 * np.stack([x for x, _ in tables])  # chi-square is twice a gamma number
    log2_weights = np.stack(
        [(np.log(w) - gammaln(each / 2)) / np.log(2) for each, (_, w) in enumerate(tables, start=1)]
    )
    row = jnp.asarray(dim, jnp.int32) - 1
    exponents = np.floor(log2_weights)
    weights = Scaled(jnp.asarray(2.0 ** (log2_weights - exponents), dtype)[row], jnp.asarray(exponents, jnp.int32)[row])
    scale = jnp.where(redrawn.interval > 0, redrawn.variance, 0)
    return Nodes(jnp.sqrt(scale * jnp.asarray(squares, dtype)[row]), weights)


def held(step: Step, basis: Array, length: Array, num_steps: Array, nodes: int) -> Scaled:
    """What `num_steps` steps with a mean of this length do to each row of the basis.

    Returns:
        (entries, rows), one exponent for all.
    """
    dtype = length.dtype
    single, num_blocks = num_steps % BLOCK, num_steps // BLOCK
    entries = tuple(basis.T)

    def one(k: Array, entries: Entries) -> Entries:
        moved = step(entries, length[None])
        return tuple(jnp.where(k.astype(dtype) < single, new, old) for new, old in zip(moved, entries, strict=True))

    entries = jax.lax.fori_loop(0, BLOCK - 1, one, entries)
    live = (jnp.arange(nodes // BLOCK, dtype=dtype) < num_blocks).astype(jnp.int32)
    m = jnp.full((nodes // BLOCK, BLOCK, 1), length)
    state = along(step, Scaled(entries, jnp.int32(0)), m, live)
    return Scaled(jnp.where(jnp.isnan(num_steps), jnp.nan, jnp.stack(state.mantissa)), state.exponent)


def average(matrices: Scaled, weights: Scaled) -> Scaled:
    """Sum over nodes of weight times matrix, with an exponent for each node, as a matrix of one exponent.

    Args:
        matrices: (nodes, rows, columns), exponents (nodes,).
        weights: (nodes,), exponents (nodes,).
    """
    exponent = matrices.exponent + weights.exponent
    zero = jnp.max(jnp.abs(matrices.mantissa), axis=(1, 2)) * weights.mantissa == 0
    exponent = jnp.where(zero, logscale.ZERO_EXPONENT, exponent)
    largest = jnp.max(exponent)
    terms = logscale.shift_by(matrices.mantissa * weights.mantissa[:, None, None], (exponent - largest)[:, None, None])
    return Scaled(jnp.sum(terms, axis=0), largest)
