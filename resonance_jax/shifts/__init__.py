"""Mean sequences of the inputs, one file each."""

from resonance_jax.shifts.ar2 import ar2 as ar2
from resonance_jax.shifts.base import Redrawn as Redrawn
from resonance_jax.shifts.base import Shift as Shift
from resonance_jax.shifts.base import periodic as periodic
from resonance_jax.shifts.base import resting as resting
from resonance_jax.shifts.sinusoid import sinusoid as sinusoid
from resonance_jax.shifts.square_wave import square_wave as square_wave
from resonance_jax.shifts.switching import switching as switching
