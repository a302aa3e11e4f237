"""Validation on the host, at the entry points, of values that are concrete.

A tracer has no value to look at and passes: what a sweep puts on its axes is not checked against these ranges.
"""

from typing import Any

import numpy as np
from jax.core import Tracer


def is_concrete(value: Any) -> bool:
    return not isinstance(value, Tracer)


def between(name: str, value: Any, low: float, high: float, remedy: str, *, open_low: bool = False) -> None:
    """ValueError unless the value is one finite number and, where concrete, low <= value (low < value) <= high."""
    if np.shape(value) != ():
        raise ValueError(
            f"{name} must be one number, got shape {np.shape(value)}; put its values on an axis of rj.sweep"
        )
    if not is_concrete(value):
        return
    number = np.asarray(value)
    if number.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be a number, got {value!r}; {remedy}")
    inside = (number > low if open_low else number >= low) & (number <= high) & np.isfinite(number)
    if not inside:
        interval = f"{'(' if open_low else '['}{low:g}, {high:g}{')' if np.isinf(high) else ']'}"
        raise ValueError(f"{name} must lie in {interval}, got {value}; {remedy}")


def at_least_one(name: str, value: Any, remedy: str) -> None:
    """ValueError unless the value is a whole number >= 1."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}; {remedy}")


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}; pick one of them")
