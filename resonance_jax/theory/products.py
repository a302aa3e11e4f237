"""Products of linear one-step maps along a sequence of means, of unlimited range."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from resonance_jax import entrywise, logscale
from resonance_jax.fused import fused
from resonance_jax.logscale import Scaled

Entries = tuple[Array, ...]  # what a map acts on: scalars, or one array
Step = Callable[[Entries, Array], Entries]  # entries, coordinates of the mean -> entries one step later
MOST_ENTRIES = 78  # as scalars: the second moments of 6 weights
BLOCK = 4  # steps between two rescalings; entries may grow by 2^30 in each
STEPS = 64  # of one kernel of a GPU
LONGEST = 2**14  # steps of a product; the rate of longer periods is near its limit
MOST_TURNS = 64  # of a shift whose period is not a whole number of steps
TOLERANCE = 1e-4  # relative change of a period that is taken for none


def along(step: Step, state: Scaled, x: Array, live: Array) -> Scaled:
    """The state after the steps with the coordinates x.

    Args:
        step: linear in the entries.
        state: entries of one column.
        x: (n, weights) with n a multiple of `BLOCK`.
        live: (n,), whether a step is one; the others change nothing.
    """

    def one(entries: Entries, drawn: tuple[Array, Array]) -> tuple[Entries, None]:
        x, lives = drawn
        return tuple(jnp.where(lives, new, old) for new, old in zip(step(entries, x), entries, strict=True)), None

    def block(state: Scaled, drawn: tuple[Array, Array]) -> tuple[Scaled, None]:
        return logscale.normalize(Scaled(jax.lax.scan(one, state.mantissa, drawn)[0], state.exponent)), None

    @fused
    def blocks(state: Scaled, drawn: tuple[Array, Array]) -> Scaled:
        return jax.lax.scan(block, state, drawn)[0]

    return blocks(state, jax.tree.map(lambda leaf: leaf.reshape(-1, BLOCK, *leaf.shape[1:]), (x, live)))


def turns(period: Array) -> tuple[Array, Array]:
    """Turns p and whole steps N with  p * period = N  nearly: the least p that is off by at most 1e-4 of N.

    Where none up to 64 is, the nearest one. A mean that stands still, period inf, makes one turn of one step. Periods
    of more than 2^14 steps are taken as so many: their rate per step is close to that of ever longer ones.

    >>> [int(n) for n in turns(jnp.asarray(22.5))]
    [2, 45]
    """
    moving = jnp.isfinite(period)
    period = jnp.minimum(jnp.where(moving, period, 1), LONGEST)
    p = jnp.arange(1, MOST_TURNS + 1, dtype=jnp.int32)
    steps = p.astype(period.dtype) * period
    error = jnp.abs(steps - jnp.round(steps)) / steps
    error = jnp.where(steps <= LONGEST, jnp.maximum(error, TOLERANCE), jnp.inf)  # argmin takes the first of equals
    best = jnp.argmin(error)
    return p[best], jnp.round(steps[best]).astype(jnp.int32)


def over_turns(step: Step, counts: Array, period: Array, coordinates: Callable[[Array], Array]) -> Scaled:
    """Matrix of the steps of some whole turns, column by column; `turns(period)` says how many steps these are.

    Args:
        step: linear in the entries.
        counts: (size,), 1 for the entries that exist; the columns of others are 0.
        period: in steps, inf where the mean stands still.
        coordinates: phase in [0, 1) -> x.

    Returns:
        (size, size).
    """
    p, num_steps = turns(period)
    dtype = period.dtype

    def x_of(k: Array) -> Array:
        return coordinates(((k * p) % num_steps).astype(dtype) / num_steps.astype(dtype))

    def column(start: Array) -> Scaled:
        def chunk(j: Array, state: Scaled) -> Scaled:
            k = j * STEPS + jnp.arange(STEPS, dtype=jnp.int32)
            return along(step, state, jax.vmap(x_of)(k), k < num_steps)

        state = jax.lax.fori_loop(0, -(-num_steps // STEPS), chunk, Scaled(split(start), jnp.int32(0)))
        return Scaled(join(state.mantissa), state.exponent)

    return matrix_of(jax.vmap(column)(jnp.diag(counts)))


def split(vector: Array) -> Entries:
    """Few entries as scalars, which XLA fuses; many as one array, whose program is short."""
    return entrywise.vector(vector) if vector.size <= MOST_ENTRIES else (vector,)


def join(entries: Entries) -> Array:
    return jnp.stack(entries) if len(entries) > 1 else entries[0]


def matrix_of(columns: Scaled) -> Scaled:
    """Columns, along the first axis, with an exponent each, as one matrix of one exponent."""
    rows = columns.mantissa.T
    exponent = jnp.where(jnp.max(jnp.abs(rows), axis=0) > 0, columns.exponent, logscale.ZERO_EXPONENT)
    largest = jnp.max(exponent)
    return Scaled(logscale.shift_by(rows, (exponent - largest)[None, :]), largest)
