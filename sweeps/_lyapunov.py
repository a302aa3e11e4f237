"""Shared by the figures of Lyapunov exponents: the exponent over T below the response over T."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.stats import spearmanr

import resonance_jax as rj
from sweeps import _response

SEEDS = 10  # at scale paper
QUICK = {"T": np.array([0, 5, 10, 20, 35, 50, 70, 100.0]), "seed": np.arange(4)}  # a step costs three of `train`
WHERE = "beyond the paper: Lyapunov exponents"


def figure(
    response: xr.DataArray,
    exponent: xr.DataArray,
    diverged: xr.DataArray,
    hue: str,
    title: str,
    *,
    label: str,
    log10: bool = False,
) -> Figure:
    """Two panels over T: the response as its experiment draws it, and the largest Lyapunov exponent."""
    picture, (above, below) = plt.subplots(
        2, 1, figsize=(6.4, 7), height_ratios=(3, 2), layout="constrained", sharex=True
    )
    count = int(diverged.sum())
    told = f"{count} of {diverged.size} runs diverged" if count else "no run diverged"
    picture.suptitle(f"{title}\nbands: 95% over {exponent.seed.size} seeds; {told}", fontsize=11)
    rj.plotting.response(response, hue=hue, diverged=diverged, log10=log10, label=label, ax=above)
    below.axhline(0, color="0.4", lw=0.8)
    label = "largest Lyapunov exponent\n(per 1000 steps)"
    rj.plotting.response(1000 * exponent, hue=hue, diverged=diverged, label=label, ax=below)
    for told_above in (below.get_legend(), *below.child_axes):
        told_above.remove()
    above.set_xlabel("")
    below.set_xlabel(_response.INTERVAL)
    return picture


def mean_and_error(exponent: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Mean over the seeds, without NaN, and its standard error."""
    return exponent.mean("seed"), exponent.std("seed", ddof=1) / np.sqrt(exponent.count("seed"))


def per_1000(exponent: xr.DataArray | float) -> str:
    """Growth per 1000 steps, as the figure has it."""
    return f"{1000 * float(exponent):+.2f}"


def score(exponent: xr.DataArray, other: xr.DataArray) -> float:
    """How much higher the mean over the seeds is than another, in standard errors."""
    (mean, error), (other_mean, other_error) = mean_and_error(exponent), mean_and_error(other)
    return float((mean - other_mean) / np.maximum(np.hypot(error, other_error), 1e-12))


def rank_correlation(exponent: xr.DataArray, response: xr.DataArray) -> float:
    """Spearman's, of two curves over T > 0."""
    moving = exponent["T"] > 0
    found: Any = spearmanr(exponent[moving], response[moving])
    return float(found.statistic)
