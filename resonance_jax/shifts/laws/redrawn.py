"""A mean drawn anew every T steps: the average over means, exactly.

Over T steps with the mean held, SGDm is a polynomial in the mean. Where the inputs are isotropic, only the length of
the mean matters, and what is left is a polynomial of degree 2T in its square, v times a chi-square number:
Gauss-Laguerre quadrature with more than T nodes integrates it exactly. Far nodes have weights below the floating range,
and products above it; both keep their exponents. Where inputs have different variances, the average over directions is
taken over random ones, and the rate has a standard error.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax import checks
from resonance_jax.numerics import logscale
from resonance_jax.numerics.derivatives import NO_SLOPE, refused
from resonance_jax.numerics.estimate import Estimate, exact
from resonance_jax.numerics.logscale import Scaled
from resonance_jax.numerics.products import BLOCK, Entries, LinearMap, Step, along, fastest
from resonance_jax.shifts.inputs import Inputs
from resonance_jax.shifts.laws.base import Averaging, drawn

MOST_NODES = 128  # beyond, SciPy's weights fall below the range of float64
NUM_DIRECTIONS, NUM_BATCHES = 64, 8  # random directions in each batch; the spread over batches gives the error


class Redrawn(NamedTuple):
    """A mean drawn from N(0, variance I) every `interval` steps, which stands in between.

    Fields:
        interval: (), steps between two draws. 0 is the iid baseline: a new mean for every sample, which adds its
            variance to that of the inputs.
        variance: (), of each entry of the mean.

    >>> import resonance_jax as rj
    >>> rj.shifts.switching(6, dim=2, variance=0.5).law
    Redrawn(interval=6.0, variance=0.5)
    """

    interval: Array
    variance: Array

    num_coordinates = 1  # the length of the mean
    isotropic = True
    random = False
    longest_cycle = Averaging().nodes - 1

    def growth(self, shift: Any, linear: LinearMap, averaging: Averaging) -> Estimate:
        """log rho of the average of what T steps do, on the states that this average keeps."""
        num_nodes = averaging.nodes
        T = _whole_interval(self.interval, num_nodes)
        moving = self.interval > 0
        lengths, weights = _radial_nodes(linear.dim, _most_inputs(shift), num_nodes)
        lengths = jnp.where(moving, jnp.sqrt(self.variance), 0) * lengths
        added = jnp.where(moving, 0, self.variance)
        start, back = _kept(linear)
        parts = _kept_parts(linear)

        def rate(directions: Array) -> Array:
            """Averaged over directions (n, slopes) and lengths."""
            means = (directions[:, None, :] * lengths[None, :, None]).reshape(-1, linear.num_slopes)
            moved = jax.vmap(lambda mean: _held(linear.step, start, Inputs(mean, added), T, num_nodes))(means)
            number = directions.shape[0]
            of_each = Scaled(jnp.tile(weights.mantissa / number, number), jnp.tile(weights.exponent, number))
            matrix = _average(moved, of_each)
            seen = matrix._replace(mantissa=jnp.matmul(back, matrix.mantissa, precision="highest"))
            return fastest(seen, parts) / (linear.order * T)

        if linear.num_slopes == 1:
            return exact(rate(jnp.ones((1, 1), lengths.dtype)))
        key = jax.random.key(0) if averaging.key is None else averaging.key
        normal = jax.random.normal(key, (NUM_BATCHES, NUM_DIRECTIONS, linear.num_slopes), lengths.dtype)
        rates = jax.lax.map(rate, normal / jnp.linalg.norm(normal, axis=-1, keepdims=True))  # saves memory
        return Estimate(jnp.mean(rates), jnp.std(rates, ddof=1) / np.sqrt(NUM_BATCHES))

    def whole(self, inputs: Inputs) -> Inputs:
        return inputs

    def visited(self, shift: Any, *, every_phase: bool = False) -> Inputs:
        return drawn(shift)

    @property
    def cycle(self) -> Array:
        return jnp.where(self.interval > 0, self.interval, jnp.inf)

    def __repr__(self) -> str:
        return f"Redrawn(interval={self.interval}, variance={self.variance})"


def _whole_interval(interval: Array, nodes: int) -> Array:
    """Steps that a mean stays; NaN for a traced number that is not whole or too large, ValueError for a plain one."""
    checks.at_least_one("nodes", nodes, "it is one more than the longest interval T")
    if nodes > MOST_NODES:
        raise ValueError(f"nodes must be at most {MOST_NODES}, got {nodes}; longer intervals are not covered")
    T = refused(interval, NO_SLOPE)
    fits = (jnp.round(T) == T) & (nodes > T)
    if checks.is_concrete(fits) and not fits:
        raise ValueError(
            f"the average over means needs an interval of a whole number of steps below nodes={nodes}, got "
            f"T={float(T):g}; round T, or raise nodes"
        )
    return jnp.where(fits, jnp.maximum(T, 1), jnp.nan)  # T = 0, the iid baseline: one step with the mean at 0


def _most_inputs(shift: Any) -> int:
    """Entries that a mean has at most; `dim` may be traced up to it."""
    key = jax.random.key(0)
    return jax.eval_shape(lambda: shift.inputs(key, jnp.arange(1, dtype=jnp.int32), shift.init(key)))[0].mean.shape[1]


def _radial_nodes(dim: Array, most: int, num_nodes: int) -> tuple[Array, Scaled]:
    """Lengths of a standard normal vector of `dim` <= `most` entries, and their weights, which sum to 1."""
    from scipy.special import gammaln, roots_genlaguerre  # slow to import, and only means drawn anew need it

    tables = [roots_genlaguerre(num_nodes, each / 2 - 1) for each in range(1, most + 1)]
    squares = 2 * np.stack([x for x, _ in tables])  # chi-square is twice a gamma number
    log2_weights = np.stack(
        [(np.log(w) - gammaln(each / 2)) / np.log(2) for each, (_, w) in enumerate(tables, start=1)]
    )
    row = jnp.asarray(dim, jnp.int32) - 1
    exponents = np.floor(log2_weights)
    mantissa = jnp.asarray(2.0 ** (log2_weights - exponents), dim.dtype)[row]
    lengths = jnp.sqrt(jnp.asarray(squares, dim.dtype)[row])
    return lengths, Scaled(mantissa, jnp.asarray(exponents, jnp.int32)[row])


def _kept(linear: LinearMap) -> tuple[Array, Array]:
    """States that the average over means keeps: how they are made of entries, and read from them; both (kept, size).

    The mean is as often m as -m, so only what belongs to one weight stays, three moments of each in the mean square. In
    isotropic inputs all slopes are alike, and one of them is the mean over the one along m and the others across.
    """
    size, dtype = linear.exists.shape[0], linear.dim.dtype
    kept = [entry for own in linear.own for entry in own]
    start = np.eye(size)[kept]
    if not linear.rest:
        return jnp.asarray(start, dtype), jnp.asarray(start, dtype)
    others = np.zeros_like(start)
    others[: len(linear.rest)] = np.eye(size)[list(linear.rest)]  # the first weight is the slope along the mean
    is_slope = np.arange(len(kept))[:, None] < len(linear.rest)
    along = jnp.asarray(np.where(is_slope, start, 0), dtype) / linear.dim + jnp.asarray(
        np.where(is_slope, 0, start), dtype
    )
    across = jnp.asarray(others, dtype) * (1 - 1 / linear.dim)
    return jnp.asarray(start + others, dtype), along + across


def _kept_parts(linear: LinearMap) -> tuple[tuple[int, ...], ...]:
    """Which of the kept states mix: those of one weight, or all."""
    ends = np.cumsum([len(own) for own in linear.own])
    if not linear.apart:
        return (tuple(range(int(ends[-1]))),)
    return tuple(tuple(range(int(end) - len(own), int(end))) for own, end in zip(linear.own, ends, strict=True))


def _held(step: Step, basis: Array, inputs: Inputs, num_steps: Array, nodes: int) -> Scaled:
    """What `num_steps` steps with the inputs held do to each row of the basis.

    Returns:
        (entries, rows), one exponent for all.
    """
    dtype, step = basis.dtype, jax.vmap(step, in_axes=(0, None))
    single, num_blocks = num_steps % BLOCK, num_steps // BLOCK
    entries = tuple(basis.T)

    def one(k: Array, entries: Entries) -> Entries:
        moved = step(entries, inputs)
        return tuple(jnp.where(k.astype(dtype) < single, new, old) for new, old in zip(moved, entries, strict=True))

    entries = jax.lax.fori_loop(0, BLOCK - 1, one, entries)
    live = (jnp.arange(nodes // BLOCK, dtype=dtype) < num_blocks).astype(jnp.int32)
    at_every_step = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (nodes // BLOCK, BLOCK, *leaf.shape)), inputs)
    state = along(step, Scaled(entries, jnp.int32(0)), at_every_step, live)
    return Scaled(jnp.where(jnp.isnan(num_steps), jnp.nan, jnp.stack(state.mantissa)), state.exponent)


def _average(matrices: Scaled, weights: Scaled) -> Scaled:
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
