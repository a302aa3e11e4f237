"""What holds for some lane of a grid, as one answer for all of them."""

import jax.numpy as jnp
from jax import Array
from jax.custom_batching import custom_vmap


@custom_vmap
def any_lane(flag: Array) -> Array:
    """A flag that is up for every lane of `vmap` once it is up for one.

    `lax.cond` of a flag with lanes computes both branches and selects; of this one, which has none, the one it takes.

    >>> import jax
    >>> jax.vmap(any_lane)(jnp.array([False, True])).tolist()
    [True, True]
    """
    return flag


@any_lane.def_vmap
def _(axis_size: int, in_batched: list[bool], flag: Array) -> tuple[Array, bool]:
    return any_lane(jnp.any(flag, axis=0)), False
