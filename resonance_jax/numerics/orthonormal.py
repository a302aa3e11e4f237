"""Orthonormal columns by Gram and Schmidt's method.

LAPACK's QR has no batched form, not even on a GPU, and may wait for threads that the sweep itself occupies.
"""

import jax.numpy as jnp
from jax import Array


def orthonormal(matrix: Array) -> tuple[Array, Array]:
    """Q and the diagonal of R; a column that depends on those before it becomes 0.

    >>> Q, sizes = orthonormal(jnp.array([[3.0, 1.0], [4.0, 0.0]]))
    >>> [round(float(each), 3) for each in (*Q[:, 0], *sizes)]
    [0.6, 0.8, 5.0, 0.8]
    """
    columns: list[Array] = []
    sizes: list[Array] = []
    for i in range(matrix.shape[1]):
        column = matrix[:, i]
        for before in columns:
            column = column - jnp.sum(before * column) * before
        size = jnp.sqrt(jnp.sum(column**2))
        columns.append(column / jnp.where(size > 0, size, 1))
        sizes.append(size)
    return jnp.stack(columns, axis=1), jnp.stack(sizes)
