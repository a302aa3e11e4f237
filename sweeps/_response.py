"""What the response curves over T share: constants of the tables, grid, picture, peaks."""

from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.signal import find_peaks

import resonance_jax as rj
from sweeps._claims import Claim, each, pick

ETA = 0.01  # table of experiment 3
MU = 0.95  # table of experiment 3
MOMENTA = np.linspace(0.85, 0.95, 5)  # "Reducing the momentum parameter"
NUM_STEPS = 10_000  # table of experiment 3
TAIL = 500  # captions of the response figures
DIM = 5  # table of experiment 3
DECADES = 6  # curves that span more get a second panel for their feet
PERIOD = "period of the square wave $T$ (steps)"
INTERVAL = "steps between two switches of the mean $T$"
LINEAR: dict[str, Any] = dict(noise_variance=0.1, weight_variance=0.25)  # table of experiment 3


def run(seed, shift: rj.shifts.Shift, mu, **problem) -> dict[str, jax.Array]:
    """One run of SGDm on linear regression with observation noise."""
    return rj.oscillate(
        jax.random.key(seed),
        shift=shift,
        problem=rj.problems.linear_regression(**LINEAR | problem),
        mu=mu,
        eta=ETA,
        num_steps=NUM_STEPS,
        tail=TAIL,
    )


def axes(scale: str, longest: int, *, paper_seeds: int = 10, **curves: np.ndarray) -> dict[str, np.ndarray]:
    """T from 0 to the longest, the parameter of the curves, seeds."""
    size = pick(
        scale,
        tiny=dict(step=longest // 2, seed=2, curves=2),
        quick=dict(step=longest // 24, seed=min(10, paper_seeds), curves=5),
        paper=dict(step=1, seed=paper_seeds, curves=99),
    )
    chosen = {
        name: np.unique(values[np.linspace(0, len(values) - 1, min(len(values), size["curves"])).astype(int)])
        for name, values in curves.items()
    }
    # Seeds first, so that chunks cut here: what is drawn for a seed and a T serves all curves.
    return {"seed": np.arange(size["seed"]), "T": np.arange(0, longest + 1, size["step"]).astype(float)} | chosen


def figure(
    data: xr.DataArray,
    diverged: xr.DataArray,
    hue: str,
    title: str,
    *,
    x: str,
    log10: bool = True,
    label: str | None = None,
) -> Figure:
    """The response curves, the share of diverged runs above them, and their feet where they span many decades."""
    low, high = float(data.min()), float(data.max())
    wide = log10 and high - low > DECADES
    picture, panels = plt.subplots(1, 1 + wide, figsize=(11 if wide else 6.4, 4.8), layout="constrained", squeeze=False)
    count = int(diverged.sum())
    told = f"{count} of {diverged.size} runs diverged" if count else "no run diverged"
    between = "; " if wide else "\n"
    picture.suptitle(f"{title}{between}bands: 95% over {data.seed.size} seeds; {told}", fontsize=11)
    label = label or rf"mean distance $\Vert\theta_k-\theta^*\Vert$, last {TAIL} steps"
    for ax, shares in zip(panels[0], (diverged, None), strict=False):
        rj.plotting.response(data, hue=hue, diverged=shares, log10=log10, label=label, ax=ax)
        ax.set_xlabel(x)
    if wide:
        foot = rj.log10_mean(data, "seed").min()
        panels[0][1].set_ylim(foot - 0.2, foot + 2.5)
        panels[0][1].set_title("the same, near the baseline", fontsize=10)
        panels[0][1].get_legend().remove()
    return picture


def peaks(curve: xr.DataArray, prominence: float) -> list[tuple[float, float]]:
    """(T, height) of the maxima of a curve that stand out by at least so much, from the shortest T on."""
    padded = np.pad(curve.values, 1, constant_values=curve.values.min())  # an end of the range may be a maximum too
    found, _ = find_peaks(padded, prominence=prominence)
    return [(float(curve["T"][i - 1]), float(curve[i - 1])) for i in found]


def highest(curve: xr.DataArray) -> xr.DataArray:
    """Largest value over T > 0."""
    return curve.where(curve["T"] > 0).max("T")


def momentum_claims(log10_distance: xr.DataArray, where: str = "Reducing the momentum parameter") -> list[Claim]:
    """The two statements about every figure of reduced momentum, for distances."""
    curves = rj.log10_mean(log10_distance, "seed")
    top = highest(curves)
    smallest = float(curves.mu[0])
    baseline = float(curves.sel(T=0).isel(mu=0))
    return [
        Claim(
            "reducing the momentum significantly damps the response",
            where,
            f"log10 of the largest distance over T: {each(top.values, '.2f', 'mu', curves.mu)}",
            "falls with mu, by at least a factor of 10 in all",
            bool((top.diff("mu") > 0).all()) and float(top[-1] - top[0]) > 1,
        ),
        Claim(
            "mu = 0.85 removes the resonant response completely",
            where,
            f"at mu = {smallest:.2f} the largest distance over T is {10 ** float(top[0]):.2g}, "
            f"{10 ** (float(top[0]) - baseline):.1f} times the iid baseline",
            "no divergence: below 1",
            float(top[0]) < 0,
        ),
    ]
