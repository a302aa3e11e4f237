"""What `train` asks of a problem."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from jax import Array

from resonance_jax.shifts.base import Shift


class Batch(NamedTuple):
    """The samples of one step."""

    inputs: Array  # (samples, inputs)
    noise: Array  # (samples,), of the targets


class Problem(Protocol):
    """Data, loss and error as pure functions. The parameters are any tree of arrays.

    `truth` is what a run is measured against and the optimizer does not change: theta*, or a test set.
    """

    @property
    def dim(self) -> int:
        """Number of inputs."""
        ...

    @property
    def measure(self) -> str:
        """Name of what `error` gives: distance or loss."""
        ...

    @property
    def draw(self) -> Callable[..., Any]:
        """key, mean (dim,), spread -> batch of one step."""
        ...

    @property
    def loss(self) -> Callable[[Any, Any, Any], Array]:
        """parameters, truth, batch -> scalar whose gradient the optimizer sees."""
        ...

    def init(self, key: Array, shift: Shift, shift_state: Any) -> tuple[Any, Any]:
        """Parameters to start from, and truth."""
        ...

    def error(self, parameters: Any, truth: Any) -> Array:
        """What is averaged over the last steps."""
        ...
