"""Appendix, reducing the momentum in experiment 4a: switching mean of variance 0.4."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from sweeps import _response, _switching, exp4_variance
from sweeps._claims import Claim

VARIANTS = _switching.VARIANTS
VARIANCE = 0.4  # caption of the figure


def point(seed, mu, T, **reading):
    return exp4_variance.point(seed, VARIANCE, T, mu, **reading)


def axes(scale: str) -> dict[str, np.ndarray]:
    return _response.axes(scale, _switching.LONGEST, mu=_response.MOMENTA)


def figure(data: xr.Dataset) -> Figure:
    return _response.figure(
        data.log10_distance,
        data.diverged,
        "mu",
        f"Reduced momentum: switching mean, $v$ = {VARIANCE}, $d$ = 5",
        x=_response.INTERVAL,
    )


def claims(data: xr.Dataset) -> list[Claim]:
    return _response.momentum_claims(data.log10_distance)
