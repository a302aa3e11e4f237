"""What a shift says about the inputs of a step."""

from typing import NamedTuple

from jax import Array


class Inputs(NamedTuple):
    """Mean of the inputs, and what the shift adds to their variance.

    Of one step as here; of a block of steps both have the steps in front, (block, dim) and (block,).

    >>> import jax.numpy as jnp
    >>> Inputs(mean=jnp.array([0.5, -0.5]), variance=jnp.array(0.0)).mean.shape
    (2,)
    """

    mean: Array  # (dim,), or (1,) where every input moves alike
    variance: Array  # (), added to the variance of each input
