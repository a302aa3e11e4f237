"""Experiment 5, ablating the optimizer's linearity: Adam under a switching mean, beta_1 in [0.9, 0.99]."""

from typing import Any

import jax
import numpy as np
import optax
import xarray as xr
from matplotlib.figure import Figure

import resonance_jax as rj
from resonance_jax import Claim
from sweeps import _response
from sweeps._shared import each

TAIL = 2000  # caption of the figure
LONGEST = 100  # table of experiment 5
WHERE = "Ablating Optimizer Linearity"


def point(seed, beta1, T, samples=1, input_variance=0.1, v=1.0):
    problem: dict[str, Any] = dict(dim=_response.DIM, samples=samples, input_variance=input_variance)
    return rj.train(
        jax.random.key(seed),
        shift=rj.shifts.switching(T, dim=_response.DIM, variance=v),
        problem=rj.problems.linear_regression(**_response.LINEAR | problem),
        optimizer=optax.adam(_response.ETA, b1=beta1, b2=0.999),
        num_steps=_response.NUM_STEPS,
        tail=TAIL,
    )


def axes(scale: str) -> dict[str, np.ndarray]:
    return _response.axes(scale, LONGEST, {"beta1": np.linspace(0.9, 0.99, 10)})


def figure(data: xr.Dataset) -> Figure:
    label = rf"mean distance $\Vert\theta_k-\theta^*\Vert$, last {TAIL} steps"
    title = "Adam under a switching mean, $d$ = 5, $v$ = 1"
    log10 = np.log10(data.distance).rename("distance")
    return _response.figure(log10, data.diverged_at >= 0, "beta1", title, x=_response.INTERVAL, label=label)


def claims(data: xr.Dataset) -> list[Claim]:
    curves = data.distance.mean("seed")
    top = _response.highest(curves)
    at = curves.where(curves["T"] > 0).idxmax("T").values
    ends = [curves.sel(T=0), curves.isel(T=-1)]
    ratio = top / np.maximum(*ends)
    diverged = int((data.diverged_at >= 0).sum())
    return [
        Claim(
            "there is a band of T for which convergence is worse",
            WHERE,
            f"largest distance over T against the larger of T = 0 and T = {LONGEST}: "
            f"{each(ratio.values, '.2f', 'beta_1', data.beta1)} times",
            "above 1 for every beta_1, and more than 1.2 at the largest",
            bool((ratio > 1).all() and ratio[-1] > 1.2),
        ),
        Claim(
            "Adam does not diverge",
            WHERE,
            f"{diverged} of {data.distance.size} runs diverge; largest distance {float(data.distance.max()):.2g}",
            "none, and no distance above 10",
            diverged == 0 and float(data.distance.max()) < 10,
        ),
        Claim(
            "the response is of the order of 10^0",
            WHERE,
            f"largest mean distance: {each(top.values, '.2f', 'beta_1', data.beta1)}",
            "0.1 to 10",
            bool(((top > 0.1) & (top < 10)).all()),
        ),
        Claim(
            "the response is higher for larger beta_1",
            "caption of the figure of experiments 4 and 5",
            f"largest mean distance: {each(top.values, '.2f', 'beta_1', data.beta1)}",
            "rises with beta_1",
            bool((top.diff("beta1") > 0).all()),
        ),
        Claim(
            "its peak moves to longer T as beta_1 grows (ours, not the paper's)",
            "not stated",
            f"T of the largest mean distance: {each(at, 'g', 'beta_1', data.beta1)}",
            "longer at the largest beta_1 than at the smallest",
            bool(at[-1] > at[0]),
        ),
    ]
