"""A run as blocks of steps; random numbers are drawn for whole blocks, outside the update."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
from jax import Array

from resonance_jax.problems.base import Stream
from resonance_jax.shifts.base import Shift

State = TypeVar("State")
BLOCKS = range(25, 9, -1)  # steps of a block: the most that divide the run
GROUPS = range(25, 0, -1)  # blocks that are drawn together: the most that divide their number


def repeat(advance: Callable[[State, int, int], State], state: State, num_steps: int) -> State:
    """`num_steps` steps by `advance(state, blocks, length)`: blocks of equal length, perhaps a shorter one first."""
    if num_steps == 0:
        return state
    fitting = [block for block in (num_steps, *BLOCKS) if block <= BLOCKS[0] and num_steps % block == 0]
    block = fitting[0] if fitting else BLOCKS[0]
    num_blocks, rest = divmod(num_steps, block)
    if rest:
        state = advance(state, 1, rest)
    group = next(group for group in GROUPS if num_blocks % group == 0)
    return jax.lax.fori_loop(0, num_blocks // group, lambda _, state: advance(state, group, block), state)


def draw(
    draw_step: Callable[[Array, Array], Any], source: Shift | Stream, keys: tuple[Array, Array], k: Array, state: Any
) -> tuple[Any, Any, Any]:
    """Draws and inputs of the steps k: they depend on the seed and on where inputs come from, not on the optimizer.

    On a CPU, a separate loop makes XLA materialise the draws instead of recomputing them per lane.

    Args:
        draw_step: key of a step, k -> what it draws.
        source: of the inputs: a shift, or the problem's own stream.
        keys: of the draws and of the source.
        k: consecutive steps, (n,).
        state: of the source before them.

    Returns:
        Draws and inputs, both with the steps in front, and the state of the source after them.
    """
    draw_key, source_key = keys
    size = k.shape[0]
    pieces = next((n for n in range(2, size + 1) if size % n == 0), 1)

    def piece(state: Any, k: Array) -> tuple[Any, tuple[Any, Any]]:
        inputs, state = source.inputs(source_key, k, state)
        return state, (jax.vmap(lambda one: draw_step(jax.random.fold_in(draw_key, one), one))(k), inputs)

    def in_pieces(state: Any) -> tuple[Any, tuple[Any, Any]]:
        state, drawn = jax.lax.scan(piece, state, k.reshape(pieces, -1))
        return state, jax.tree.map(lambda leaf: leaf.reshape(size, *leaf.shape[2:]), drawn)

    state, (drawn, inputs) = jax.lax.platform_dependent(state, cpu=in_pieces, default=lambda state: piece(state, k))
    return drawn, inputs, state
