"""What every growth rate returns: the rate and its standard error."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array


class Estimate(NamedTuple):
    """Growth per step and its standard error; `float(estimate)` is the rate.

    >>> float(Estimate(rate=jnp.array(-0.25), standard_error=jnp.array(0.0)))
    -0.25
    """

    rate: Array  # (), of log of what grows, per step
    standard_error: Array  # (), of the rate; 0 where the rate is exact

    def __float__(self) -> float:
        return float(self.rate)


def exact(rate: Array) -> Estimate:
    """A rate that is computed, not estimated."""
    return Estimate(rate, jnp.zeros_like(rate))
