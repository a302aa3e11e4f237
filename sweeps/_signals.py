"""Shared by the figures of the signals: a long trajectory, a picture of its start and of its spectrum."""

from collections.abc import Callable

import jax
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import resonance_jax as rj
from resonance_jax import Claim
from sweeps._shared import SCALES, Axes, Claims, Point, Sweep, pick

NUM_STEPS = 2**17  # "a long sample trajectory"
SEGMENT = 2048  # steps of a segment of Welch's estimate, which resolves frequencies 1e-3 apart
SHOWN = 500  # steps of the trajectory in the picture


def trajectory(seed, shift: rj.shifts.Shift, input_variance: float) -> dict[str, jax.Array]:
    """Mean and one sample a step, of one input."""
    key = jax.random.key(seed)
    run = rj.spectrum.trajectory(key, shift=shift, num_steps=NUM_STEPS, input_variance=input_variance)
    return {name: values[:, 0] for name, values in run.items()}


def sweep(
    shift: Callable[..., rj.shifts.Shift],
    title: str,
    statements: Claims,
    *,
    input_variance: float,
    compared: Point | None = None,
    **values: tuple[float, ...],
) -> Sweep:
    """Trajectories of a shift at a few values of its parameter.

    Args:
        shift: of the parameter.
        title: what the mean is.
        statements: claims about the dataset, to which that about the noise floor is added.
        input_variance: of the samples around the mean.
        compared: (seed, parameter) -> further outputs.
        values: name of the parameter and its values; every scale has the same.
    """
    ((parameter, chosen),) = values.items()

    def point(seed, **named):
        others = compared(seed, named[parameter]) if compared else {}
        return trajectory(seed, shift(named[parameter]), input_variance) | others

    def axes(scale: str) -> Axes:
        pick(scale, **{name: {} for name in SCALES})
        return {parameter: np.array(chosen), "seed": np.array([0])}

    return Sweep(
        point,
        axes,
        figure=lambda data: figure(data, parameter, f"{title}: trajectory and power spectral density"),
        claims=lambda data: [*statements(data), noise_floor(data, input_variance)],
    )


def spectra(data: xr.Dataset, segment: int = SEGMENT) -> xr.Dataset:
    """Densities of mean and sample over the frequency, for each value of the parameter."""
    one = data.isel(seed=0)
    return xr.Dataset(
        {name: rj.spectrum.density(one[name], f"{name}_0", segment=segment) for name in ("mean", "sample")}
    )


def sharpness(mean: xr.DataArray) -> float:
    """Highest density over the variance, the smallest over the settings: how much power one frequency has."""
    density = rj.spectrum.density(mean.isel(seed=0), f"{mean.name}_0", segment=SEGMENT)
    return float((density.max("frequency") / density.integrate("frequency")).min())


def figure(data: xr.Dataset, parameter: str, title: str) -> Figure:
    """Rows: values of the parameter; left: the trajectory's start, right: the densities of samples and mean."""
    values = data[parameter].values
    picture, panels = plt.subplots(len(values), 2, figsize=(11, 2.6 * len(values)), layout="constrained", sharex="col")
    picture.suptitle(title)
    densities = spectra(data)
    for (left, right), value in zip(panels, values, strict=True):
        one = data.sel({parameter: value}).isel(seed=0)
        left.plot(one["sample"][:SHOWN], ".", ms=3, color="0.6", label="$X_k$")
        left.plot(one["mean"][:SHOWN], color="C3", lw=1.5, label="mean")
        left.set_title(f"${parameter}$ = {value:g}", loc="left", fontsize=10)
        for name, colour, label in (("sample", "0.6", "$X_k$"), ("mean", "C3", "mean")):
            density = densities[name].sel({parameter: value}).sel(frequency=slice(0, 0.2))
            right.semilogy(density.frequency, density, color=colour, lw=1.2, label=label)
        visible = densities["sample"].sel({parameter: value})
        right.set_ylim(float(visible.median()) * 1e-4, float(visible.max()) * 5)
        right.set_title(f"${parameter}$ = {value:g}", loc="left", fontsize=10)
        right.grid(alpha=0.3, lw=0.6)
    panels[-1][0].set_xlabel("step $k$")
    panels[-1][1].set_xlabel("frequency (1/step)")
    panels[0][0].legend(loc="upper right", fontsize=8)
    panels[0][1].legend(loc="upper right", fontsize=8)
    for left, right in panels:
        left.set_ylabel("input")
        right.set_ylabel("power density")
    return picture


def noise_floor(data: xr.Dataset, input_variance: float) -> Claim:
    """The statement made about all four processes."""
    densities = spectra(data)
    floor = (densities["sample"] - densities["mean"]).median("frequency").values
    return Claim(
        "the spectrum of the samples is that of the mean with a noise floor",
        "Detailed descriptions of experiments",
        f"median difference of the densities: {', '.join(f'{each:.3f}' for each in floor)}",
        f"twice the input variance, {2 * input_variance:g}, within 15%",
        bool((np.abs(floor / (2 * input_variance) - 1) < 0.15).all()),
    )


def near(density: xr.DataArray, frequency: float, width: float = 0.004) -> float:
    """Power within a distance of a frequency, as a share of the total."""
    part = density.sel(frequency=slice(frequency - width, frequency + width))
    return float(part.integrate("frequency") / density.integrate("frequency"))
