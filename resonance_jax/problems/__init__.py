"""What is fitted, on which data, one problem in each file."""

from resonance_jax.problems.base import Batch, Gaussian, LeastSquares, Noise, Problem
from resonance_jax.problems.linear_regression import linear_regression
from resonance_jax.problems.mlp_regression import mlp_regression

__all__ = ["Batch", "Gaussian", "LeastSquares", "Noise", "Problem", "linear_regression", "mlp_regression"]
