"""Coefficients as a plain factor times traced numbers, so that what is 0, 1 or cancels is known before anything runs.

A compiled program then does not multiply by 0 and 1: heavy ball read off optax costs what it costs when it is written
by hand, and Nesterov's momentum one multiplication a weight more.
"""

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer


class Number(NamedTuple):
    """factor * product of traced numbers."""

    factor: float
    of: tuple[Array, ...] = ()  # in the order of their identity

    @property
    def is_zero(self) -> bool:
        """Whether it is known to be 0."""
        return self.factor == 0

    @property
    def is_one(self) -> bool:
        """Whether it is known to be 1."""
        return self.factor == 1 and not self.of

    @property
    def value(self) -> float | Array:
        """A plain number where nothing is traced, else a scalar of the working precision."""
        if not self.of:
            return self.factor
        first, *others = (each.astype(jnp.result_type(float)) for each in self.of)
        product = functools.reduce(jnp.multiply, others, first)
        return product if self.factor == 1 else self.factor * product


ZERO, ONE = Number(0.0), Number(1.0)


def number(value: Any) -> Number:
    """A scalar, or an array of equal numbers, traced or not."""
    if not isinstance(value, Tracer):
        return Number(float(np.ravel(np.asarray(value))[0]))
    return Number(1.0, (value if value.ndim == 0 else jnp.ravel(value)[0],))


def times(a: Number, b: Number) -> Number:
    """a b."""
    if a.factor * b.factor == 0:
        return ZERO
    return Number(a.factor * b.factor, tuple(sorted(a.of + b.of, key=id)))


def plus(a: Number, b: Number) -> Number:
    """a + b."""
    if a.factor == 0 or b.factor == 0:
        return b if a.factor == 0 else a
    if list(map(id, a.of)) == list(map(id, b.of)):
        return Number(a.factor + b.factor, a.of) if a.factor + b.factor else ZERO
    return number(a.value + b.value)


def minus(a: Number, b: Number) -> Number:
    """a - b."""
    return plus(a, Number(-b.factor, b.of))


def over(a: Number, b: Number) -> Number:
    """a / b; a / 1 where b is 0."""
    if b.factor == 0 or a.factor == 0:
        return a
    above, below = _without(a.of, b.of), _without(b.of, a.of)
    result = Number(a.factor / b.factor, tuple(above))
    if not below:
        return result
    rest = Number(1.0, tuple(below)).value
    return times(result, number(1 / jnp.where(rest == 0, 1, rest)))


def divides(b: Number, a: Number) -> bool:
    """Whether a / b is known to need no division."""
    return a.is_zero or not _without(b.of, a.of)


def _without(some: tuple[Array, ...], others: tuple[Array, ...]) -> list[Array]:
    """What is left of some where each of the others takes away one."""
    left = list(some)
    for each in others:
        same = next((i for i, other in enumerate(left) if other is each), None)
        if same is not None:
            del left[same]
    return left


def total(terms: Iterable[Number]) -> Number:
    """Sum."""
    result = ZERO
    for term in terms:
        result = plus(result, term)
    return result


def weighted(terms: Iterable[tuple[float | Array, Any]]) -> Any:
    """The sum of coefficients times arrays; nothing is multiplied by a plain 0 or 1. A plain 0 if nothing is left.

    >>> weighted([(0.0, 5.0), (1.0, 2.0), (3.0, 4.0)])
    14.0
    """
    parts = [
        value if isinstance(factor, float) and factor == 1 else factor * value
        for factor, value in terms
        if not (isinstance(factor, float) and factor == 0)
    ]
    return sum(parts[1:], parts[0]) if parts else 0.0
