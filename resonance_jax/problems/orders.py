"""In which order recorded rows come: as they were, in shuffled blocks, or through a shuffle buffer."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks, naming
from resonance_jax.numerics.permutation import permuted, round_keys


class Order(NamedTuple):
    """The rows of each step, pass after pass.

    Fields:
        init: key, number of rows -> state.
        rows: key, steps k (block,), state, number of rows, samples per step -> row numbers (block, samples); state.
            The number of rows is a multiple of the samples.
        label: what `repr` shows.

    >>> rows, state = time().rows(None, jnp.arange(3), (), 4, 2)  # 4 rows, 2 a step: a pass takes two steps
    >>> rows.tolist()
    [[0, 1], [2, 3], [0, 1]]
    """

    init: Callable[[Array, int], Any]
    rows: Callable[[Array, Array, Any, int, int], tuple[Array, Any]]
    label: str = ""

    def __repr__(self) -> str:
        return self.label or "Order(...)"


def time() -> Order:
    """As recorded."""

    def rows(key: Array, k: Array, state: tuple[()], num_rows: int, samples: int) -> tuple[Array, tuple[()]]:
        return _positions(k, num_rows, samples), state

    return Order(lambda key, num_rows: (), rows, "time")


def shuffled() -> Order:
    """All rows once in each pass, in an order drawn anew."""
    return blocks(1)._replace(label="shuffled")


def blocks(length: ArrayLike) -> Order:
    """Blocks of consecutive rows, in an order that each pass draws anew.

    What is faster than a block stays as it was recorded, what is slower is destroyed. Growth that returns from some
    length on tells the time scale that is to blame.

    Args:
        length: rows of a block, and may be traced. The rows that fill no block end each pass. From the number of rows
            on, all of them are one block, and the order is that of time.

    >>> blocks(24)
    blocks(24)
    """
    if checks.is_concrete(length):
        checks.at_least_one("length", length, "give the rows that stay together")
    else:
        checks.between("length", length, 1, jnp.inf, "give the rows that stay together")

    def init(key: Array, num_rows: int) -> Array:
        return round_keys(key)

    def rows(key: Array, k: Array, state: Array, num_rows: int, samples: int) -> tuple[Array, Array]:
        size = jnp.clip(jnp.asarray(length), 1, num_rows).astype(jnp.int32)
        num_blocks = num_rows // size
        turn = k // (num_rows // samples)

        def row(position: Array, turn: Array) -> Array:
            block, within = position // size, position % size
            taken = permuted(jnp.minimum(block, num_blocks - 1), num_blocks, state, turn).astype(jnp.int32)
            return jnp.where(block < num_blocks, taken * size + within, position)

        step = jax.vmap(row, in_axes=(0, None))
        return jax.vmap(step)(_positions(k, num_rows, samples), turn), state

    return Order(init, rows, f"blocks({naming.short(length)})")


def buffer(size: ArrayLike, *, max_size: int | None = None) -> Order:
    """Through a shuffle buffer, as `tf.data`, PyTorch and Hugging Face datasets have it.

    The buffer holds `size` rows. Each time it gives away one of them, drawn at random, and takes the next row of the
    stream in its place; at the end of the rows it goes on with the first, as `dataset.repeat().shuffle(size)` does.

    Args:
        size: rows in the buffer; 1 is the order of time.
        max_size: its largest value, where it is an axis of a sweep.

    >>> buffer(1000)
    buffer(1000)
    """
    most, _ = checks.count("size", size, max_size, "give the rows that the buffer holds")

    def init(key: Array, num_rows: int) -> Array:
        return jnp.arange(most, dtype=jnp.int32) % num_rows  # row in each slot

    def rows(key: Array, k: Array, held: Array, num_rows: int, samples: int) -> tuple[Array, Array]:
        uniform = jax.vmap(lambda one: jax.random.uniform(jax.random.fold_in(key, one), (samples,), jnp.float32))(k)
        number = jnp.asarray(size).astype(jnp.int32)
        slot = jnp.minimum((uniform.reshape(-1) * number.astype(jnp.float32)).astype(jnp.int32), number - 1)
        taken = (_positions(k, num_rows, samples).reshape(-1) + number) % num_rows  # into the slots, in turn
        # Each gives the row that was last put into its slot: of these draws, or before them.
        when = jnp.arange(slot.size, dtype=jnp.int32)
        by_slot = jnp.argsort(slot, stable=True)
        sorted_slot = slot[by_slot]
        same = jnp.append(False, sorted_slot[1:] == sorted_slot[:-1])
        before = jnp.zeros_like(when).at[by_slot].set(jnp.where(same, jnp.roll(by_slot, 1).astype(jnp.int32), -1))
        given = jnp.where(before >= 0, taken[before], held[slot])
        last = jnp.full((most,), -1, jnp.int32).at[slot].max(when)
        return given.reshape(-1, samples), jnp.where(last >= 0, taken[last], held)

    return Order(init, rows, f"buffer({naming.short(size)})")


def as_order(order: Any) -> Order:
    """An `Order`, also by its name; ValueError for anything else."""
    if isinstance(order, Order):
        return order
    if isinstance(order, str) and order in NAMED:
        return NAMED[order]()
    raise ValueError(
        f"order must be 'time', 'shuffled', blocks(length) or buffer(size), got {order!r}; the last two are "
        "rj.problems.blocks and rj.problems.buffer"
    )


NAMED = {"time": time, "shuffled": shuffled}


def _positions(k: Array, num_rows: int, samples: int) -> Array:
    """Which of the pass's rows each step takes, (block, samples)."""
    first = k % (num_rows // samples) * samples
    return first[:, None] + jnp.arange(samples, dtype=jnp.int32)[None, :]
