"""Experiment 1, validating the theory: sinusoidal mean, linear regression, SGDm; distance over (f, mu)."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from resonance_jax import Claim
from sweeps import _heatmap

axes = _heatmap.axes


def point(seed, f, mu):
    return _heatmap.run(seed, mu, _heatmap.PROCESSES["sinusoid"](f)) | _heatmap.predicted(f, mu)


def figure(data: xr.Dataset) -> Figure:
    return _heatmap.figure(data, "SGDm under a sinusoidal mean")


def claims(data: xr.Dataset) -> list[Claim]:
    predicted = data.predicted_rate.isel(seed=0)
    grows = predicted > 0
    error = np.abs(data.growth_rate.mean("seed") - predicted).where(grows).median() / predicted.where(grows).median()
    return [
        *_heatmap.claims(data, where="Validating Theory", least=0.98),
        Claim(
            "where rho > 1 the distance grows exponentially with rate rho",
            "theorem 1 and caption of the heatmap figure",
            f"median |measured - predicted| growth per step is {float(error):.1%} of the median predicted one",
            "at most 15%",
            bool(error <= 0.15),
        ),
    ]
