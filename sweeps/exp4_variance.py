"""Experiment 4a, ablating periodicity further: a mean drawn anew every T steps, of variance v; distance over T."""

import numpy as np
import xarray as xr

import resonance_jax as rj
from resonance_jax import Claim
from sweeps import _response, _switching
from sweeps._shared import each

VARIANTS = _switching.VARIANTS
WHERE = _switching.WHERE


def point(seed, v, T, mu=_response.MU, samples=5, input_variance=0.25, loss_factor=2.0):
    return _switching.run(seed, T, v, _response.DIM, mu, samples, input_variance, loss_factor)


axes, figure = _switching.curves("SGDm under a switching mean, $d$ = 5", v=np.linspace(0, 0.4, 5))


def claims(data: xr.Dataset) -> list[Claim]:
    curves = rj.log10_mean(data.log10_distance, "seed")
    top = _response.highest(curves)
    strongest = curves.isel(v=-1)
    at = float(strongest.where(strongest["T"] > 0).idxmax())
    iid = curves.sel(T=0)
    heights = each(top.values, ".1f", "v", data.v)
    return [
        Claim(
            "the mean's switching makes SGDm diverge, most for small T",
            WHERE,
            f"at v = {float(data.v[-1]):g} the largest distance is 10^{float(top[-1]):.1f}, at T = {at:g}; "
            f"at T = {float(curves['T'][-1]):g} 10^{float(strongest.isel(T=-1)):.1f}",
            "above 10^3, in the lower half of the range, and lower at its end",
            float(top[-1]) > 3 and at <= _switching.LONGEST / 2 and float(strongest.isel(T=-1)) < float(top[-1]),
        ),
        Claim(
            "a higher variance results in much more instability",
            WHERE,
            f"log10 of the largest distance over T: {heights}",
            "rises with v",
            bool((top.diff("v") > 0).all()),
        ),
        Claim(
            "even for smaller variances the distance is of the order of 10^3",
            WHERE,
            f"log10 of the largest distance over T: {heights}",
            "at least 3 for every v > 0",
            bool((top.where(data.v > 0, drop=True) >= 3).all()),
            why="Not known: no reading of the settings that we tried grows at the smallest variances.",
        ),
        Claim(
            "distances are of the order of 10^19",
            "Ablating Optimizer Linearity",
            f"largest 10^{float(top.max()):.1f}",
            "10^16 to 10^22",
            16 <= float(top.max()) <= 22,
            why="The height depends on input variance, samples and factor of the loss, which the paper leaves open.",
        ),
        Claim(
            "the iid baseline, T = 0, converges",
            "introduction of the experiments",
            f"log10 of the mean distance at T = 0: {each(iid.values, '.2f', 'v', data.v)}",
            "below 0 for every v",
            bool((iid < 0).all()),
        ),
    ]
