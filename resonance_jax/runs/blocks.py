"""A run as blocks of steps: what is drawn is drawn for a whole block, outside the update."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
from jax import Array

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
    noise: Callable[[Array], Any], shift: Shift, keys: tuple[Array, Array], k: Array, shift_state: Any
) -> tuple[Any, Array, Any]:
    """Noise and means of the steps k: they depend on seed and shift, not on the optimizer.

    On a CPU a loop of its own makes XLA store what is drawn, where it would draw it again in every lane that uses it.

    Args:
        noise: key of a step -> what it draws.
        shift: of the inputs.
        keys: of the noise and of the shift.
        k: consecutive steps, (n,).
        shift_state: before them.

    Returns:
        Noise and means, both with the steps in front, and the state of the shift after them.
    """
    noise_key, shift_key = keys
    size = k.shape[0]
    pieces = next((n for n in range(2, size + 1) if size % n == 0), 1)

    def piece(state: Any, k: Array) -> tuple[Any, tuple[Any, Array]]:
        means, state = shift.means(shift_key, k, state)
        return state, (jax.vmap(lambda one: noise(jax.random.fold_in(noise_key, one)))(k), means)

    def in_pieces(state: Any) -> tuple[Any, tuple[Any, Array]]:
        state, drawn = jax.lax.scan(piece, state, k.reshape(pieces, -1))
        return state, jax.tree.map(lambda leaf: leaf.reshape(size, *leaf.shape[2:]), drawn)

    shift_state, (noise_of, means) = jax.lax.platform_dependent(
        shift_state, cpu=in_pieces, default=lambda state: piece(state, k)
    )
    return noise_of, means, shift_state
