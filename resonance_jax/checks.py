"""Validation on the host, at the entry points, of values that are concrete.

A tracer has no value to look at and passes: what a sweep puts on its axes is not checked against these ranges.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
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
    return int(most), jnp.arange(most) < value


def masked(x: Array, mask: Array | None) -> Array:
    """The array with 0 where the mask of its last axis is False."""
    return x if mask is None else jnp.where(jnp.expand_dims(mask, range(x.ndim - 1)), x, 0)
