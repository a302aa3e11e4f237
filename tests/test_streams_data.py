"""Public streams: what is in them, and that they come from installed packages only."""

import socket
import sys

import numpy as np
import pytest

from sweeps import _streams

SHAPES = dict(
    co2=(2283, 1),
    elnino=(731, 1),
    sunspots=(308, 1),
    seattle_temps=(8758, 1),
    seattle_weather=(1460, 4),
    digits=(1600, 8),
    electricity=(4031, 1),
)


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def connect(*_):
        raise AssertionError("a stream must not be downloaded")

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture
def stream(request):
    packages = dict(seattle_temps="vega_datasets", seattle_weather="vega_datasets", digits="sklearn")
    pytest.importorskip({"electricity": "pmdarima", **packages}.get(request.param, "statsmodels"))
    return _streams.load(request.param)


def test_names():
    assert set(_streams.names()) == set(SHAPES)


@pytest.mark.parametrize("stream", SHAPES, indirect=True)
def test_every_stream(stream):
    assert stream.inputs.shape == SHAPES[stream.name]
    assert stream.targets.shape == stream.inputs.shape[:1]
    assert stream.inputs.dtype == stream.targets.dtype == np.float64
    assert np.isfinite(stream.inputs).all()
    assert np.isfinite(stream.targets).all()
    np.testing.assert_allclose(stream.inputs.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(stream.inputs.std(axis=0), 1, rtol=1e-10)
    for text in (stream.unit, stream.source, stream.licence, stream.description):
        assert text == text.strip() != ""
    assert "Standardised" in stream.description
    again = _streams.load(stream.name)
    np.testing.assert_array_equal(again.inputs, stream.inputs)
    np.testing.assert_array_equal(again.targets, stream.targets)


@pytest.mark.parametrize("stream", [name for name in SHAPES if name != "digits"], indirect=True)
def test_targets_are_the_next_value(stream):
    np.testing.assert_allclose(stream.targets[:-1], stream.inputs[1:, 0], rtol=1e-12)


@pytest.mark.parametrize("stream", ["co2", "elnino", "sunspots"], indirect=True)
def test_statsmodels_puts_its_data_into_the_public_domain(stream):
    assert "public domain" in stream.licence


@pytest.mark.parametrize("stream", ["seattle_temps", "seattle_weather"], indirect=True)
def test_vega_puts_its_data_into_the_public_domain(stream):
    from vega_datasets import local_data

    assert (
        "drawn from public-domain `NOAA data <https://www.weather.gov/disclaimer>`_"
        in getattr(local_data, stream.name).description
    )
    assert "Public domain" in stream.licence


@pytest.mark.parametrize("stream", ["co2"], indirect=True)
def test_co2_fills_its_gaps(stream):
    from statsmodels.datasets import co2

    series = co2.load_pandas().data["co2"].to_numpy()
    missing = np.isnan(series)
    assert (len(series), missing.sum()) == (2284, 59)  # as its description says
    ends = np.flatnonzero(np.diff(np.r_[0, missing, 0]))
    assert np.diff(ends)[::2].max() == 18
    filled = _streams.interpolated(series)
    np.testing.assert_array_equal(filled[~missing], series[~missing])


@pytest.mark.parametrize("stream", ["digits"], indirect=True)
def test_digits_come_in_cycles(stream):
    cycle = np.repeat(np.arange(10.0), 20)
    np.testing.assert_array_equal(stream.targets, np.tile(cycle, 8))
    covariance = stream.inputs.T @ stream.inputs / len(stream.inputs)
    np.testing.assert_allclose(covariance, np.eye(8), atol=1e-10)  # principal components are uncorrelated


@pytest.mark.parametrize("stream", ["electricity"], indirect=True)
def test_electricity_has_a_daily_period(stream):
    series = stream.inputs[:, 0]
    half_a_day, day, week = (series[lag:] @ series[:-lag] / len(series[lag:]) for lag in (24, 48, 336))
    assert half_a_day < 0
    assert 0.8 < day < week


def test_interpolation_by_hand():
    filled = _streams.interpolated(np.array([1.0, np.nan, np.nan, 4.0, 3.0]))
    np.testing.assert_allclose(filled, [1.0, 2.0, 3.0, 4.0, 3.0])


def test_one_step_ahead_by_hand():
    inputs, targets = _streams.one_step_ahead(np.array([1.0, 3.0, 5.0]))
    np.testing.assert_allclose(inputs, [[-1.0], [1.0]])
    np.testing.assert_allclose(targets, [1.0, 3.0])


def test_streams_that_are_refused(monkeypatch):
    with pytest.raises(ValueError, match=r"stream must be one of co2, .*, got 'tides'; pick one of them"):
        _streams.load("tides")
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(
        ValueError, match=r"stream 'digits' needs the package sklearn.*; run `pip install 'resonance_jax\["
    ):
        _streams.load("digits")
