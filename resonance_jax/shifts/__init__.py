"""Mean sequences of the inputs, one file each."""

from resonance_jax.shifts.base import Shift as Shift
from resonance_jax.shifts.base import periodic as periodic
from resonance_jax.shifts.sinusoid import sinusoid as sinusoid
