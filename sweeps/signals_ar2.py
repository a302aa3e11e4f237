"""Appendix, the signal of experiment 2: trajectories and spectra for an AR(2) mean."""

import numpy as np
import xarray as xr

import resonance_jax as rj
from resonance_jax import Claim
from sweeps import _signals
from sweeps._shared import each

INPUT_VARIANCE = 1.0  # table of experiment 2
FINE = 2**14  # steps of a segment that resolves the width of the peak
CAPTION = "caption of the figure of the AR(2) signal"


def statements(data: xr.Dataset) -> list[Claim]:
    density = _signals.spectra(data)["mean"]
    at = density.idxmax("frequency")
    fine = _signals.spectra(data, FINE)["mean"]
    near = 3 / FINE  # of a line's power, all but a thousandth stays within three steps of the estimate
    wide = [1 - _signals.near(fine.sel(f=f), float(fine.sel(f=f).idxmax()), near) for f in data.f.values]
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
            f"power farther than {near:.1e} from the peak: {each(wide, '.0%', 'f', data.f)}",
            "more than 5%, where a sinusoid has less than 0.1%",
            min(wide) > 0.05,
        ),
        Claim(
            "the stationary variance of the mean is 0.1 for every f",
            "table of experiment 2",
            f"{each(variance.values, '.4f', 'f', data.f)} over {_signals.NUM_STEPS} steps",
            "0.1 within 10%: the trajectory holds some hundred independent oscillations",
            bool((np.abs(variance / 0.1 - 1) < 0.1).all()),
        ),
    ]


point, axes, figure, claims = _signals.sweep(
    rj.shifts.ar2, "AR(2) mean", statements, input_variance=INPUT_VARIANCE, f=(0.01, 0.03, 0.05)
)
