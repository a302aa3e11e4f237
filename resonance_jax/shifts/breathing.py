"""A shift of the variance: the inputs breathe around a mean at rest."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks, naming
from resonance_jax.shifts.base import Shift
from resonance_jax.shifts.inputs import Inputs
from resonance_jax.shifts.periodic import periodic


def breathing(f: ArrayLike, *, variance: ArrayLike = 0.5) -> Shift:
    """Mean 0, and a variance that is larger than that of the problem by  variance * (1 + sin(2 pi f k)).

    The curvature of the loss then oscillates in all directions, as the length of a pendulum would: resonance without
    any motion of the mean.

    Args:
        f: frequency in turns per step, in [0, 0.5]; 0 is the iid baseline, which adds `variance` at every step.
        variance: mean of what is added; it swings between 0 and twice that.

    Returns:
        A periodic shift that moves every input alike.

    >>> inputs, _ = breathing(0.25).inputs(None, jnp.arange(4), ())
    >>> [round(float(each), 3) for each in inputs.variance]
    [0.5, 1.0, 0.5, 0.0]
    """
    checks.between("variance", variance, 0, jnp.inf, "give the mean of the variance to add")

    def profile(phase: Array) -> Inputs:
        mean = jnp.asarray(variance, phase.dtype)
        return Inputs(jnp.zeros((1,), phase.dtype), mean * (1 + jnp.sin(2 * jnp.pi * phase)))

    shift = periodic(f, profile, iid_variance=variance)
    return shift._replace(label=naming.call("breathing", f=f, variance=variance))
