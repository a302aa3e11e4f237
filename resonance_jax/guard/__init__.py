"""Momentum that lets go while gradients grow."""

from resonance_jax.guard.growing import Sizes
from resonance_jax.guard.measure import measure_resonance
from resonance_jax.guard.wrapper import ResonanceGuardState, resonance_guard

__all__ = ["ResonanceGuardState", "Sizes", "measure_resonance", "resonance_guard"]
