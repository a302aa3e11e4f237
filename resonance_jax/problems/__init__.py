"""Data, loss and error, one file each."""

from resonance_jax.problems.linear_regression import LinearRegression as LinearRegression
from resonance_jax.problems.linear_regression import linear_regression as linear_regression
