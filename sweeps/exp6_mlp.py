"""Experiment 6, ablating the model's linearity: a ReLU network under a switching mean; test loss over T."""

import jax
import numpy as np
import optax
import xarray as xr
from matplotlib.figure import Figure

import resonance_jax as rj
from resonance_jax import Claim
from sweeps import _response
from sweeps._shared import Axes, each

NUM_STEPS = 20_000  # table of experiment 6
TAIL = 2000  # caption of the figure
SEEDS = 20  # caption of the figure
LONGEST = 100  # table of experiment 6
BAND = (5, 40)  # caption of the figure
VARIANTS = {
    "noisy_test": dict(noisy_test=True),  # the test set carries the observation noise
    "small_noise": dict(noisy_test=True, noise_variance=0.01),  # 0.1 read as a standard deviation
}
FEW = 0.1  # up to this share of diverged runs, claims use the mean of the others; the figure draws the mean of all runs
WHERE = "Ablating Model Linearity"


def point(seed, v, T, mu=_response.MU, noisy_test=False, noise_variance=0.1):
    return rj.train(
        jax.random.key(seed),
        shift=rj.shifts.switching(T, dim=2, variance=v),
        problem=rj.problems.mlp_regression(noisy_test=noisy_test, noise_variance=noise_variance),
        optimizer=optax.sgd(_response.ETA, momentum=mu),
        num_steps=NUM_STEPS,
        tail=TAIL,
    )


def curves(title: str, **values: np.ndarray) -> _response.Curves:
    """Axes and figure of losses over T, with a curve for each value of one parameter."""
    (hue,) = values

    def axes(scale: str) -> Axes:
        grid = _response.axes(scale, LONGEST, values, paper_seeds=SEEDS)
        if scale == "quick":  # fewer runs: each takes 20,000 steps
            grid |= {"T": np.array([0, 1, 2, 5, 10, 15, 20, 30, 40, 60, 80, 100.0]), "seed": np.arange(8)}
            grid[hue] = grid[hue][[0, len(grid[hue]) // 2, -1]]
        return grid

    def figure(data: xr.Dataset) -> Figure:
        label = f"mean test loss, last {TAIL} steps"
        return _response.figure(
            data.loss, data.diverged_at >= 0, hue, title, x=_response.INTERVAL, log10=False, label=label
        )

    return axes, figure


axes, figure = curves("SGDm on a ReLU network under a switching mean", v=np.linspace(0, 0.4, 5))


def mean_loss(data: xr.Dataset) -> xr.DataArray:
    """Mean over the runs that did not diverge; infinite if more than a few did, since there is no mean loss then."""
    diverged = data.diverged_at >= 0
    return data.loss.where(~diverged).mean("seed").where(diverged.mean("seed") <= FEW, np.inf)


def band(curves: xr.DataArray) -> xr.DataArray:
    """Mean over the band of T that the paper names."""
    return curves.sel(T=slice(*BAND)).mean("T")


def claims(data: xr.Dataset) -> list[Claim]:
    curves = mean_loss(data)
    strongest = curves.isel(v=-1)
    inside, first, last = (float(one) for one in (band(strongest), strongest.sel(T=0), strongest.isel(T=-1)))
    at = curves.where(curves["T"] > 0).idxmax("T").values
    diverged = int((data.diverged_at >= 0).sum())
    share = float((data.diverged_at >= 0).mean("seed").max())
    v = f"v = {float(data.v[-1]):g}"
    return [
        Claim(
            f"the loss peaks in the band of T from {BAND[0]} to {BAND[1]}",
            "caption of the figure of experiment 6",
            f"{v}: mean loss {inside:.3f} in the band, {first:.3f} at T = 0, {last:.3f} at T = {LONGEST}; "
            f"T of the largest loss: {each(at, 'g', 'v', data.v)}",
            f"at {v} the largest loss lies in the band, whose mean is above both ends",
            inside > max(first, last) and BAND[0] <= at[-1] <= BAND[1],
        ),
        Claim(
            "training does not diverge",
            WHERE,
            f"{diverged} of {data.loss.size} runs diverge, at most {share:.0%} of those of one T and v",
            "none",
            diverged == 0,
            why="Divergence is rare, not impossible: 2 of 10,100 runs at paper scale.",
        ),
        Claim(
            "fits range from extremely poor (loss above 0.3) in the band to good (below 0.05)",
            WHERE,
            f"largest mean loss over T: {each(_response.highest(curves).values, '.3f', 'v', data.v)}; "
            f"iid baseline: {each(curves.sel(T=0).values, '.3f', 'v', data.v)}",
            "above 0.3 for some v, and an iid baseline below 0.05 for some v > 0",
            bool((_response.highest(curves) > 0.3).any() and (curves.sel(T=0).where(data.v > 0) < 0.05).any()),
        ),
    ]
