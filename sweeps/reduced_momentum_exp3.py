"""Appendix, reducing the momentum in experiment 3: square wave, five samples a step."""

from sweeps import _momentum, exp3_square_wave

SAMPLES = 5  # caption of the figure
VARIANTS = exp3_square_wave.VARIANTS

point, axes, figure, claims = _momentum.sweep(
    exp3_square_wave.point, exp3_square_wave.curves, f"square wave, {SAMPLES} samples a step", samples=SAMPLES
)
