"""What the inputs do over time, one shift in each file; `laws` has what theory knows of them."""

from resonance_jax.shifts.ar2 import ar2
from resonance_jax.shifts.base import Shift
from resonance_jax.shifts.breathing import breathing
from resonance_jax.shifts.fitting.fit import Fit, fit
from resonance_jax.shifts.inputs import Inputs
from resonance_jax.shifts.laws.periodic import Periodic
from resonance_jax.shifts.laws.redrawn import Redrawn
from resonance_jax.shifts.laws.sampled import Sampled
from resonance_jax.shifts.periodic import periodic
from resonance_jax.shifts.resting import resting
from resonance_jax.shifts.sinusoid import sinusoid
from resonance_jax.shifts.square_wave import square_wave
from resonance_jax.shifts.switching import switching

__all__ = [
    "Fit",
    "Inputs",
    "Periodic",
    "Redrawn",
    "Sampled",
    "Shift",
    "ar2",
    "breathing",
    "fit",
    "periodic",
    "resting",
    "sinusoid",
    "square_wave",
    "switching",
]
