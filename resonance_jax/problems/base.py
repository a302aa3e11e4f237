"""What a problem is to `train`: data, loss and error."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jax import Array


class Batch(NamedTuple):
    """The samples of one step."""

    inputs: Array  # (samples, inputs)
    noise: Array  # (samples,), of the targets


class Problem(NamedTuple):
    """Pure functions over parameters, which may be any tree of arrays.

    `truth` is what a run is measured against and the optimizer does not change: theta*, or a test set.
    """

    dim: int  # inputs
    init: Callable[..., tuple[Any, Any]]  # key, shift, its state -> parameters to start from, truth
    draw: Callable[..., Any]  # key, mean (dim,), spread=0 -> batch of one step
    loss: Callable[[Any, Any, Any], Array]  # parameters, truth, batch -> scalar whose gradient the optimizer sees
    error: Callable[[Any, Any], Array]  # parameters, truth -> what is averaged over the last steps
    measure: str = "loss"  # name of the error: distance or loss
