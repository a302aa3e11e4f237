"""Products of linear one-step maps along a sequence of inputs, without overflow."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from resonance_jax.fused import fused
from resonance_jax.numerics import entrywise, logscale
from resonance_jax.numerics.derivatives import FORWARD_ONLY, NO_SLOPE, forward_only, refused
from resonance_jax.numerics.logscale import Scaled
from resonance_jax.numerics.spectral import log_spectral_radius

Entries = tuple[Array, ...]  # what a map acts on
Step = Callable[[Entries, Any], Entries]  # entries, the inputs of a step -> entries one step later
BLOCK = 4  # steps between two rescalings; entries may grow by 2^30 in each
BLOCKS = 16  # in one kernel of a GPU
LONGEST = 2**14  # steps of a product; longer periods have nearly the same rate
MOST_TURNS = 64  # of a shift whose period is not a whole number of steps
TOLERANCE = 1e-4  # relative change of a period that is neglected


class LinearMap(NamedTuple):
    """What one step does to some moments of a run: a linear map of their entries, given the inputs of the step."""

    step: Step
    coordinates: Callable[[Any], Any]  # inputs as a law has them -> as `step` takes them
    num_slopes: int  # coordinates of the mean that `step` takes
    dim: Array  # (), inputs of the problem
    exists: Array  # (size,), 1 for entries that exist, 0 for padding
    start: Array  # (size,), entries of a state with a component along every mode
    parts: tuple[tuple[int, ...], ...]  # groups of entries that do not mix with each other
    own: tuple[tuple[int, ...], ...]  # for each weight, its entries that an average over m and -m keeps
    rest: tuple[int, ...]  # the same for the slopes that are not tracked individually; () if there are none
    apart: bool  # whether entries of different weights do not mix under such an average
    order: int  # of the moments: 1 for the mean, 2 for the mean square


def largest_rate(matrix: Array | Scaled, linear: LinearMap, num_steps: Array) -> Array:
    """Growth per step of the fastest part, for the matrix (size, size) of `num_steps` steps."""
    scaled = matrix if isinstance(matrix, Scaled) else Scaled(matrix, jnp.int32(0))
    return fastest(scaled, linear.parts) / (linear.order * num_steps)


def fastest(matrix: Scaled, parts: tuple[tuple[int, ...], ...]) -> Array:
    """Largest log spectral radius of the parts of a matrix that do not mix."""
    if len(parts) == 1:
        return log_spectral_radius(matrix)
    radii = [
        log_spectral_radius(matrix._replace(mantissa=matrix.mantissa[jnp.array(part)][:, jnp.array(part)]))
        for part in parts
    ]
    return functools.reduce(jnp.maximum, radii)


def along(step: Step, state: Scaled, inputs: Any, live: Array) -> Scaled:
    """The state after the steps with these inputs, in blocks of steps between two rescalings.

    Args:
        step: linear in the entries.
        state: entries, each a scalar, or an array of columns.
        inputs: as `step` takes them, every leaf with (blocks, `BLOCK`) in front.
        live: (blocks,), int32, 1 for blocks to apply, 0 for blocks to skip.
    """

    def block(carry: tuple[Scaled, Array], drawn: tuple[Any, Array]) -> tuple[tuple[Scaled, Array], None]:
        (entries, exponent), lift = carry  # computed in the block before, once and not for every entry
        of_steps, lives = drawn
        moved = logscale.shift_by(entries, lift)
        moved = jax.lax.scan(lambda entries, one: (step(entries, one), None), moved, of_steps)[0]
        new = Scaled(moved, exponent - lift), logscale.room(moved, 0)
        return jax.tree.map(lambda new, old: jnp.where(lives > 0, new, old), new, carry), None

    return jax.lax.scan(block, (state, logscale.room(state.mantissa, 0)), (inputs, live))[0][0]


def turns(period: Array) -> tuple[Array, Array]:
    """Turns p and whole steps N with  p * period = N  nearly: the least p that is off by at most 1e-4 of N.

    If no p up to 64 is that close, the closest one. An infinite period, of inputs that stand still, is one turn of one
    step. Periods above 2^14 steps are treated as 2^14: their rate per step is close to that of longer ones.

    >>> [int(n) for n in turns(jnp.asarray(22.5))]
    [2, 45]
    """
    period = refused(period, NO_SLOPE)
    moving = jnp.isfinite(period)
    period = jnp.minimum(jnp.where(moving, period, 1), LONGEST)
    p = jnp.arange(1, MOST_TURNS + 1, dtype=jnp.int32)
    steps = p.astype(period.dtype) * period
    error = jnp.abs(steps - jnp.round(steps)) / steps
    error = jnp.where(steps <= LONGEST, jnp.maximum(error, TOLERANCE), jnp.inf)  # argmin takes the first of equal ones
    best = jnp.argmin(error)
    return p[best], jnp.round(steps[best]).astype(jnp.int32)


def over_turns(linear: LinearMap, period: Array, inputs: Callable[[Array], Any]) -> Scaled:
    """Matrix of the steps of a few whole turns, column by column; `turns(period)` gives their number.

    Args:
        linear: the map; columns of entries that do not exist are 0.
        period: in steps, inf where nothing moves.
        inputs: phase in [0, 1) -> inputs of a step, as the law has them.

    Returns:
        (size, size).
    """
    p, num_steps = turns(period)
    dtype, step = period.dtype, linear.step

    def inputs_of(k: Array) -> Any:
        return linear.coordinates(inputs(((k * p) % num_steps).astype(dtype) / num_steps.astype(dtype)))

    def all_steps(advance: Any, column: Array) -> Scaled:
        """First the steps that do not fill a block, then the blocks, 16 at a time."""
        single, num_blocks = num_steps % BLOCK, num_steps // BLOCK
        entries = jax.lax.fori_loop(0, single, lambda k, entries: step(entries, inputs_of(k)), entrywise.vector(column))

        def chunk(j: Array, state: Scaled) -> Scaled:
            block = j * BLOCKS + jnp.arange(BLOCKS, dtype=jnp.int32)
            k = single + block[:, None] * BLOCK + jnp.arange(BLOCK, dtype=jnp.int32)[None, :]
            return advance(state, jax.vmap(jax.vmap(inputs_of))(k), (block < num_blocks).astype(jnp.int32))

        return jax.lax.fori_loop(0, -(-num_blocks // BLOCKS), chunk, Scaled(entries, jnp.int32(0)))

    def one_after_another(columns: Array) -> Scaled:
        """On a CPU, the loop over blocks is innermost: a few lanes end when they are done, not with the longest."""
        return jax.lax.map(fused(functools.partial(all_steps, advance)), columns)

    def at_once(columns: Array) -> Scaled:
        """On a GPU, one thread for each column, 16 blocks in each kernel."""
        return jax.vmap(functools.partial(all_steps, fused(advance)))(columns)

    advance = functools.partial(along, step)
    matrix = aligned(jax.lax.platform_dependent(jnp.diag(linear.exists), cpu=one_after_another, default=at_once))
    return matrix._replace(mantissa=forward_only(matrix.mantissa, FORWARD_ONLY))


def aligned(columns: Scaled) -> Scaled:
    """Columns that each have an exponent, (entries, columns), as a matrix with one exponent."""
    rows = jnp.stack(columns.mantissa)
    exponent = jnp.where(jnp.max(jnp.abs(rows), axis=0) > 0, columns.exponent, logscale.ZERO_EXPONENT)
    top = jnp.max(exponent)
    return Scaled(logscale.shift_by(rows, (exponent - top)[None, :]), top)
