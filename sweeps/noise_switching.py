"""Beyond the paper, noise: growth of experiment 4, a mean drawn anew every T steps, against three predictions."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import resonance_jax as rj
from sweeps import _noise, _response, _switching, exp4_dimension
from sweeps._claims import Claim

VARIANCES = np.array([0.1, 0.25, 0.4])  # from those of experiment 4a, and the one of 4b
DIMS = np.array([1, 5, 9])  # fewest and most of experiment 4b, and the one of 4a


def point(seed, v, dim, T, mu=_response.MU, samples=5, input_variance=0.25, loss_factor=2.0):
    shift = rj.shifts.switching(T, dim=dim, variance=v, max_dim=exp4_dimension.MOST)
    problem = rj.problems.linear_regression(
        dim=dim,
        max_dim=exp4_dimension.MOST,
        samples=samples,
        input_variance=input_variance,
        loss_factor=loss_factor,
    )
    return _noise.response_rates(seed, shift, problem, mu)


def axes(scale: str) -> dict[str, np.ndarray]:
    return _response.axes(scale, _switching.LONGEST, v=VARIANCES, dim=DIMS)


def figure(data: xr.Dataset) -> Figure:
    panels = [(f"$v$ = {v:g}, $d$ = 5", {"v": v, "dim": 5}) for v in data.v.values]
    panels += [(f"$v$ = 0.25, $d$ = {d}", {"v": 0.25, "dim": d}) for d in data.dim.values]
    return _noise.curves(data, panels, data.v.size, "SGDm under a switching mean", _response.INTERVAL)


def claims(data: xr.Dataset) -> list[Claim]:
    return _noise.curve_claims(data, "switching")
