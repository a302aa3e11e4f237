"""Appendix, reducing the momentum in experiment 4b: switching mean in 9 inputs."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from sweeps import _response, _switching, exp4_dimension
from sweeps._claims import Claim

VARIANTS = _switching.VARIANTS


def point(seed, mu, T, **reading):
    return exp4_dimension.point(seed, exp4_dimension.MOST, T, mu, **reading)


def axes(scale: str) -> dict[str, np.ndarray]:
    return _response.axes(scale, _switching.LONGEST, mu=_response.MOMENTA)


def figure(data: xr.Dataset) -> Figure:
    return _response.figure(
        data.log10_distance,
        data.diverged,
        "mu",
        "Reduced momentum: switching mean, $d$ = 9, $v$ = 0.25",
        x=_response.INTERVAL,
    )


def claims(data: xr.Dataset) -> list[Claim]:
    return _response.momentum_claims(data.log10_distance)
