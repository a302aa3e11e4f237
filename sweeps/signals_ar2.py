"""Appendix, the signal of experiment 2: trajectories and spectra for an AR(2) mean."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import resonance_jax as rj
from sweeps import _signals
from sweeps._claims import Claim, each

INPUT_VARIANCE = 1.0  # table of experiment 2
CAPTION = "caption of the figure of the AR(2) signal"


def point(seed, f):
    return _signals.trajectory(seed, rj.shifts.ar2(f), INPUT_VARIANCE)


def axes(scale: str) -> dict[str, np.ndarray]:
    return _signals.axes(scale, f=(0.01, 0.03, 0.05))


def figure(data: xr.Dataset) -> Figure:
    return _signals.figure(data, "f", "AR(2) mean: trajectory and power spectral density")


def claims(data: xr.Dataset) -> list[Claim]:
    density = _signals.spectra(data)["mean"]
    at = density.idxmax("frequency")
    above_half = (density > density.max("frequency") / 2).sum("frequency") * float(density.frequency[1])
    variance = data["mean"].isel(seed=0).var("mean_0")
    return [
        Claim(
            "a single peak, at f",
            CAPTION,
            f"highest density at {each(at.values, '.4f', 'f', data.f)}",
            "within 0.002 of f",
            bool((np.abs(at - data.f) < 0.002).all()),
        ),
        Claim(
            "the peak is wider than that of the sinusoid",
            CAPTION,
            f"frequencies above half of the highest density: {each(above_half.values, '.4f', 'f', data.f)}",
            f"more than two steps of the estimate, {2 / _signals.SEGMENT:.4f}, which a line fills",
            bool((above_half > 2 / _signals.SEGMENT).all()),
        ),
        Claim(
            "the stationary variance of the mean is 0.1 for every f",
            "table of experiment 2",
            f"{each(variance.values, '.4f', 'f', data.f)} over {_signals.NUM_STEPS} steps",
            "0.1 within 10%: the trajectory holds some hundred independent oscillations",
            bool((np.abs(variance / 0.1 - 1) < 0.1).all()),
        ),
        _signals.noise_floor(data, INPUT_VARIANCE),
    ]
