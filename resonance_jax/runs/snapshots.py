"""Snapshots of a run: equally spaced steps, how a run is cut at them, and labels for what was seen there."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax import checks
from resonance_jax.numerics.labelled import Labelled

State = TypeVar("State")


def snapshot_steps(record: int, num_steps: int) -> tuple[int, ...]:
    """Steps after which a snapshot is taken, the last at the end; none where `record` is 0.

    Raises:
        ValueError: `record` is not a whole number from 0 to `num_steps`.

    >>> snapshot_steps(4, 10)
    (2, 5, 8, 10)
    """
    if not checks.is_concrete(record) or not isinstance(record, int | np.integer) or isinstance(record, bool):
        raise ValueError(f"record must be a plain whole number, got {record!r}; it counts snapshots of a run")
    if not 0 <= record <= num_steps:
        raise ValueError(
            f"record must lie between 0 and num_steps={num_steps}, got {record}; a step has at most one snapshot"
        )
    return tuple(round((i + 1) * num_steps / record) for i in range(int(record)))


def along_steps(values: Array, steps: Sequence[int]) -> Labelled:
    """Values of the snapshots over the dimension `step`.

    >>> along_steps(jnp.zeros(2), (5, 10)).coords
    ((5, 10),)
    """
    return Labelled(values, ("step",), (tuple(steps),))


def growth_between(log_start: Array, logs: Array, steps: Sequence[int]) -> Array:
    """Growth per step from the start to the first snapshot, and from each snapshot to the next.

    Args:
        log_start: log of the size at the start.
        logs: of the size at the snapshots, (m,).
        steps: of the snapshots.
    """
    lengths = np.diff(np.array([0, *steps]))
    return jnp.diff(jnp.concatenate([log_start[None], logs])) / jnp.asarray(lengths, logs.dtype)


def walk(
    advance: Callable[[State, int, bool], State],
    observe: Callable[[State], Any],
    state: State,
    *,
    steps: Sequence[int],
    num_steps: int,
    tail: int,
) -> tuple[State, Any]:
    """A run of `num_steps`, the last `tail` of them measured, and what is observed after the steps of the snapshots.

    Nothing is stored but the snapshots. Between them lie two lengths at most, which differ by one step, so that the run
    is a loop over snapshots in which the odd step is a branch: the program does not grow with their number.

    Args:
        advance: state, number of steps, whether they are measured -> state.
        observe: state -> tree of arrays.
        state: at the start.
        steps: from `snapshot_steps`.
        num_steps, tail: of the run.

    Returns:
        The state at the end, and the observations with the snapshots in front; None without snapshots.

    >>> def advance(state, steps, measured):
    ...     return state + steps
    >>> walk(advance, lambda state: state, jnp.int32(0), steps=(2, 5, 8, 10), num_steps=10, tail=4)[1].tolist()
    [2, 5, 8, 10]
    """
    measured_from = num_steps - tail
    if not steps:
        state = advance(state, measured_from, False) if measured_from else state
        return advance(state, tail, True), None

    def segments(state: State, lengths: Sequence[int], measure: bool) -> tuple[State, Any]:
        shortest = min(lengths)

        def segment(state: State, longer: Any) -> tuple[State, Any]:
            state = advance(state, shortest, measure)
            if max(lengths) > shortest:
                state = jax.lax.cond(longer, lambda state: advance(state, 1, measure), lambda state: state, state)
            return state, observe(state)

        return jax.lax.scan(segment, state, jnp.asarray([length > shortest for length in lengths]))

    bounds = [*itertools.pairwise((0, *steps))]
    before = [end - begin for begin, end in bounds if end <= measured_from]
    after = [end - begin for begin, end in bounds if begin >= measured_from]
    seen = []
    if before:
        state, one = segments(state, before, False)
        seen.append(one)
    for begin, end in bounds:
        if begin < measured_from < end:  # the tail begins between two snapshots
            state = advance(advance(state, measured_from - begin, False), end - measured_from, True)
            seen.append(jax.tree.map(lambda leaf: leaf[None], observe(state)))
    if after:
        state, one = segments(state, after, True)
        seen.append(one)
    return state, jax.tree.map(lambda *parts: jnp.concatenate(parts), *seen)
