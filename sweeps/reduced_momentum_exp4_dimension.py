"""Appendix, reducing the momentum in experiment 4b: switching mean in 9 inputs."""

from sweeps import _momentum, _switching, exp4_dimension

DIM = exp4_dimension.MOST
VARIANTS = _switching.VARIANTS

point, axes, figure, claims = _momentum.sweep(
    exp4_dimension.point, _switching.curves, f"switching mean, $d$ = {DIM}, $v$ = {exp4_dimension.VARIANCE}", dim=DIM
)
