"""Optimizers that are linear in the gradient, as the few numbers that determine them."""

from resonance_jax.optimizers.linear import Form, LinearOptimizer, heavy_ball, nesterov
from resonance_jax.optimizers.reading import read

__all__ = ["Form", "LinearOptimizer", "heavy_ball", "nesterov", "read"]
