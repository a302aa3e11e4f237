"""Appendix, reducing the momentum in experiment 3: square wave, five samples a step."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from sweeps import _response, exp3_square_wave
from sweeps._claims import Claim

VARIANTS = exp3_square_wave.VARIANTS


def point(seed, mu, T, **reading):
    return exp3_square_wave.point(seed, exp3_square_wave.MOST_SAMPLES, T, mu, **reading)


def axes(scale: str) -> dict[str, np.ndarray]:
    return _response.axes(scale, exp3_square_wave.LONGEST, mu=_response.MOMENTA)


def figure(data: xr.Dataset) -> Figure:
    return _response.figure(
        data.log10_distance, data.diverged, "mu", "Reduced momentum: square wave, 5 samples a step", x=_response.PERIOD
    )


def claims(data: xr.Dataset) -> list[Claim]:
    return _response.momentum_claims(data.log10_distance)
