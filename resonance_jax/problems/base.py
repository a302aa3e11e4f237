"""What a problem is to `train`: data, loss and error."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jax import Array


class Noise(NamedTuple):
    """What a step draws; it depends on the seed alone, so a sweep draws it once per seed."""

    z: Array  # (samples, dim), standard normal
    eps: Array | None  # (samples,), observation noise; None where there is none


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
    noise: Callable[[Array], Any]  # key -> what one step draws
    batch: Callable[..., Any]  # noise, mean (dim,), spread=0 -> samples of the step
    loss: Callable[[Any, Any, Any], Array]  # parameters, truth, batch -> scalar whose gradient the optimizer sees
    error: Callable[[Any, Any], Array]  # parameters, truth -> what is averaged over the last steps
    measure: str = "loss"  # name of the error: distance or loss
