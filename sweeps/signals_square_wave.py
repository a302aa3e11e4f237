"""Appendix, the signal of experiment 3: trajectories and spectra for a square wave."""

import functools

import numpy as np
import xarray as xr

import resonance_jax as rj
from resonance_jax import Claim
from sweeps import _signals
from sweeps._shared import each

INPUT_VARIANCE = 0.25  # table of experiment 3


def statements(data: xr.Dataset) -> list[Claim]:
    density = _signals.spectra(data)["mean"]
    odd = [[_signals.near(density.sel(T=T), n / T, 0.002) for T in data["T"].values] for n in (1, 3, 5)]
    exact = [8 / (np.pi * n) ** 2 for n in (1, 3, 5)]
    return [
        Claim(
            "several peaks, whose frequencies contract as T grows",
            "caption of the figure of the square wave",
            "; ".join(
                f"share of the power near {n}/T: {each(shares, '.1%', 'T', data['T'])}"
                for n, shares in zip((1, 3, 5), odd, strict=True)
            ),
            f"8 / (pi n)^2 = {', '.join(f'{share:.1%}' for share in exact)} near the odd multiples n/T, within 1%",
            bool(np.allclose(np.array(odd), np.array(exact)[:, None], atol=0.01)),
        ),
    ]


point, axes, figure, claims = _signals.sweep(
    functools.partial(rj.shifts.square_wave, dim=1),
    "Square wave",
    statements,
    input_variance=INPUT_VARIANCE,
    T=(50.0, 100.0, 150.0),
)
