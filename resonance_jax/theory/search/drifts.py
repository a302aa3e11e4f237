"""The drifts that a momentum must be safe from: a single one, listed ones, or all frequencies that can have tongues."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from resonance_jax.optimizers.linear import LinearOptimizer
from resonance_jax.shifts.base import Shift
from resonance_jax.theory.search.resonances import (
    curvatures_of,
    frequencies_to_search,
    lowest_frequency,
    num_steps,
    slow_frequencies,
    turning,
)

MOST_FREQUENCIES = 4096  # for one momentum


class Drifts(NamedTuple):
    """The drifts to be safe from."""

    shift: Callable[[Any], Shift]
    at: Callable[[float], np.ndarray]  # momentum -> frequencies to look at, ascending
    argument: Callable[[np.ndarray], np.ndarray]  # frequencies -> what `shift` takes
    cost: Callable[[np.ndarray], np.ndarray]  # frequencies -> how long a rate takes, in any unit
    climb: bool  # whether to search between them as well
    slow: np.ndarray  # further frequencies, below all others
    edge: float | None  # the last one that can be searched, if there are others beyond it
    searched: tuple[float, float]
    unit: str


def drifts_of(
    shift: Shift | Callable[[Any], Shift],
    problem: Any,
    optimizer: Callable[[float], LinearOptimizer],
    momenta: Sequence[float],
    frequencies: Sequence[float] | np.ndarray | None,
) -> Drifts:
    """What `largest_safe_momentum` must search for a single shift, or for all shifts that a function makes.

    Args:
        shift: one, or a function of its frequency or period.
        problem: made by `linear_regression`.
        optimizer: momentum -> the optimizer.
        momenta: some of those that are searched.
        frequencies: where they are listed.
    """
    none = np.zeros(0)
    if isinstance(shift, Shift):
        only = shift
        law = shift.law
        own = np.nan if law.cycle is None or law.longest_cycle is not None else 1 / float(law.cycle)
        f = np.array([own])
        return Drifts(lambda _: only, lambda mu: f, np.nan_to_num, np.nan_to_num, False, none, None, (own, own), "f")
    if frequencies is not None:
        listed = np.asarray(frequencies)
        if listed.ndim != 1 or listed.size == 0 or listed.dtype.kind not in "iuf" or not np.isfinite(listed).all():
            raise ValueError(f"frequencies must be a list of finite numbers, got {frequencies!r}; give at least one")
        listed = np.sort(listed.astype(float))
        ends = (float(listed[0]), float(listed[-1]))
        return Drifts(shift, lambda mu: listed, lambda f: f, lambda f: f, False, none, None, ends, "listed")
    takes_steps = _takes_steps(shift)
    probe = shift(4.0 if takes_steps else 0.25)
    longest = probe.law.longest_cycle
    if longest is not None:
        intervals, ends = np.arange(1.0, longest + 1), (1.0, float(longest))
        interval = (lambda T: T) if takes_steps else (lambda T: 1 / T)
        return Drifts(shift, lambda mu: intervals, interval, lambda T: T, False, none, ends[1], ends, "T")
    curvatures = curvatures_of(probe, problem)
    turns = [turning(optimizer(mu), curvatures).low for mu in momenta]
    least = lowest_frequency(min((omega for omega in turns if omega > 0), default=0.0))
    slow = slow_frequencies(least)

    def at(mu: float) -> np.ndarray:
        f = frequencies_to_search(turning(optimizer(mu), curvatures), lowest=least, most=MOST_FREQUENCIES)
        return np.concatenate([[0.0], f])  # 0: the iid baseline

    def period(f: np.ndarray) -> np.ndarray:
        return np.where(f > 0, 1 / np.where(f > 0, f, 1), 0)

    argument = period if takes_steps else lambda f: f
    return Drifts(shift, at, argument, num_steps, True, slow, None, (float(slow[0]), 0.5), "f")


def _takes_steps(shift: Callable[[Any], Shift]) -> bool:
    """Whether a function of one number takes a period or an interval in steps, or a frequency in turns per step."""
    steps = shift(0.25).law.cycle
    if steps is not None and float(steps) in (4.0, 0.25):
        return float(steps) == 0.25
    name = next(iter(inspect.signature(shift).parameters), "")
    if steps is None and name in ("f", "frequency", "T", "period"):
        return name in ("T", "period")
    raise ValueError(
        "cannot tell which frequencies to search: the shift does not say whether its argument is a frequency or a "
        "number of steps; name the argument f or T, or list frequencies"
    )
