"""Validation on the host, at the entry points.

A tracer has no value to look at. Where it is the value of an axis as the point got it, its range is written down, and
the sweep holds the values of the axis against it before it compiles; what was computed from it passes unchecked.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer


class Range(NamedTuple):
    """What a check expects of numbers."""

    name: str
    low: float
    high: float
    open_low: bool
    remedy: str

    def check(self, values: Any) -> None:
        numbers = np.atleast_1d(values)
        above = numbers > self.low if self.open_low else numbers >= self.low
        outside = numbers[~(above & (numbers <= self.high) & np.isfinite(numbers))]
        if outside.size:
            left, right = "(" if self.open_low else "[", ")" if np.isinf(self.high) else "]"
            raise ValueError(
                f"{self.name} must lie in {left}{self.low:g}, {self.high:g}{right}, got {outside[0]}; {self.remedy}"
            )


_watched: ContextVar[tuple[Mapping[str, Any], list[tuple[str, Range]]] | None] = ContextVar("watched", default=None)


@contextmanager
def watching(arguments: Mapping[str, Any]) -> Iterator[list[tuple[str, Range]]]:
    """Collect the ranges that checks expect of these traced arguments, by name."""
    found: list[tuple[str, Range]] = []
    token = _watched.set((arguments, found))
    try:
        yield found
    finally:
        _watched.reset(token)


def _write_down(value: Any, expected: Range) -> None:
    arguments, found = _watched.get() or ({}, [])
    found += [(name, expected) for name, argument in arguments.items() if argument is value]


def is_concrete(value: Any) -> bool:
    return not isinstance(value, Tracer)


def between(name: str, value: Any, low: float, high: float, remedy: str, *, open_low: bool = False) -> None:
    """ValueError unless the value is one finite number and, where concrete, low <= value (low < value) <= high."""
    if np.shape(value) != ():
        raise ValueError(
            f"{name} must be one number, got shape {np.shape(value)}; put its values on an axis of rj.sweep"
        )
    expected = Range(name, low, high, open_low, remedy)
    if not is_concrete(value):
        _write_down(value, expected)
        return
    if np.asarray(value).dtype.kind not in "iuf":
        raise ValueError(f"{name} must be a number, got {value!r}; {remedy}")
    expected.check(value)


def at_least_one(name: str, value: Any, remedy: str) -> None:
    """ValueError unless the value is a plain whole number >= 1."""
    if not is_concrete(value):
        raise ValueError(
            f"{name} fixes a shape and must be a plain number, got a traced one; take it off the axes (or out of the "
            "arguments of jit and vmap), and sweep once for each of its values"
        )
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}; {remedy}")


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}; pick one of them")


def count(name: str, value: Any, most: int | None, remedy: str) -> tuple[int, Array | None]:
    """A number of things that fixes a shape. Traced, it is a mask over as many as there are at most.

    Returns:
        The static number and, where fewer of them count, the mask of those that do; None where all do.
    """
    if most is not None:
        at_least_one(f"max_{name}", most, f"it is the largest {name} that may come")
    if is_concrete(value):
        at_least_one(name, value, remedy)
        if most is None or most == value:
            return int(value), None
        if value > most:
            raise ValueError(f"{name} must be at most max_{name}, got {name}={value} > {most}; raise max_{name}")
    elif np.shape(value) != () or not jnp.issubdtype(value.dtype, jnp.integer):
        raise ValueError(
            f"{name} must be one whole number, got {value.dtype} of shape {value.shape}; put integers on the axis"
        )
    if most is None:
        raise ValueError(
            f"{name} is traced, so its largest value must be known; give max_{name}, a plain number, as well"
        )
    if not is_concrete(value):
        _write_down(value, Range(name, 1, most, False, f"max_{name} is the largest value that may come"))
    return int(most), jnp.arange(most) < value


def masked(x: Array, mask: Array | None) -> Array:
    """The array with 0 where the mask of its last axis is False."""
    return x if mask is None else jnp.where(jnp.expand_dims(mask, range(x.ndim - 1)), x, 0)
