"""Means over seeds and how far they can be trusted."""

from typing import Any

import numpy as np
import xarray as xr

RESAMPLES = 999


def mean_and_band(
    data: xr.DataArray, dim: str = "seed", *, log10: bool = False, bootstrap: bool = False, level: float = 0.95
) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Mean over a dimension, and the lower and upper end of its confidence interval.

    Args:
        data: values or their log10, NaN for those that are missing. Where one is infinite, so are mean and interval.
        dim: dimension to average over.
        log10: data and results are log10 of the values. The mean is that of the values, often dominated by the largest
            one, and the interval is by bootstrap.
        bootstrap: take percentiles of the means of resampled values. They stay within the range of the values, so the
            interval of a loss or a distance never reaches below 0, however skewed they are. Otherwise the interval is
            Student's t, for values that scatter symmetrically.
        level: of confidence.

    >>> mean, low, high = mean_and_band(xr.DataArray([1.0, 2.0, 3.0], dims="seed"))
    >>> float(mean), round(float(high - low) / 2, 3)
    (2.0, 2.484)
    """
    from scipy import stats  # slow to import, and only pictures need it

    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}; 0.95 is usual")
    if not (log10 or bootstrap):
        mean, count = data.mean(dim), data.count(dim)
        error = data.std(dim, ddof=1) / np.sqrt(count) if data.sizes[dim] > 1 else xr.full_like(mean, np.nan)
        half = error * stats.t.ppf((1 + level) / 2, np.maximum(count - 1, 1))
        return mean, mean - half, mean + half
    size = data.sizes[dim]
    counts = np.random.default_rng(0).multinomial(size, np.full(size, 1 / size), RESAMPLES)  # how often each is drawn
    weights = xr.DataArray(counts / size, dims=("resample", dim))
    ends = [(1 - level) / 2, (1 + level) / 2]
    mean, overflown = mean_of(data, dim, log10=log10), (data == np.inf).any(dim)
    data = data.where(data != np.inf).astype(float)
    top = _top(data, dim) if log10 else 0.0
    values = 10.0 ** (data - top) if log10 else data
    there = data.notnull().dot(weights, dim)
    resampled = values.fillna(0).dot(weights, dim) / there.where(there > 0)
    if log10:
        resampled = top + _log10(resampled)
    low, high = (resampled.quantile(end, "resample").drop_vars("quantile") for end in ends)
    return mean, low.where(~overflown, np.inf), high.where(~overflown, np.inf)


def mean_of(data: xr.DataArray, dim: str, *, log10: bool = False) -> xr.DataArray:
    """Mean over a dimension of the values that are there, infinite where one is; `log10` as in `mean_and_band`.

    >>> float(mean_of(xr.DataArray([2.0, np.nan, 2.0], dims="seed"), "seed", log10=True))
    2.0
    """
    data = data.astype(float)  # a sum of float32 could overflow
    if not log10:
        return data.mean(dim)
    top = _top(data, dim)
    return top + _log10((10.0 ** (data - top)).mean(dim))


def _log10(data: xr.DataArray) -> Any:
    """Finite for 0."""
    return np.log10(np.maximum(data, np.finfo(float).tiny))


def _top(data: xr.DataArray, dim: str) -> xr.DataArray:
    """The largest finite value; 0 where there is none."""
    return data.where(np.isfinite(data)).max(dim).fillna(0)
