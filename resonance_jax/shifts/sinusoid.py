"""Experiment 1: the mean of the inputs follows a sine."""

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks
from resonance_jax.shifts.base import Shift, periodic


def sinusoid(f: ArrayLike, *, amplitude: ArrayLike | Sequence[float] = 0.5) -> Shift:
    """Mean  m_k = amplitude * sin(2 pi f k).

    Args:
        f: frequency in turns per step, in [0, 0.5]; 0 is the iid baseline, mean 0.
        amplitude: scalar (every input moves alike), or shape (dim,) for a direction of its own.

    Returns:
        A periodic shift of period 1/f steps.

    >>> shift = sinusoid(0.25)
    >>> means, _ = shift.means(None, jnp.arange(4), ())
    >>> [round(float(mean), 3) + 0 for mean in means[:, 0]]
    [0.0, 0.5, 0.0, -0.5]
    """
    checks.between("f", f, 0, 0.5, "give a frequency in turns per step; a period of T steps is f = 1/T")
    dtype = jnp.result_type(float)
    direction = jnp.atleast_1d(jnp.asarray(amplitude, dtype))

    def profile(phase: Array) -> Array:
        return direction * jnp.sin(2 * jnp.pi * phase)

    return periodic(jnp.asarray(f, dtype), profile)
