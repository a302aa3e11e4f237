"""Beyond the paper, noise: growth of experiment 3, a square wave in 5 inputs, against three predictions."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import resonance_jax as rj
from sweeps import _noise, _response, exp3_square_wave
from sweeps._claims import Claim

VARIANTS = {"sum": exp3_square_wave.VARIANTS["sum"]}


def point(seed, samples, T, mu=_response.MU, norm=0.5, reduction="mean", loss_factor=2.0):
    shift = rj.shifts.square_wave(T, dim=_response.DIM, norm=norm)
    problem = rj.problems.linear_regression(
        dim=_response.DIM,
        samples=samples,
        max_samples=exp3_square_wave.MOST_SAMPLES,
        input_variance=0.25,
        reduction=reduction,
        loss_factor=loss_factor,
    )
    return _noise.response_rates(seed, shift, problem, mu)


axes = exp3_square_wave.axes


def figure(data: xr.Dataset) -> Figure:
    panels = [
        (f"{n} sample{'s' if n > 1 else ''} a step", {"samples": n})
        for n in np.unique(data.samples[[0, len(data.samples) // 2, -1]])
    ]
    return _noise.curves(data, panels, len(panels), "SGDm under a square wave, $d$ = 5", _response.PERIOD)


def claims(data: xr.Dataset) -> list[Claim]:
    return _noise.curve_claims(data, "square wave")
