"""Appendix, reducing the momentum in experiment 6: a ReLU network under a switching mean of variance 0.4."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from sweeps import _response, exp6_mlp
from sweeps._claims import Claim, each

VARIANTS = exp6_mlp.VARIANTS
VARIANCE = 0.4  # caption of the figure
WHERE = "Reducing the momentum parameter"


def point(seed, mu, T, **reading):
    return exp6_mlp.point(seed, VARIANCE, T, mu, **reading)


def axes(scale: str) -> dict[str, np.ndarray]:
    return exp6_mlp.response_axes(scale, mu=_response.MOMENTA)


def figure(data: xr.Dataset) -> Figure:
    return exp6_mlp.curves_figure(data, "mu", f"Reduced momentum: ReLU network, $v$ = {VARIANCE}")


def claims(data: xr.Dataset) -> list[Claim]:
    curves = exp6_mlp.mean_loss(data)
    top = _response.highest(curves)
    excess = top / curves.sel(T=0)
    return [
        Claim(
            "reducing the momentum significantly damps the response",
            WHERE,
            f"largest mean loss over T: {each(top.values, '.3f', 'mu', data.mu)}",
            "at the smallest mu less than half of that at the largest",
            float(top[0]) < 0.5 * float(top[-1]),
        ),
        Claim(
            "mu = 0.85 removes the resonant response completely",
            WHERE,
            f"largest mean loss over T against the iid baseline: {each(excess.values, '.2f', 'mu', data.mu)} times",
            "at mu = 0.85 at most 1.2 times",
            float(excess[0]) <= 1.2,
        ),
    ]
