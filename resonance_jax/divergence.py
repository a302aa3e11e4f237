"""When a run counts as diverged: relative to its start, not to the range of floats."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks

DIVERGED_ABOVE = 1e3  # PLACEHOLDER


def check(diverged_above: ArrayLike) -> None:
    checks.between("diverged_above", diverged_above, 1, jnp.inf, "a run has diverged where it grew", open_low=True)


def reference(start: Array, zero: Array) -> Array:
    """The error that later ones are held against.

    A run may start close to the optimum, or on it. Observation noise then drives it away, to an error that is many
    times that of the start and harmless. So parameters that are all 0, no model at all, set the scale as well.

    Args:
        start: error at the start.
        zero: error of parameters that are all 0.

    Returns:
        The larger of the two; 1 where neither is a positive number.
    """
    return positive(jnp.maximum(positive(start, 0), positive(zero, 0)), 1)


def positive(error: Array, otherwise: ArrayLike) -> Array:
    """The error; another number where it is 0, infinite or NaN."""
    return jnp.where((error > 0) & jnp.isfinite(error), error, jnp.asarray(otherwise, error.dtype))
