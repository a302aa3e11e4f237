"""No shift at all."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks, naming
from resonance_jax.shifts.base import Shift
from resonance_jax.shifts.inputs import Inputs
from resonance_jax.shifts.periodic import periodic


def resting(variance: ArrayLike = 0.0) -> Shift:
    """A mean of 0 at every step, of inputs whose variance is larger by `variance`.

    >>> resting().inputs(None, jnp.arange(2), ())[0].mean.tolist()
    [[0.0], [0.0]]
    """
    checks.between("variance", variance, 0, jnp.inf, "give the variance to add to that of the inputs")

    def profile(phase: Array) -> Inputs:
        return Inputs(jnp.zeros((1,), phase.dtype), jnp.asarray(variance, phase.dtype))

    return periodic(0.0, profile, iid_variance=variance)._replace(label=naming.call("resting", variance=variance))
