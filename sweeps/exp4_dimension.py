"""Experiment 4b, ablating periodicity further: a mean drawn anew every T steps in 1 to 9 inputs; distance over T."""

import numpy as np
import xarray as xr

import resonance_jax as rj
from resonance_jax import Claim
from sweeps import _response, _switching
from sweeps._shared import each

VARIANTS = _switching.VARIANTS
MOST = 9  # table of experiment 4
VARIANCE = 0.25  # table of experiment 4: v


def point(seed, dim, T, mu=_response.MU, samples=5, input_variance=0.25, loss_factor=2.0):
    return _switching.run(seed, T, VARIANCE, dim, mu, samples, input_variance, loss_factor, max_dim=MOST)


axes, figure = _switching.curves(f"SGDm under a switching mean, $v$ = {VARIANCE}", dim=np.arange(1, MOST + 1))


def claims(data: xr.Dataset) -> list[Claim]:
    curves = rj.log10_mean(data.log10_distance, "seed")
    top = _response.highest(curves)
    at = curves.where(curves["T"] > 0).idxmax("T").values
    iid = curves.sel(T=0)
    return [
        Claim(
            "the response depends strongly on the number of inputs",
            _switching.WHERE,
            f"log10 of the largest distance over T: {float(top[0]):.1f} for the fewest inputs, "
            f"{float(top[-1]):.1f} for the most; it lies at T = {each(at, 'g', 'd', data.dim)}",
            "rises by more than 3 from the smallest d to the largest",
            float(top[-1] - top[0]) > 3,
        ),
        Claim(
            "resonance is exacerbated in higher dimensions",
            _switching.WHERE,
            f"log10 of the largest distance over T: {each(top.values, '.1f', 'd', data.dim)}",
            "rises with d",
            bool((top.diff("dim") > 0).all()),
        ),
        Claim(
            "the iid baseline, T = 0, converges",
            "introduction of the experiments",
            f"log10 of the mean distance at T = 0: {each(iid.values, '.2f', 'd', data.dim)}",
            "below 0 for every d",
            bool((iid < 0).all()),
        ),
    ]
