"""Experiment 1: the mean of the inputs follows a sine."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks
from resonance_jax.shifts.base import Shift, periodic


def sinusoid(f: ArrayLike, *, amplitude: ArrayLike | Sequence[float] = 0.5) -> Shift:
    """Mean  m_k = amplitude * sin(2 pi f k).

    Args:
        f: frequency in turns per step, in [0, 0.5]; 0 is the iid baseline, mean 0.
        amplitude: scalar (every input of a run moves alike; to theory it is one input), or shape (dim,), one per input.

    Returns:
        A periodic shift of period 1/f steps.

    >>> shift = sinusoid(0.25)
    >>> means, _ = shift.means(None, jnp.arange(4), ())
    >>> [round(float(mean), 3) + 0 for mean in means[:, 0]]
    [0.0, 0.5, 0.0, -0.5]
    """
    direction = jnp.atleast_1d(jnp.asarray(amplitude, jnp.result_type(float)))
    if direction.ndim != 1 or (checks.is_concrete(direction) and not np.isfinite(direction).all()):
        raise ValueError(
            f"amplitude must be a finite number or one of them per input, got {amplitude}; give shape () or (dim,)"
        )

    def profile(phase: Array) -> Array:
        return direction * jnp.sin(2 * jnp.pi * phase)

    return periodic(f, profile, straight=True)
