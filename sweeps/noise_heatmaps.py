"""Beyond the paper, noise: heatmaps at 20, 5 and 1 samples a step, with the boundaries of three notions of growth."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import resonance_jax as rj
from resonance_jax import Claim
from sweeps import _heatmap, _noise
from sweeps._agreement import base_rates
from sweeps._shared import each, pick

SAMPLES = np.array([1, 5, 20])
VARIANTS = {"ar2": dict(shift=_heatmap.PROCESSES["ar2"])}  # experiment 2; the default is experiment 1
LEAST = {"default": 0.97, "ar2": 0.95}  # agreement of the almost-sure rate with runs of other seeds
TITLES = {"default": _heatmap.TITLES["sinusoid"], "ar2": _heatmap.TITLES["ar2"]}


def point(seed, f, mu, samples, shift: Callable[..., rj.shifts.Shift] = _heatmap.PROCESSES["sinusoid"]):
    problem = rj.problems.linear_regression(dim=1, samples=samples, max_samples=_heatmap.SAMPLES)
    settings: dict[str, Any] = dict(mu=mu, eta=_heatmap.ETA, num_steps=_heatmap.NUM_STEPS)
    run = _heatmap.run(seed, mu, shift(f), samples=samples)
    return {"log10_distance": run["log10_distance"]} | _noise.rates(seed, shift(f), problem, **settings)


def axes(scale: str) -> dict[str, np.ndarray]:
    size = pick(
        scale, tiny=dict(seed=2, f=4, mu=3), quick=dict(seed=5, f=40, mu=40), paper=dict(seed=10, f=100, mu=100)
    )
    return {
        "f": np.linspace(0, 0.05, size["f"]),  # first, so that chunks are cut here: only one has long periods
        "seed": np.arange(size["seed"]),
        "mu": np.linspace(0.95, 0.999, size["mu"]),
        "samples": SAMPLES,
    }


def figure(data: xr.Dataset) -> Figure:
    """A panel for each number of samples. Distances are those of the median run.

    Under a sinusoid the line of the mean is traced in continuous time, which is within 3e-4 of the discrete one in mu.
    """
    picture, panels = plt.subplots(1, len(SAMPLES), figsize=(15, 4.4), layout="constrained")
    title = rf"SGDm, {TITLES[_noise.reading(data)]}, $\eta$ = {_heatmap.ETA}, {data.seed.size} seeds"
    picture.suptitle(f"{title}; lines: where growth changes its sign")
    for ax, samples in zip(panels, SAMPLES[::-1], strict=True):
        one = data.sel(samples=samples)
        rj.plotting.heatmap(
            one.log10_distance.median("seed"),
            limits=(-20, 20),
            title=f"{samples} sample{'s' if samples > 1 else ''} a step",
            label=r"median $\Vert\theta_k-\theta^*\Vert$",
            ax=ax,
        )
        lines: dict[str, Any] = {_noise.NOTIONS[notion]: rate for notion, rate in _noise.over_seeds(one).items()}
        if _noise.reading(data) == "default":
            lines["mean"] = _heatmap.boundary(_heatmap.ETA, *_heatmap.ranges(data))
        rj.plotting.zero_lines(lines, ax=ax)
    return picture


def claims(data: xr.Dataset) -> list[Claim]:
    found, diverged = _noise.over_seeds(data), _heatmap.diverged(data.log10_distance)
    pixels = ("f", "mu")

    def per_samples(values: xr.DataArray) -> str:
        return each(values.values, ".1%", "samples", SAMPLES)

    agreeing = {notion: (diverged == (rate > 0)).mean(pixels).values for notion, rate in found.items()}
    said = {notion: each(share, ".2%", "samples", SAMPLES) for notion, share in agreeing.items()}
    said = {
        notion: f"{text}; {base_rates(found[notion] > 0, diverged, per_samples, pixels)}"
        for notion, text in said.items()
    }
    least = LEAST[_noise.reading(data)]
    typical, square = found["almost_sure"] > 0, found["mean_square"] > 0
    outside = (typical & ~square).mean(pixels).values
    return [
        Claim(
            "the sign of the almost-sure rate says which runs diverge",
            _noise.WHERE,
            f"agrees with the median run on {said['almost_sure']}",
            f"at least {least:.0%} each",
            bool(agreeing["almost_sure"].min() >= least),
        ),
        Claim(
            "the sign of the mean's rate says so for many samples only",
            _noise.WHERE,
            f"agrees with the median run on {said['mean']}",
            "at least 95% at twenty samples, less than 85% at one",
            bool(agreeing["mean"][-1] >= 0.95 and agreeing["mean"][0] < 0.85),
        ),
        Claim(
            "mean-square growth is stricter than what the median run shows",
            _noise.WHERE,
            f"its sign agrees with the median run on {said['mean_square']}",
            "less than that of the almost-sure rate at one sample",
            bool(agreeing["mean_square"][0] < agreeing["almost_sure"][0]),
        ),
        Claim(
            "the region of mean-square growth encloses that of typical growth",
            _noise.WHERE,
            f"pixels of typical growth outside: {each(outside, '.2%', 'samples', SAMPLES)}; shares of growing pixels: "
            f"mean square {each(square.mean(pixels).values, '.1%', 'samples', SAMPLES)}, typical "
            f"{each(typical.mean(pixels).values, '.1%', 'samples', SAMPLES)}",
            "none outside, but for 0.5% at the edge, where the estimate has its error",
            bool(outside.max() <= 0.005),
        ),
        _noise.enclosing_claim(found, _noise.standard_error(data.almost_sure_rate)),
    ]
