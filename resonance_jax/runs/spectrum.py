"""What frequencies a shift has: long trajectories and their power spectral density."""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks
from resonance_jax.shifts.base import Shift


def trajectory(key: Array, *, shift: Shift, num_steps: int, input_variance: ArrayLike = 1.0) -> dict[str, Array]:
    """One long run of the inputs: `mean`, m_k, and `sample`, one draw  x_k ~ N(m_k, c I)  a step.

    Args:
        key: typed key, `jax.random.key(seed)`.
        shift: from `resonance_jax.shifts`.
        num_steps: length.
        input_variance: c, of each input around the mean.

    Returns:
        `mean` and `sample`, each of shape (num_steps, dim). Traceable, so a point of a sweep.

    >>> import resonance_jax as rj
    >>> path = trajectory(jax.random.key(0), shift=rj.shifts.sinusoid(0.25), num_steps=4)
    >>> [round(float(mean), 3) + 0 for mean in path["mean"][:, 0]], path["sample"].shape
    ([0.0, 0.5, 0.0, -0.5], (4, 1))
    """
    checks.at_least_one("num_steps", num_steps, "give the length of the trajectory")
    checks.between("input_variance", input_variance, 0, jnp.inf, "give a variance")
    start_key, shift_key, noise_key = jax.random.split(key, 3)
    (mean, added), _ = shift.inputs(shift_key, jnp.arange(num_steps, dtype=jnp.int32), shift.init(start_key))
    scale = jnp.sqrt(jnp.asarray(input_variance, mean.dtype) + added)[:, None]
    return {"mean": mean, "sample": mean + scale * jax.random.normal(noise_key, mean.shape, mean.dtype)}


def density(signal: xr.DataArray, dim: str, *, segment: int = 4096) -> xr.DataArray:
    """One-sided power spectral density by Welch's method (SciPy), in power per frequency.

    Args:
        signal: values over time along `dim`, one per step.
        dim: dimension of time.
        segment: steps of a segment; the resolution in frequency is about 2 / segment.

    Returns:
        The density over `frequency`, from 0 to 1/2 turns per step; its integral is the variance of the signal.

    >>> k = np.arange(20_000)
    >>> wave = density(xr.DataArray(np.sin(2 * np.pi * 0.03 * k), dims="k"), "k")
    >>> round(float(wave.idxmax()), 2), round(float(wave.integrate("frequency")), 2)
    (0.03, 0.5)
    """
    from scipy.signal import welch  # slow to import, and only spectra need it

    if dim not in signal.dims:
        raise ValueError(f"the signal has no dimension {dim!r}, got {tuple(signal.dims)}; give that of time")
    checks.at_least_one("segment", segment, "give the steps of a segment")
    if segment > signal.sizes[dim]:
        raise ValueError(
            f"segment must be at most the length of the signal, got {segment} > {signal.sizes[dim]}; shorten it"
        )
    frequency, _ = welch(np.zeros(segment), nperseg=segment)
    result = xr.apply_ufunc(
        lambda values: welch(values.astype(float), nperseg=segment)[1],
        signal,
        input_core_dims=[[dim]],
        output_core_dims=[["frequency"]],
    )
    return result.assign_coords(frequency=frequency).rename("density")
