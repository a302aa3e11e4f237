"""Appendix, reducing the momentum in experiment 4a: switching mean of variance 0.4."""

from sweeps import _momentum, _switching, exp4_variance

VARIANCE = 0.4  # caption of the figure
VARIANTS = _switching.VARIANTS

point, axes, figure, claims = _momentum.sweep(
    exp4_variance.point, _switching.curves, f"switching mean, $v$ = {VARIANCE}, $d$ = 5", v=VARIANCE
)
