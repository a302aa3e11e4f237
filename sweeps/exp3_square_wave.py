"""Experiment 3, ablating the expected gradient: a square wave in 5 inputs, 1 to 5 samples a step; distance over T."""

import functools

import numpy as np
import xarray as xr

import resonance_jax as rj
from resonance_jax import Claim
from sweeps import _response
from sweeps._shared import each

LONGEST = 120  # table of experiment 3
MOST_SAMPLES = 5  # text of experiment 3
VARIANTS = {
    "sum": dict(norm=1.0, reduction="sum", loss_factor=1.0),  # gradients summed over the samples, half squared error
    "unit_norm": dict(norm=1.0),  # the text: a unit vector; the table has half of it
}
PROMINENCE = 0.15  # in decades, of a peak
WHERE = "Ablating Expected Gradient"
CAPTION = "caption of the figure of experiment 3"


def point(seed, samples, T, mu=_response.MU, norm=0.5, reduction="mean", loss_factor=2.0):
    shift = rj.shifts.square_wave(T, dim=_response.DIM, norm=norm)
    gradient = dict(samples=samples, max_samples=MOST_SAMPLES, reduction=reduction, loss_factor=loss_factor)
    return _response.run(seed, shift, mu, dim=_response.DIM, input_variance=0.25, **gradient)


curves = functools.partial(_response.curves, longest=LONGEST, x=_response.PERIOD)
axes, figure = curves("SGDm under a square wave, $d$ = 5", samples=np.arange(1, MOST_SAMPLES + 1))


def claims(data: xr.Dataset) -> list[Claim]:
    curves = rj.log10_mean(data.log10_distance, "seed")
    samples = data.samples.values
    moving = curves.where(curves["T"] > 0, drop=True)
    peaks = {int(n): _response.peaks(moving.sel(samples=n), PROMINENCE) for n in samples}
    top = _response.highest(curves)
    at = moving.idxmax("T").values
    iid = float(curves.sel(T=0).max())
    listed = "; ".join(
        f"{n} samples: {', '.join(f'10^{height:.1f} at T = {T:g}' for T, height in few) or 'none'}"
        for n, few in peaks.items()
    )
    return [
        Claim(
            "every curve has three peaks",
            CAPTION,
            f"maxima that stand out by {PROMINENCE} decades: {listed}",
            "three for every number of samples",
            all(len(few) == 3 for few in peaks.values()),
            why="Not known: how the paper reduces gradients over the samples is not stated, and the number of peaks "
            "depends on it.",
        ),
        Claim(
            "the left peak is the largest of each curve",
            CAPTION,
            f"the highest point lies at T = {each(at, 'g', 'samples', samples)}",
            "it is the leftmost peak",
            all(bool(few) and few[0][1] == max(few, key=lambda peak: peak[1])[1] for few in peaks.values()),
        ),
        Claim(
            "the left peaks exceed the vertical scale, the centre peak shows only for the black curve",
            CAPTION,
            "neither the scale nor the colours are stated; the heights of all peaks stand in the first row",
            "cannot be decided from the text",
            None,
            why="The text states neither the vertical scale nor the colours.",
        ),
        Claim(
            "fewer samples damp the resonance",
            WHERE,
            f"log10 of the largest distance: {each(top.values, '.2f', 'samples', samples)}",
            "rises with the samples",
            bool((top.diff("samples") > 0).all()),
            why="Fewer samples in a mean only add noise, and noise adds growth; a sum over fewer samples also is a "
            "smaller step, which damps (reading sum).",
        ),
        Claim(
            "fewer samples shift the resonance to longer T",
            CAPTION,
            f"T of the highest point: {each(at, 'g', 'samples', samples)}",
            "falls as the samples grow, and not equal at both ends",
            bool(np.all(np.diff(at) <= 0) and at[0] > at[-1]),
            why="The natural frequency depends on the size of a step, which the number of samples changes only if "
            "gradients are summed (reading sum).",
        ),
        Claim(
            "resonance is still present with one sample",
            WHERE,
            f"largest mean distance with one sample 10^{float(top[0]):.2f}; of the iid baselines 10^{iid:.2f}",
            "above 1, and the baselines below 1",
            float(top[0]) > 0 > iid,
        ),
    ]
