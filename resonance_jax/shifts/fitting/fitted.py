"""Shifts with fitted numbers. The mean moves around an offset, and stands at it where nothing moves."""

import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax import naming
from resonance_jax.shifts.ar2 import process
from resonance_jax.shifts.base import Shift
from resonance_jax.shifts.fitting.ar2_in_noise import AR2
from resonance_jax.shifts.inputs import Inputs
from resonance_jax.shifts.laws.periodic import Periodic
from resonance_jax.shifts.periodic import periodic


def standing(offset: np.ndarray) -> Shift:
    """A mean that stands at the offset, (d,)."""
    dtype = jnp.result_type(float)
    still = Inputs(jnp.asarray(offset, dtype), jnp.zeros((), dtype))

    def inputs(key: Array, k: Array, state: tuple[()]) -> tuple[Inputs, tuple[()]]:
        means = jnp.broadcast_to(still.mean[None, :], (*k.shape, *still.mean.shape))
        return Inputs(means, jnp.zeros(k.shape, dtype)), state

    return Shift(
        init=lambda key: (),
        inputs=inputs,
        law=Periodic(jnp.asarray(jnp.inf, dtype), lambda phase: still),
        stationary=lambda key, state: still,
        label=naming.call("standing", offset=offset),
    )


def repeating(f: float, offset: np.ndarray, harmonics: tuple[int, ...], coefficients: np.ndarray) -> Shift:
    """Mean  offset + sum of  a_h cos(2 pi h f k) + b_h sin(2 pi h f k).

    Args:
        f: frequency in turns per step.
        offset: (d,).
        harmonics: the h.
        coefficients: (2 harmonics, d), a_h and b_h in turn.
    """

    def profile(phase: Array) -> Array:
        angles = 2 * jnp.pi * phase * jnp.asarray(harmonics, phase.dtype)
        turning = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1).reshape(-1, 1)
        return jnp.asarray(offset, phase.dtype) + jnp.sum(turning * jnp.asarray(coefficients, phase.dtype), axis=0)

    label = naming.call("repeating", f=f, offset=offset, harmonics=harmonics, coefficients=coefficients)
    return periodic(f, profile)._replace(label=label)


def wandering(found: AR2, offset: np.ndarray, direction: np.ndarray) -> Shift:
    """Mean  offset + z_k direction  with an AR(2) process z_k."""
    correlation = found.phi_1 / (1 - found.phi_2)
    shift = process(
        found.phi_1,
        found.phi_2,
        (1 - correlation) * (1 + correlation),
        scale=found.variance**0.5,
        noise_scale=found.noise_variance**0.5,
        direction=direction,
        offset=offset,
    )
    label = naming.call(
        "wandering",
        phi_1=found.phi_1,
        phi_2=found.phi_2,
        variance=found.variance,
        offset=offset,
        direction=direction,
    )
    return shift._replace(label=label)
