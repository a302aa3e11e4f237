"""Shared by all forms of the first heatmap: its numbers, and a step for both NumPy and PyTorch."""

from typing import Any

ETA, AMPLITUDE, SAMPLES, TAIL = 0.01, 0.5, 20, 500


def advance(state: tuple[Any, ...], mu: Any, mean: Any, z: Any) -> tuple[Any, ...]:
    """One step on the moments of the samples, for arrays and tensors: errors, then velocities, of both weights."""
    slope, offset, slope_velocity, offset_velocity = state
    z_mean, zz_mean = z.mean(1)[:, None], (z * z).mean(1)[:, None]
    x, xx = mean + z_mean, mean**2 + 2 * mean * z_mean + zz_mean
    slope_velocity = mu * slope_velocity - 2 * ETA * (xx * slope + x * offset)
    offset_velocity = mu * offset_velocity - 2 * ETA * (x * slope + offset)
    return slope + slope_velocity, offset + offset_velocity, slope_velocity, offset_velocity
