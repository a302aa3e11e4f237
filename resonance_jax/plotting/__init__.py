"""Pictures of sweeps.

Diverged runs are never left out of a picture: their share is drawn, and means are over all runs.
"""

from resonance_jax.plotting.confidence import mean_and_band
from resonance_jax.plotting.curves import growth_curves, response
from resonance_jax.plotting.diagnosis import diagnosis_figure
from resonance_jax.plotting.heatmap import contours, heatmap, zero_lines
from resonance_jax.plotting.overview import overview

__all__ = [
    "contours",
    "diagnosis_figure",
    "growth_curves",
    "heatmap",
    "mean_and_band",
    "overview",
    "response",
    "zero_lines",
]
