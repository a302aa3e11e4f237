"""Experiment 1: the mean of the inputs follows a sine."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks, naming
from resonance_jax.shifts.base import Shift
from resonance_jax.shifts.periodic import periodic


def sinusoid(f: ArrayLike, *, amplitude: ArrayLike | Sequence[float] = 0.5) -> Shift:
    """Mean  m_k = amplitude * sin(2 pi f k).

    Args:
        f: frequency in turns per step, in [0, 0.5]; 0 is the iid baseline, mean 0.
        amplitude: scalar, which moves every input of a problem alike; or shape (dim,), one per input.

    Returns:
        A periodic shift of period 1/f steps.

    >>> shift = sinusoid(0.25)
    >>> shift
    sinusoid(f=0.25, amplitude=0.5)
    >>> inputs, _ = shift.inputs(None, jnp.arange(4), ())
    >>> [round(float(mean), 3) + 0 for mean in inputs.mean[:, 0]]
    [0.0, 0.5, 0.0, -0.5]
    """
    direction = jnp.asarray(amplitude, jnp.result_type(float))
    if direction.ndim > 1 or (checks.is_concrete(direction) and not np.isfinite(direction).all()):
        raise ValueError(
            f"amplitude must be a finite number or one of them per input, got {amplitude}; give shape () or (dim,)"
        )

    def alike(phase: Array) -> Array:
        return jnp.reshape(direction * jnp.sin(2 * jnp.pi * phase), (1,))

    def along(phase: Array) -> Array:
        return jnp.sin(2 * jnp.pi * phase)[None]

    shift = periodic(f, along, directions=direction) if direction.ndim else periodic(f, alike)
    return shift._replace(label=naming.call("sinusoid", f=f, amplitude=amplitude))
