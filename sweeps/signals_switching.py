"""Appendix, the signal of experiments 4 to 6: trajectories and spectra for a switching mean."""

import functools

import xarray as xr

import resonance_jax as rj
from resonance_jax import Claim
from sweeps import _signals
from sweeps._shared import each

INPUT_VARIANCE = 0.25  # table of experiment 4
VARIANCE = 0.25  # table of experiment 4: v
OTHERS = {  # the other three processes, of the same T
    "sinusoid": lambda T: rj.shifts.sinusoid(1 / T),
    "ar2": lambda T: rj.shifts.ar2(1 / T),
    "square_wave": lambda T: rj.shifts.square_wave(T, dim=1),
}
CAPTION = "caption of the figure of the switching signal"


def means_of_others(seed, T):
    return {name: _signals.trajectory(seed, shift(T), INPUT_VARIANCE)["mean"] for name, shift in OTHERS.items()}


def statements(data: xr.Dataset) -> list[Claim]:
    density = _signals.spectra(data)["mean"]
    trough = [
        float(density.sel(T=T).sel(frequency=[n / T for n in (1, 2, 3)], method="nearest").max())
        / float(density.sel(T=T).sel(frequency=[n / T for n in (1.5, 2.5)], method="nearest").min())
        for T in data["T"].values
    ]
    own, *others = (_signals.sharpness(data[name]) for name in ("mean", *OTHERS))
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
            f"highest density over variance (smallest of the three settings): {own:.0f} steps; of the same T, "
            + ", ".join(f"{name} {value:.0f}" for name, value in zip(OTHERS, others, strict=True)),
            "the smallest of the four",
            own < min(others),
        ),
    ]


point, axes, figure, claims = _signals.sweep(
    functools.partial(rj.shifts.switching, dim=1, variance=VARIANCE),
    "Switching mean",
    statements,
    input_variance=INPUT_VARIANCE,
    compared=means_of_others,
    T=(10.0, 30.0, 50.0),
)
