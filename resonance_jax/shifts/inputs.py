"""What a shift says about the inputs of a step."""

from typing import NamedTuple

from jax import Array


class Inputs(NamedTuple):
    """Mean of the inputs, and what the shift adds to their variance.

    Of one step as here; of a block of steps both have the steps in front, (block, dim) and (block,).
    """

    mean: Array  # (dim,), or (1,) where every input moves alike
    variance: Array  # (), added to the variance of each input
