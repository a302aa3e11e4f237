"""Densities against their closed forms; Welch's estimate over K segments has a relative error of about 1/sqrt(K)."""

import jax
import numpy as np
import pytest
import xarray as xr

import resonance_jax as rj
from resonance_jax.shifts.ar2 import coefficients

NUM_STEPS = 2**18  # 255 half-overlapping segments of 2048: standard error about 7%


def spectra(shift, **settings):
    run = rj.spectrum.trajectory(jax.random.key(2), shift=shift, num_steps=NUM_STEPS, **settings)
    signal = xr.Dataset({name: ("k", np.asarray(values)[:, 0]) for name, values in run.items()})
    return rj.spectrum.density(signal["mean"], "k", segment=2048), rj.spectrum.density(
        signal["sample"], "k", segment=2048
    )


def test_ar2():
    """S(f) = 2 s^2 / |1 - phi_1 z - phi_2 z^2|^2, and the noise floor 2c beneath the samples."""
    mean, sample = spectra(rj.shifts.ar2(0.03), input_variance=1.0)
    phi_1, phi_2, _ = (float(c) for c in coefficients(np.float32(0.03), np.float32(1e4)))
    z = np.exp(-2j * np.pi * mean.frequency)
    exact = 2e-5 / np.abs(1 - phi_1 * z - phi_2 * z**2) ** 2
    inside = (mean.frequency > 0.01) & (mean.frequency < 0.05)
    assert np.abs(mean / exact - 1).where(inside).mean() < 0.12
    assert float(mean.idxmax()) == pytest.approx(0.03, abs=0.002)
    assert float(mean.integrate("frequency")) == pytest.approx(0.1, rel=0.1)
    assert float(sample.where(sample.frequency > 0.2).mean()) == pytest.approx(2.0, rel=0.03)


def test_switching():
    """Held white noise: S(f) = 2 v sin^2(pi f T) / (T sin^2(pi f)), with troughs at the multiples of 1/T."""
    T, v = 10, 0.4
    mean, _ = spectra(rj.shifts.switching(T, dim=1, variance=v))
    f = mean.frequency.where(mean.frequency > 0.002)
    exact = 2 * v / T * (np.sin(np.pi * f * T) / np.sin(np.pi * f)) ** 2
    strong = exact > 0.05 * exact.max()
    assert np.abs(mean / exact - 1).where(strong).mean() < 0.12
    assert float(mean.sel(frequency=0.1, method="nearest")) < 0.01 * float(mean.sel(frequency=0.005, method="nearest"))


@pytest.mark.parametrize(("shift", "f"), [(lambda: rj.shifts.sinusoid(0.03), 0.03), (None, 0.02)])
def test_lines(shift, f):
    """A sine has all its power, a^2/2, at f; a square wave 8 / pi^2 of u^2 there and 1/9 of that at 3f."""
    mean, _ = spectra(shift() if shift else rj.shifts.square_wave(1 / f, dim=1, norm=0.5))
    power = [float(mean.sel(frequency=slice(n * f - 0.005, n * f + 0.005)).integrate("frequency")) for n in (1, 2, 3)]
    expected = (0.125, 0, 0) if shift else (0.25 * 8 / np.pi**2, 0, 0.25 * 8 / np.pi**2 / 9)
    assert power == pytest.approx(expected, rel=0.02, abs=2e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: rj.spectrum.density(s, "t"), r"the signal has no dimension 't', got \('k',\); give that of time"),
        (lambda s: rj.spectrum.density(s, "k", segment=99), r"segment must be at most the length .* got 99 > 10"),
        (
            lambda s: rj.spectrum.trajectory(jax.random.key(0), shift=rj.shifts.sinusoid(0.1), num_steps=0),
            r"num_steps must be a whole number of at least 1, got 0",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(xr.DataArray(np.zeros(10), dims="k"))
