"""What is fitted, on which data, one problem in each file."""

from resonance_jax.problems.base import Batch, Gaussian, LeastSquares, Noise, Problem, Recorded, Stream
from resonance_jax.problems.linear_regression import linear_regression
from resonance_jax.problems.mlp_regression import mlp_regression
from resonance_jax.problems.orders import Order, blocks, buffer
from resonance_jax.problems.recorded import recorded

__all__ = [
    "Batch",
    "Gaussian",
    "LeastSquares",
    "Noise",
    "Order",
    "Problem",
    "Recorded",
    "Stream",
    "blocks",
    "buffer",
    "linear_regression",
    "mlp_regression",
    "recorded",
]
