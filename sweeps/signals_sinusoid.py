"""Appendix, the signal of experiment 1: trajectories and spectra for a sinusoidal mean."""

import numpy as np
import xarray as xr

import resonance_jax as rj
from resonance_jax import Claim
from sweeps import _signals
from sweeps._shared import each

INPUT_VARIANCE = 1.0  # table of experiment 1


def statements(data: xr.Dataset) -> list[Claim]:
    density = _signals.spectra(data)["mean"]
    share = [_signals.near(density.sel(f=f), f) for f in data.f.values]
    return [
        Claim(
            "a single peak, at f",
            "caption of the figure of the sinusoidal signal",
            f"peak at {each(density.idxmax('frequency').values, '.4f', 'f', data.f)}; power within 0.004 of f: "
            f"{each(share, '.1%', 'f', data.f)}",
            "within 0.001 of f, at least 95% of the power",
            bool((np.abs(density.idxmax("frequency") - data.f) < 0.001).all()) and min(share) > 0.95,
        ),
    ]


point, axes, figure, claims = _signals.sweep(
    rj.shifts.sinusoid, "Sinusoidal mean", statements, input_variance=INPUT_VARIANCE, f=(0.01, 0.03, 0.05)
)
