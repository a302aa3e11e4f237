"""Means over seeds and how far they can be trusted."""

import numpy as np
import xarray as xr

from resonance_jax.numerics.logscale import log10_mean

RESAMPLES = 999


def mean_and_band(
    data: xr.DataArray, dim: str = "seed", *, log10: bool = False, bootstrap: bool = False, level: float = 0.95
) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Mean over a dimension, and the lower and upper end of its confidence interval.

    Args:
        data: values, NaN for those that are missing; or their log10, all finite.
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
    if log10:
        top = data.max(dim)
        means = (10.0 ** (data - top)).dot(weights, dim)
        resampled = top + np.log10(np.maximum(means, np.finfo(float).tiny))
        mean = log10_mean(data, dim)
    else:
        data = data.astype(float)  # a sum of float32 could overflow
        there = data.notnull().dot(weights, dim)
        resampled = data.fillna(0).dot(weights, dim) / there.where(there > 0)
        mean = data.mean(dim)
    found = resampled.quantile(ends, "resample")
    return mean, found.isel(quantile=0, drop=True), found.isel(quantile=1, drop=True)
