"""Which time scale of a stream is to blame: growth against what is kept of the order, and the spectrum of B."""

from typing import Any

import jax
import numpy as np
import xarray as xr
from jax import Array

from resonance_jax.optimizers.linear import heavy_ball
from resonance_jax.problems.base import LeastSquares
from resonance_jax.problems.orders import blocks, buffer
from resonance_jax.sweep import sweep
from resonance_jax.theory.recorded.growth import Growth, found_in, growth_of_run, mean_over
from resonance_jax.theory.recorded.verdicts import HARMLESS, signs

ORDERS = 3  # tongues that are listed
MODES = 6  # directions of largest curvature whose modulation is looked at
SEEDS = 2  # runs for each length of the blocks and size of the buffer
SEGMENTS = 4  # of the stream, at least, whose spectra are averaged


def by_block(problem: LeastSquares, rows: int, setting: tuple[float, float]) -> Growth:
    """Growth where blocks of 1, 2, 4, ... rows keep their order, up to all rows."""
    lengths = np.append(2 ** np.arange(int(np.log2(rows - 1)) + 1), rows)
    return _over(problem, blocks, "block_length", lengths, setting)


def by_buffer(problem: LeastSquares, rows: int, setting: tuple[float, float]) -> Growth:
    """Growth behind a shuffle buffer of 1, 2, 4, ... rows, up to all rows."""
    sizes = 2 ** np.arange(int(np.log2(rows)) + 1)
    largest = int(sizes[-1])
    return _over(problem, lambda size: buffer(size, max_size=largest), "buffer_size", sizes, setting)


def _over(
    problem: LeastSquares,
    order: Any,
    name: str,
    values: np.ndarray,
    setting: tuple[float, float],
) -> Growth:
    def point(number: Array, seed: Array, mu: Array, eta: Array) -> dict[str, Growth]:
        return {"growth": growth_of_run(problem, order(number), jax.random.key(seed), heavy_ball(mu, eta))}

    mu, eta = setting
    axes = {"number": values.astype(np.int32), "seed": np.arange(1, SEEDS + 1), "mu": [mu], "eta": [eta]}
    found = sweep(point, axes).astype(float).isel(mu=0, eta=0, drop=True).rename(number=name)
    return mean_over(found_in(found), "seed")


def growth_returns_at(growth: Growth) -> int | None:
    """Shortest block from which on all longer ones grow; None where none does."""
    _, grows = signs(growth)
    return _first_of_the_last(grows.values, growth.rate.block_length.values)


def smallest_safe_buffer(growth: Growth) -> int | None:
    """Smallest buffer that shrinks, of those from which on no larger one grows or bursts; None where none does."""
    shrinks, grows = signs(growth)
    harmless = ~grows & (growth.rise < HARMLESS)
    lasting = harmless.values & np.logical_and.accumulate(harmless.values[::-1])[::-1]
    found = np.flatnonzero(lasting & shrinks.values)
    return int(growth.rate.buffer_size.values[found[0]]) if found.size else None


def _first_of_the_last(holds: np.ndarray, values: np.ndarray) -> int | None:
    lasting = np.flatnonzero(np.logical_and.accumulate(holds[::-1])[::-1])
    return int(values[lasting[0]]) if lasting.size else None


def modulation(x: np.ndarray, samples: int, curvature: np.ndarray) -> xr.DataArray:
    """Power spectral density of the strongest modulation of B, over the frequency in turns per step.

    Args:
        x: rows with the 1 of the bias, (N, weights).
        samples: rows of a step.
        curvature: mean of B.

    Returns:
        Welch's density of the first principal component of the entries of B, in the directions of largest curvature.
        The component has variance 1.
    """
    from scipy.signal import welch  # slow to import

    _, vectors = np.linalg.eigh(curvature)
    z = x @ vectors[:, ::-1][:, :MODES].astype(x.dtype)
    z = z.reshape(len(x) // samples, samples, -1)
    upper = np.triu_indices(z.shape[2])
    entries = np.einsum("ksi,ksj->kij", z, z)[:, upper[0], upper[1]].astype(float) / samples
    entries -= entries.mean(axis=0)
    _, directions = np.linalg.eigh(entries.T @ entries)
    component = entries @ directions[:, -1]
    component /= component.std() or 1.0
    segment = max(16, len(component) // SEGMENTS)
    frequency, density = welch(component, nperseg=min(segment, len(component)))
    return xr.DataArray(density[1:], dims="frequency", coords={"frequency": frequency[1:]})


def tongue_periods(curvature: np.ndarray, setting: tuple[float, float]) -> xr.DataArray:
    """Periods in steps at which theory expects resonance, (mode, tongue); NaN for a mode that does not oscillate.

    A mode of curvature b turns by omega a step, cos omega = (1 + mu - eta b) / (2 sqrt(mu)), and a modulation of B of
    frequency 2 omega / n, in radians per step, excites it: a period of  n pi / omega  steps, for n = 1, 2, 3.
    """
    mu, eta = setting
    b = np.linalg.eigvalsh(curvature)[::-1][:MODES]
    cosine = (1 + mu - eta * b) / (2 * np.sqrt(max(mu, 1e-12)))
    omega = np.where(np.abs(cosine) < 1, np.arccos(np.clip(cosine, -1, 1)), np.nan)
    order = np.arange(1, ORDERS + 1)
    return xr.DataArray(
        order * np.pi / omega[:, None], dims=("mode", "tongue"), coords={"mode": np.arange(len(b)), "tongue": order}
    )
