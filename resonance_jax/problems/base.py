"""What a problem is: data, loss and error; and for least squares, the sequence of its gradients."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from resonance_jax.numerics.entrywise import Matrix, Vector
from resonance_jax.shifts.inputs import Inputs


class Noise(NamedTuple):
    """What a step draws; it depends on the seed alone, so a sweep draws it once per seed."""

    z: Array  # (samples, dim), standard normal
    eps: Array | None  # (samples,), observation noise; None where there is none


class Batch(NamedTuple):
    """The samples of one step."""

    inputs: Array  # (samples, inputs)
    noise: Array  # (samples,), of the targets


class Gaussian(NamedTuple):
    """Inputs that are normal around the mean of the shift: all that exact theory needs to know of B.

        B = (factor / samples) sum of x x^T,    x = (m + z, 1),  z ~ N(0, covariance),  the 1 for a bias

    in the eigenbasis of the covariance.
    """

    factor: Array  # (), loss factor, times the samples for gradients that are summed
    samples: Array  # (), draws per step
    variances: Array  # () for isotropic inputs, else (dim,): eigenvalues of the covariance
    axes: Array | None  # (dim, dim), its eigenvectors as columns; None where the inputs are its eigenbasis already
    dim: Array  # (), inputs that count
    input_mask: Array | None  # (max_dim,), the inputs that count; None where all do
    bias: bool  # whether the constant 1 is an input

    def turned(self, mean: Array) -> Array:
        """A mean in the eigenbasis."""
        return mean if self.axes is None else jnp.matmul(self.axes.T, mean, precision="highest")


class LeastSquares(NamedTuple):
    """A run of least squares as a sequence (B_k, b_k): the gradient of step k is  B_k (theta - theta*) - b_k.

    Whatever yields this sequence runs in `oscillate`, in the Lyapunov estimates and in `explain`. Coordinates of the
    weights may be any orthonormal ones: only lengths of errors are looked at.
    """

    num_weights: int
    weights: Callable[[Array], tuple[Array, Array]]  # key -> theta*, theta_0, each (num_weights,)
    draw: Callable[[Array, Array], Any]  # key, step k -> what B and b are made of, free of the shift
    gradient: Callable[[Any, Inputs], tuple[Matrix, Vector | None]]  # drawn, inputs -> B, b (None: 0), entry by entry
    product: Callable[[Any, Inputs, Array], Array]  # drawn, inputs, error -> B error, without forming B
    gaussian: Gaussian | None = None  # None: known by its draws alone


class Problem(NamedTuple):
    """What is fitted, on which data: pure functions over parameters, which may be any tree of arrays.

    Fields:
        dim: number of inputs.
        init: key, shift, its state -> parameters to start from; truth, what a run is measured against and the
            optimizer does not change: theta*, or a test set.
        draw: key, step k -> what the step draws, free of the shift, so that a sweep draws it once per seed.
        batch: drawn, `Inputs` of the step -> samples of the step.
        loss: parameters, truth, batch -> scalar whose gradient the optimizer sees.
        error: parameters, truth -> what is averaged over the last steps.
        measure: name of the error, `distance` or `loss`.
        least_squares: the same problem as a sequence of linear gradients; None: it is no least squares.
        label: what `repr` shows.
    """

    dim: int
    init: Callable[..., tuple[Any, Any]]
    draw: Callable[[Array, Array], Any]
    batch: Callable[[Any, Inputs], Any]
    loss: Callable[[Any, Any, Any], Array]
    error: Callable[[Any, Any], Array]
    measure: str = "loss"
    least_squares: LeastSquares | None = None
    label: str = ""

    def __repr__(self) -> str:
        return self.label or f"Problem(dim={self.dim}, measure={self.measure!r})"
