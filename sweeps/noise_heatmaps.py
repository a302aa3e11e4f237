"""Beyond the paper, noise: heatmaps of experiments 1 and 2 at 20, 5 and 1 samples, with three boundaries of growth."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import resonance_jax as rj
from sweeps import _heatmap, _noise
from sweeps._claims import Claim, each, pick

SAMPLES = np.array([1, 5, 20])
LEAST = {"sinusoid": 0.97, "ar2": 0.95}  # agreement of the almost-sure rate with runs of other seeds


def point(seed, f, mu, samples):
    problem = rj.problems.linear_regression(dim=1, samples=samples, max_samples=_heatmap.SAMPLES)
    settings: dict[str, Any] = dict(mu=mu, eta=_heatmap.ETA)
    outputs = {}
    for name, shift in _heatmap.PROCESSES.items():
        outputs[f"{name}_distance"] = _heatmap.run(seed, mu, shift(f), samples=samples)["log10_distance"]
        found = _noise.rates(seed, shift(f), problem, **settings, num_steps=_heatmap.NUM_STEPS)
        outputs |= {f"{name}_{notion}": rate for notion, rate in found.items()}
    return outputs


def axes(scale: str) -> dict[str, np.ndarray]:
    size = pick(
        scale, tiny=dict(seed=2, f=4, mu=3), quick=dict(seed=5, f=32, mu=32), paper=dict(seed=10, f=100, mu=100)
    )
    return {
        "f": np.linspace(0, 0.05, size["f"]),  # first, so that chunks cut here: only one has long periods
        "seed": np.arange(size["seed"]),
        "mu": np.linspace(0.95, 0.999, size["mu"]),
        "samples": SAMPLES,
    }


def figure(data: xr.Dataset) -> Figure:
    """Rows: samples a step; columns: sinusoidal and AR(2) mean. Distances are those of the median run."""
    picture, panels = plt.subplots(len(SAMPLES), 2, figsize=(11, 12), layout="constrained")
    picture.suptitle(rf"SGDm, $\eta$ = {_heatmap.ETA}, {data.seed.size} seeds; lines: where growth changes its sign")
    for row, samples in zip(panels, SAMPLES[::-1], strict=True):
        for ax, name in zip(row, _heatmap.PROCESSES, strict=True):
            one = data.sel(samples=samples)
            rj.plotting.heatmap(
                one[f"{name}_distance"].median("seed"),
                limits=(-20, 20),
                title=f"{_heatmap.TITLES[name]}, {samples} sample{'s' if samples > 1 else ''} a step",
                label=r"median $\Vert\theta_k-\theta^*\Vert$",
                ax=ax,
            )
            found = _noise.over_seeds(one, f"{name}_")
            rj.plotting.zero_lines({_noise.NOTIONS[notion]: rate for notion, rate in found.items()}, ax=ax)
    return picture


def claims(data: xr.Dataset) -> list[Claim]:
    rows = []
    for name in _heatmap.PROCESSES:
        found = _noise.over_seeds(data, f"{name}_")
        diverged = _heatmap.diverged(data[f"{name}_distance"])
        agreeing = {notion: (diverged == (rate > 0)).mean(("f", "mu")).values for notion, rate in found.items()}
        said = {notion: each(share, ".2%", "samples", SAMPLES) for notion, share in agreeing.items()}
        least = LEAST[name]
        rows += [
            Claim(
                f"the sign of the almost-sure rate says which runs diverge ({name})",
                _noise.WHERE,
                f"agrees with the median run on {said['almost_sure']}",
                f"at least {least:.0%} each",
                bool(agreeing["almost_sure"].min() >= least),
            ),
            Claim(
                f"the sign of the mean's rate says so for many samples only ({name})",
                _noise.WHERE,
                f"agrees with the median run on {said['mean']}",
                "at least 95% at twenty samples, less than 85% at one",
                bool(agreeing["mean"][-1] >= 0.95 and agreeing["mean"][0] < 0.85),
            ),
            Claim(
                f"mean-square growth is stricter than what the median run shows ({name})",
                _noise.WHERE,
                f"its sign agrees with the median run on {said['mean_square']}",
                "less than that of the almost-sure rate at one sample",
                bool(agreeing["mean_square"][0] < agreeing["almost_sure"][0]),
            ),
        ]
        typical, square = found["almost_sure"] > 0, found["mean_square"] > 0
        outside = (typical & ~square).mean(("f", "mu")).values
        rows += [
            Claim(
                f"the region of mean-square growth encloses that of typical growth ({name})",
                _noise.WHERE,
                f"pixels of typical growth outside: {each(outside, '.2%', 'samples', SAMPLES)}; shares of growing "
                f"pixels: mean square {each(square.mean(('f', 'mu')).values, '.1%', 'samples', SAMPLES)}, typical "
                f"{each(typical.mean(('f', 'mu')).values, '.1%', 'samples', SAMPLES)}",
                "none outside, but for 0.5% at the edge, where the estimate has its error",
                bool(outside.max() <= 0.005),
            ),
            _noise.enclosing_claim(found, _noise.standard_error(data[f"{name}_almost_sure"]), name),
        ]
    return rows
