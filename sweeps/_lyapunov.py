"""Shared by the figures of Lyapunov exponents: the exponent over T below the response over T."""

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
    rj.plotting.response(1000 * exponent, hue=hue, label="largest Lyapunov exponent\n(1/1000 per step)", ax=below)
    below.get_legend().remove()
    above.set_xlabel("")
    below.set_xlabel(_response.INTERVAL)
    return picture


def mean_and_error(exponent: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Mean over the seeds, and its standard error."""
    return exponent.mean("seed"), exponent.std("seed", ddof=1) / np.sqrt(exponent.seed.size)


def per_mille(values: xr.DataArray | np.ndarray | float) -> str:
    """Growth in thousandths per step, as the figure has it."""
    return ", ".join(f"{1000 * float(value):.2f}" for value in np.atleast_1d(values))


def rank_correlation(exponent: xr.DataArray, response: xr.DataArray) -> float:
    """Spearman's, of two curves over T > 0."""
    moving = exponent["T"] > 0
    return float(spearmanr(exponent[moving], response[moving]).statistic)
