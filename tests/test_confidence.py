import itertools

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from resonance_jax.plotting import mean_and_band


def test_student_interval_is_that_of_scipy():
    data = xr.DataArray(np.random.default_rng(0).normal(size=(3, 20)), dims=("T", "seed"))
    mean, low, high = mean_and_band(data, "seed")
    theirs = stats.t.interval(0.95, 19, loc=data.mean("seed"), scale=stats.sem(data, axis=1))
    assert np.allclose([low, high], theirs, rtol=1e-12)
    assert np.allclose((low + high) / 2, mean)


def test_left_out_values_count_nothing():
    values = np.array([1.0, 2.0, 4.0, np.nan])
    whole, holed = (mean_and_band(xr.DataArray(v, dims="seed")) for v in (values[:3], values))
    assert [float(end) for end in whole] == pytest.approx([float(end) for end in holed])


def test_bootstrap_interval_is_that_of_scipy():
    """Two bootstraps of 999 resamples: their ends differ by a few percent of the width."""
    values = np.random.default_rng(1).normal(size=20)
    mean, low, high = mean_and_band(xr.DataArray(values, dims="seed"), log10=True)
    theirs = stats.bootstrap(
        (10**values,), np.mean, n_resamples=9999, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    width = np.log10(theirs.high) - np.log10(theirs.low)
    assert float(mean) == pytest.approx(np.log10(np.mean(10**values)))
    assert float(low) == pytest.approx(np.log10(theirs.low), abs=0.1 * width)
    assert float(high) == pytest.approx(np.log10(theirs.high), abs=0.1 * width)


def test_bootstrap_band_of_losses_stays_above_zero():
    """Unlike Student's t; missing values are ignored, and sums of float32 do not overflow."""
    values = np.float32([[0.1, 0.1, 0.1, 0.1, 0.1, 9.0], [1, 2, 3, np.nan, np.nan, np.nan], [3e38] * 6])
    data = xr.DataArray(values, dims=("T", "seed"))
    mean, low, high = mean_and_band(data, bootstrap=True)
    assert mean_and_band(data[0])[1] < 0
    assert np.allclose(mean, [9.5 / 6, 2, values[2, 0]])
    ends = np.nanmin(values, 1), low, mean, high, np.nanmax(values, 1)
    assert all((one <= other * (1 + 1e-6)).all() for one, other in itertools.pairwise(ends))
    theirs = stats.bootstrap((values[0],), np.mean, method="percentile", rng=np.random.default_rng(2))
    assert np.allclose(theirs.confidence_interval, [low[0], high[0]], rtol=0.02)


def test_huge_and_tiny_values_stay_finite():
    data = xr.DataArray([[500.0, -500.0, 0.0], [-900.0, -900.0, -900.0]], dims=("T", "seed"))
    mean, low, high = mean_and_band(data, log10=True)
    assert all(np.isfinite(each).all() for each in (mean, low, high))
    assert float(mean[0]) == pytest.approx(500 - np.log10(3))
    assert np.allclose([mean[1], low[1], high[1]], -900)


def test_bad_level():
    with pytest.raises(ValueError, match=r"level must lie between 0 and 1, got 95; 0.95 is usual"):
        mean_and_band(xr.DataArray([1.0], dims="seed"), level=95)
