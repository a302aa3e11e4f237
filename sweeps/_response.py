"""Shared by the response curves over T: constants of the tables, grid, picture, peaks."""

from collections.abc import Callable
from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.signal import find_peaks

import resonance_jax as rj
from sweeps._shared import Axes, pick

ETA = 0.01  # table of experiment 3
MU = 0.95  # table of experiment 3
NUM_STEPS = 10_000  # table of experiment 3
TAIL = 500  # captions of the response figures
DIM = 5  # table of experiment 3
DECADES = 6  # curves that span more get a second panel for their low values
PERIOD = "period of the square wave $T$ (steps)"
INTERVAL = "steps between two switches of the mean $T$"
Curves = tuple[Callable[[str], Axes], Callable[[xr.Dataset], Figure]]  # axes of a scale, figure of a dataset
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


def axes(scale: str, longest: int, curves: Axes, *, paper_seeds: int = 10) -> Axes:
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
    # Seeds first, so that chunks are cut here: the draws for a seed and a T serve all curves.
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
    """The response curves, the share of diverged runs above them, and their low values if they span many decades."""
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


def curves(title: str, *, longest: int, x: str, **values: np.ndarray) -> Curves:
    """Axes and figure of distances over T, with a curve for each value of one parameter."""
    (hue,) = values

    def axes_of(scale: str) -> Axes:
        return axes(scale, longest, values)

    def figure_of(data: xr.Dataset) -> Figure:
        return figure(data.log10_distance, data.diverged, hue, title, x=x)

    return axes_of, figure_of


def peaks(curve: xr.DataArray, prominence: float) -> list[tuple[float, float]]:
    """(T, height) of the maxima of a curve that stand out by at least `prominence`, from the shortest T on."""
    padded = np.pad(curve.values, 1, constant_values=curve.values.min())  # an end of the range may be a maximum too
    found, _ = find_peaks(padded, prominence=prominence)
    return [(float(curve["T"][i - 1]), float(curve[i - 1])) for i in found]


def highest(curve: xr.DataArray) -> xr.DataArray:
    """Largest value over T > 0."""
    return curve.where(curve["T"] > 0).max("T")
