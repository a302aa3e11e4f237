"""Appendix, the signal of experiments 4 to 6: trajectories and spectra for a switching mean."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import resonance_jax as rj
from sweeps import _signals, signals_ar2, signals_sinusoid, signals_square_wave
from sweeps._claims import Claim, each

INPUT_VARIANCE = 0.25  # table of experiment 4
VARIANCE = 0.25  # table of experiment 4: v
CAPTION = "caption of the figure of the switching signal"


def point(seed, T):
    return _signals.trajectory(seed, rj.shifts.switching(T, dim=1, variance=VARIANCE), INPUT_VARIANCE)


def axes(scale: str) -> dict[str, np.ndarray]:
    return _signals.axes(scale, T=(10.0, 30.0, 50.0))


def figure(data: xr.Dataset) -> Figure:
    return _signals.figure(data, "T", "Switching mean: trajectory and power spectral density")


def claims(data: xr.Dataset) -> list[Claim]:
    density = _signals.spectra(data)["mean"]
    trough = [
        float(density.sel(T=T).sel(frequency=[n / T for n in (1, 2, 3)], method="nearest").max())
        / float(density.sel(T=T).sel(frequency=[n / T for n in (1.5, 2.5)], method="nearest").min())
        for T in data["T"].values
    ]
    others = {
        module.__name__.rpartition("_")[2]: _signals.sharpness(rj.sweep(module.point, module.axes("tiny")))
        for module in (signals_sinusoid, signals_ar2, signals_square_wave)
    }
    own = _signals.sharpness(data)
    return [
        Claim(
            "troughs where the square wave has peaks",
            CAPTION,
            f"highest density at 1/T, 2/T, 3/T over the lowest halfway between: {each(trough, '.3f', 'T', data['T'])}",
            "below 0.2 for every T",
            max(trough) < 0.2,
        ),
        Claim(
            "the mildest of all processes, with the lowest and least defined peaks",
            CAPTION,
            f"highest density over variance (smallest of the three settings): {own:.0f} steps; "
            + ", ".join(f"{name} {value:.0f}" for name, value in others.items()),
            "the smallest of the four",
            own < min(others.values()),
        ),
        _signals.noise_floor(data, INPUT_VARIANCE),
    ]
