"""Data, loss and error, one file each."""

from resonance_jax.problems.base import Batch as Batch
from resonance_jax.problems.base import Noise as Noise
from resonance_jax.problems.base import Problem as Problem
from resonance_jax.problems.linear_regression import LinearRegression as LinearRegression
from resonance_jax.problems.linear_regression import linear_regression as linear_regression
from resonance_jax.problems.mlp_regression import mlp_regression as mlp_regression
