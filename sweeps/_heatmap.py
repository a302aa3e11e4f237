"""Shared by the heatmaps over (f, mu): constants, grid, picture, and the statements about all of them."""

import functools
from collections.abc import Callable

import jax
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from jax.typing import ArrayLike
from matplotlib.figure import Figure

import resonance_jax as rj
from resonance_jax import Claim
from sweeps._agreement import base_rates
from sweeps._shared import pick

ETA = 0.01  # table of experiment 1
ETAS = (0.01, 0.005, 0.001)  # text of "Reducing the step-size"
AMPLITUDE = 0.5  # table of experiment 1
SAMPLES = 20  # text of experiment 1: a gradient close to its expectation
NUM_STEPS = 10_000  # table of experiment 1
TAIL = 500  # caption of the heatmap figure
PROCESSES: dict[str, Callable[..., rj.shifts.Shift]] = {
    "sinusoid": lambda f: rj.shifts.sinusoid(f, amplitude=AMPLITUDE),
    "ar2": rj.shifts.ar2,
}
TITLES = {"sinusoid": "sinusoidal mean", "ar2": "AR(2) mean"}


def run(seed, mu, shift: rj.shifts.Shift, eta: ArrayLike = ETA, samples: ArrayLike = SAMPLES) -> dict[str, jax.Array]:
    """One run of SGDm on two weights, without observation noise."""
    problem = rj.problems.linear_regression(dim=1, samples=samples, max_samples=SAMPLES)
    return rj.oscillate(
        jax.random.key(seed), shift=shift, problem=problem, mu=mu, eta=eta, num_steps=NUM_STEPS, tail=TAIL
    )


def predicted(f, mu, eta: ArrayLike = ETA) -> dict[str, jax.Array]:
    """What the theory predicts for a sinusoid; the paper also compares the AR(2) mean with it."""
    return {"predicted_rate": rj.theory.growth_rate(PROCESSES["sinusoid"](f), mu=mu, eta=eta)}


def both_processes(seed, f, mu, eta, samples: ArrayLike = SAMPLES) -> dict[str, jax.Array]:
    """A pixel of each column of the figures over step sizes."""
    runs = {name: run(seed, mu, shift(f), eta, samples) for name, shift in PROCESSES.items()}
    return {name: one["log10_distance"] for name, one in runs.items()} | predicted(f, mu, eta)


def axes(scale: str) -> dict[str, np.ndarray]:
    size = pick(
        scale, tiny=dict(seed=2, f=6, mu=5), quick=dict(seed=10, f=50, mu=50), paper=dict(seed=10, f=100, mu=100)
    )
    return {
        "f": np.linspace(0, 0.05, size["f"]),  # first, so that chunks cut here: only one has long periods to integrate
        "seed": np.arange(size["seed"]),
        "mu": np.linspace(0.95, 0.999, size["mu"]),
    }


def axes_over_step_sizes(scale: str) -> dict[str, np.ndarray]:
    """The same for six panels, on a coarser grid to save time."""
    grid = axes(scale)
    if scale == "quick":
        grid = {"f": np.linspace(0, 0.05, 30), "seed": np.arange(4), "mu": np.linspace(0.95, 0.999, 30)}
    return {"f": grid["f"], "eta": np.array(ETAS), "seed": grid["seed"], "mu": grid["mu"]}


@functools.cache
def boundary(eta: float, f: tuple[float, float], mu: tuple[float, float]) -> xr.Dataset:
    """Where rho of the theory is 1, which the cells of a quick grid are too coarse to show."""
    return rj.theory.stability_boundary(lambda f, mu: predicted(f, mu, eta)["predicted_rate"], f=f, mu=mu)


def ranges(data: xr.DataArray | xr.Dataset) -> list[tuple[float, float]]:
    """Smallest and largest f, and mu."""
    return [(float(values.min()), float(values.max())) for values in (data.f, data.mu)]


def _draw(data: xr.DataArray, rate: xr.DataArray, eta: float, **settings) -> Figure:
    ax = rj.plotting.heatmap(
        rj.log10_mean(data, "seed").rename("log10_distance"),
        log_rho=rate / data.f,  # log rho = rate * period
        boundary=boundary(eta, *ranges(data)),
        limits=(-20, 20),
        period_axis=True,
        **settings,
    )
    return ax.figure  # pyright: ignore[reportReturnType]


def figure(data: xr.Dataset, title: str) -> Figure:
    label = rf"mean distance $\Vert\theta_k-\theta^*\Vert$, last {TAIL} steps, {data.seed.size} seeds"
    picture = _draw(data.log10_distance, data.predicted_rate.isel(seed=0), ETA, label=label)
    picture.suptitle(rf"{title}, $\eta$ = {ETA}", fontsize=11)
    return picture


def figure_over_step_sizes(data: xr.Dataset, title: str) -> Figure:
    """Rows: step sizes; columns: sinusoidal and AR(2) mean."""
    picture, panels = plt.subplots(len(ETAS), 2, figsize=(11, 12), layout="constrained")
    picture.suptitle(rf"{title}; {data.seed.size} seeds", fontsize=12)
    for row, eta in zip(panels, data.eta.values, strict=True):
        for ax, name in zip(row, PROCESSES, strict=True):
            rate = data.predicted_rate.sel(eta=eta).isel(seed=0)
            panel = rf"{TITLES[name]}, $\eta$ = {eta:g}"
            label = r"mean $\Vert\theta_k-\theta^*\Vert$"
            _draw(data[name].sel(eta=eta), rate, float(eta), title=panel, label=label, ax=ax)
    return picture


def diverged(log10_distance: xr.DataArray) -> xr.DataArray:
    """Whether the median run ends farther than 1 from theta*, about where it began: both are uniform in [-1, 1]."""
    return log10_distance.median("seed") > 0


def agreement(log10_distance: xr.DataArray, rate: xr.DataArray) -> float:
    """Share of the pixels on which rho > 1 agrees with divergence."""
    return float((diverged(log10_distance) == (rate > 0)).mean())


def claims(data: xr.Dataset, *, where: str, least: float) -> list[Claim]:
    """The statements about every heatmap, with the share of pixels on which theory and runs must agree."""
    median, found = data.log10_distance.median("seed"), diverged(data.log10_distance)
    rate = data.predicted_rate.isel(seed=0)
    agreeing = agreement(data.log10_distance, rate)
    lowest = [float(data.mu.where(region.any("f")).min()) for region in (found, rate > 0)]
    share = float(found.mean())
    iid = float(median.sel(f=0).max())
    return [
        Claim(
            "rho of the theory predicts which runs diverge",
            where,
            f"rho > 1 agrees with a median distance above 1 on {agreeing:.2%} of {found.size} pixels; "
            + base_rates(rate > 0, found),
            f"at least {least:.0%}",
            agreeing >= least,
        ),
        Claim(
            "sufficiently low momentum mitigates resonance",
            "Ablating Periodicity",
            f"lowest mu that diverges: {lowest[0]:.4f} measured, {lowest[1]:.4f} predicted",
            f"none at the lowest mu, {float(data.mu[0]):.2f}",
            not bool((found | (rate > 0)).isel(mu=0).any()),
        ),
        Claim(
            "SGDm converges much more often than it diverges",
            "Practical Implications",
            f"{share:.1%} of the pixels diverge",
            "at most 25%",
            share <= 0.25,
        ),
        Claim(
            "the iid baseline, f = 0, converges",
            "introduction of the experiments",
            f"largest median distance at f = 0: 10^{iid:.1f}",
            "below 1 for every mu",
            iid < 0,
        ),
    ]
