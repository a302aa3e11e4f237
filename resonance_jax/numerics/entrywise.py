"""Small matrices and vectors as tuples of scalars.

Written for one run, each entry is a scalar; under `vmap` each entry becomes its own array over the lanes of the grid,
with the lanes innermost. XLA then fuses a whole step into vectorised elementwise arithmetic, where the batched `@` of
4x4 matrices runs 20 times slower (two Arm cores) or 25 times (one H200).
"""

from typing import Any

import jax.numpy as jnp
from jax import Array

Vector = tuple[Array, ...]
Matrix = tuple[Vector, ...]  # rows


def vector(array: Array) -> Vector:
    """Entries of the last axis."""
    return tuple(array[..., i] for i in range(array.shape[-1]))


def matrix(array: Array) -> Matrix:
    """Entries of the last two axes, row by row."""
    return tuple(vector(array[..., i, :]) for i in range(array.shape[-2]))


def to_array(rows: Matrix) -> Array:
    """The matrix as an array again, shape (rows, columns)."""
    return jnp.stack([jnp.stack(row) for row in rows])


def dot(a: Vector, b: Vector) -> Any:
    return sum((x * y for x, y in zip(a[1:], b[1:], strict=True)), a[0] * b[0])


def matvec(a: Matrix, x: Vector) -> Vector:
    return tuple(dot(row, x) for row in a)


def matmul(a: Matrix, b: Matrix) -> Matrix:
    columns = tuple(zip(*b, strict=True))
    return tuple(tuple(dot(row, column) for column in columns) for row in a)
