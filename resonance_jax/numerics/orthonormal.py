"""Orthonormal columns by Gram and Schmidt's method.

LAPACK's QR has no batched form, not even on a GPU, and may wait for threads that the sweep itself occupies.
"""

import jax
import jax.numpy as jnp
from jax import Array

from resonance_jax.numerics import logscale


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


def orthonormal_to_rounding(matrix: Array) -> tuple[Array, Array, Array]:
    """As `orthonormal`, for columns of any number and size, however close to dependent they are.

    Each column is made orthogonal to those before it twice, which leaves errors of rounding alone (Kahan's "twice is
    enough"), by a loop over the columns, so that the program does not grow with their number.

    Returns:
        Q, the diagonal of R, and whether what is left of each column is more than rounding.

    >>> _, sizes, independent = orthonormal_to_rounding(jnp.array([[3.0, 1.0, 6.0], [4.0, 0.0, 8.0]]))
    >>> [round(float(size), 3) for size in sizes[:2]], independent.tolist()
    ([5.0, 0.8], [True, True, False])
    """
    rounding = 8 * jnp.finfo(matrix.dtype).eps

    def add(Q: Array, i: Array) -> tuple[Array, tuple[Array, Array]]:
        column = jnp.take(matrix, i, axis=1)
        whole = logscale.norm(column)
        column = column / jnp.where(whole > 0, whole, 1)
        for _ in range(2):
            column = column - jnp.matmul(Q, jnp.matmul(Q.T, column, precision="highest"), precision="highest")
        size = logscale.norm(column)
        Q = Q.at[:, i].set(column / jnp.where(size > 0, size, 1))
        return Q, (whole * size, size > rounding)

    Q, (sizes, independent) = jax.lax.scan(add, jnp.zeros_like(matrix), jnp.arange(matrix.shape[1]))
    return Q, sizes, independent
