"""The least-squares line through points that come one after another, in a few numbers (Welford's method)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class Line(NamedTuple):
    """Sums over the points (t, y) so far."""

    number: Array  # of points, as a float
    t: Array  # mean
    y: Array  # mean
    tt: Array  # sum of (t - mean)^2
    ty: Array  # sum of (t - mean of t) (y - mean of y)


def nothing(dtype: Any) -> Line:
    """No points yet."""
    zero = jnp.zeros((), dtype)
    return Line(zero, zero, zero, zero, zero)


def add(line: Line, t: Array, y: Array, counts: Array) -> Line:
    """With the point (t, y) as well, where it counts."""
    number = line.number + 1
    off_t, off_y = t - line.t, y - line.y
    mean_t, mean_y = line.t + off_t / number, line.y + off_y / number
    more = Line(number, mean_t, mean_y, line.tt + off_t * (t - mean_t), line.ty + off_t * (y - mean_y))
    return jax.tree.map(lambda new, old: jnp.where(counts, new, old), more, line)


def slope(line: Line, otherwise: Array) -> Array:
    """Of the line; another number where there are fewer than two points.

    >>> line, yes = nothing(jnp.float32), jnp.array(True)
    >>> for t, y in ((0.0, 1.0), (1.0, 4.0), (2.0, 7.0)):
    ...     line = add(line, jnp.float32(t), jnp.float32(y), yes)
    >>> float(slope(line, jnp.float32(0)))
    3.0
    """
    return jnp.where(line.tt > 0, line.ty / jnp.where(line.tt > 0, line.tt, 1), otherwise)
