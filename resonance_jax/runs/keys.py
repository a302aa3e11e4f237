"""Keys for cells that want draws of their own."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike


def cell_key(seed: ArrayLike, *coordinates: ArrayLike) -> Array:
    """A typed key that differs from cell to cell, `jax.random.key(seed)` folded with the bits of the coordinates.

    By default all cells of a sweep with one seed share their draws: each cell's distribution is exact, contrasts
    between cells are less noisy, and the numbers are drawn once per seed. With this key every cell is independent of
    the others, and the sweep draws them all.

    >>> a, b = cell_key(0, 0.9, 0.01), cell_key(0, 0.9, 0.02)
    >>> bool(jax.random.normal(a) == jax.random.normal(b))
    False
    """
    key = jax.random.key(seed)
    for coordinate in coordinates:
        value = jnp.asarray(coordinate)
        if not jnp.issubdtype(value.dtype, jnp.integer):
            value = value.astype(jnp.result_type(float)) + 0.0  # -0 is 0
        for bits in jnp.atleast_1d(jax.lax.bitcast_convert_type(value, jnp.uint32)):
            key = jax.random.fold_in(key, bits)
    return key
