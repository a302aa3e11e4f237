"""What a problem is: data, loss and error; and for least squares, the sequence of its gradients."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax.numerics.entrywise import Matrix, Vector


class Noise(NamedTuple):
    """What a step draws; it depends on the seed alone, so a sweep draws it once per seed.

    >>> import jax, resonance_jax as rj
    >>> problem = rj.problems.linear_regression(dim=2, samples=5)
    >>> problem.draw(jax.random.key(0), jnp.int32(7)).z.shape
    (5, 2)
    """

    z: Array  # (samples, dim), standard normal
    eps: Array | None  # (samples,), observation noise; None where there is none


class Batch(NamedTuple):
    """The samples of one step.

    >>> import jax, resonance_jax as rj
    >>> problem = rj.problems.linear_regression(dim=2, samples=5)
    >>> inputs = rj.shifts.Inputs(mean=jnp.array([1.0, -1.0]), variance=jnp.array(0.0))
    >>> problem.batch(problem.draw(jax.random.key(0), jnp.int32(7)), inputs).inputs.shape  # the bias is an input too
    (5, 3)
    """

    inputs: Array  # (samples, inputs)
    noise: Array  # (samples,), of the targets


class Gaussian(NamedTuple):
    """Inputs that are normal around the mean of the shift: all that exact theory needs to know of B.

        B = (factor / samples) sum of x x^T,    x = (m + z, 1),  z ~ N(0, covariance),  the 1 for a bias

    in the eigenbasis of the covariance.

    >>> import resonance_jax as rj
    >>> gaussian = rj.problems.linear_regression(dim=2, samples=5, input_variance=[1.0, 4.0]).least_squares.gaussian
    >>> int(gaussian.samples), sorted(gaussian.variances.tolist())
    (5, [1.0, 4.0])
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


class Stream(NamedTuple):
    """Inputs that a problem brings with it, in the place of those of a shift: recorded rows, in some order.

    Fields:
        init: key -> state.
        inputs: key, steps k (block,), state -> any tree with the steps in front, of which `batch` gets one; state.

    >>> import resonance_jax as rj
    >>> rj.problems.recorded(np.arange(4.0), samples=2).stream is not None
    True
    """

    init: Callable[[Array], Any]
    inputs: Callable[[Array, Array, Any], tuple[Any, Any]]


class Recorded(NamedTuple):
    """What is known of recorded rows apart from their order.

    >>> import resonance_jax as rj
    >>> known = rj.problems.recorded(np.arange(4.0), samples=2).least_squares.recorded
    >>> known.steps, known.rows.shape  # the second column is the 1 of the bias
    (2, (4, 2))
    """

    rows: np.ndarray  # (N, num_weights), features with the 1 of the bias
    samples: int  # rows of a step
    order: Any  # an `Order`
    curvature: np.ndarray  # (num_weights, num_weights), the mean of B over all rows
    steps: int  # of a pass
    ordered: "Callable[[Any], LeastSquares]"  # `Order` -> the same rows in that order


class LeastSquares(NamedTuple):
    """A run of least squares as a sequence (B_k, b_k): the gradient of step k is  B_k (theta - theta*) - b_k.

    Whatever yields this sequence runs in `oscillate`, in the Lyapunov estimates and in `explain`. Coordinates of the
    weights may be any orthonormal ones: only lengths of errors are looked at. Below, `inputs` are those of one step, of
    the shift or of the problem's own stream.

    >>> import resonance_jax as rj
    >>> rj.problems.linear_regression(dim=3, samples=1).least_squares.num_weights  # with the bias
    4
    """

    num_weights: int
    weights: Callable[[Array], tuple[Array, Array]]  # key -> theta*, theta_0, each (num_weights,)
    draw: Callable[[Array, Array], Any]  # key, step k -> what B and b are made of, free of the inputs
    matrix: Callable[[Any, Any], Matrix]  # drawn, inputs -> B, entry by entry: for a handful of weights
    product: Callable[[Any, Any, Array], Array]  # drawn, inputs, error -> B error, without forming B: for many
    trace: Callable[[Any, Any], Array]  # drawn, inputs -> tr B
    kick: Callable[[Any, Any], Vector | None]  # drawn, inputs -> b, entry by entry; None: always 0
    gaussian: Gaussian | None = None  # None: known by its draws alone
    stream: Stream | None = None  # as that of the problem, in the form that the functions above take
    recorded: Recorded | None = None  # None: not recorded


class Problem(NamedTuple):
    """What is fitted, on which data: pure functions over parameters, which may be any tree of arrays.

    Fields:
        dim: number of inputs.
        init: key, shift, its state -> parameters to start from; truth, what a run is measured against and the
            optimizer does not change: theta*, or a test set.
        draw: key, step k -> what the step draws, free of the shift, so that a sweep draws it once per seed.
        batch: drawn, inputs of the step -> samples of the step. The inputs are the `Inputs` of the shift, or what the
            problem's own stream yields.
        loss: parameters, truth, batch -> scalar whose gradient the optimizer sees.
        error: parameters, truth -> what is averaged over the last steps.
        measure: name of the error, `distance` or `loss`.
        least_squares: the same problem as a sequence of linear gradients; None: it is no least squares.
        stream: inputs of its own; a run then has no shift. None: the inputs are those of the shift.
        label: what `repr` shows.

    >>> import resonance_jax as rj
    >>> problem = rj.problems.linear_regression(dim=3, samples=1)
    >>> problem.dim, problem.measure
    (3, 'distance')
    """

    dim: int
    init: Callable[..., tuple[Any, Any]]
    draw: Callable[[Array, Array], Any]
    batch: Callable[[Any, Any], Any]
    loss: Callable[[Any, Any, Any], Array]
    error: Callable[[Any, Any], Array]
    measure: str = "loss"
    least_squares: LeastSquares | None = None
    stream: Stream | None = None
    label: str = ""

    def __repr__(self) -> str:
        return self.label or f"Problem(dim={self.dim}, measure={self.measure!r})"
