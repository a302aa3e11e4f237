"""The first heatmap in numba: a parallel loop over (f, seed), steps inside, the momenta innermost."""

import math
from collections.abc import Callable
from typing import Any

import numba  # pyright: ignore[reportMissingImports]
import numpy as np

from benchmarks._heatmap_setting import AMPLITUDE, ETA, SAMPLES, TAIL
from benchmarks._measure import Axes


@numba.njit(parallel=True, fastmath=False)
def totals(f: Any, mu: Any, errors: Any, z_means: Any, zz_means: Any) -> Any:
    """Sum of the distances of the tail, (f, seed, mu); moments of the noise are (seed, step), errors (2, seed)."""
    num_f, (num_seeds, num_steps), lanes = len(f), z_means.shape, len(mu)
    step_size = np.float32(2 * ETA)
    total = np.zeros((num_f, num_seeds, lanes), np.float32)
    for task in numba.prange(num_f * num_seeds):
        i, seed = task // num_seeds, task % num_seeds
        slope = np.full(lanes, errors[0, seed], np.float32)
        offset = np.full(lanes, errors[1, seed], np.float32)
        slope_velocity = np.zeros(lanes, np.float32)
        offset_velocity = np.zeros(lanes, np.float32)
        for k in range(num_steps):
            mean = np.float32(AMPLITUDE * math.sin(2 * math.pi * f[i] * k))
            z, zz = z_means[seed, k], zz_means[seed, k]
            x = mean + z
            xx = mean * mean + (mean * z + mean * z) + zz
            for j in range(lanes):
                slope_velocity[j] = mu[j] * slope_velocity[j] - step_size * (xx * slope[j] + x * offset[j])
                offset_velocity[j] = mu[j] * offset_velocity[j] - step_size * (x * slope[j] + offset[j])
                slope[j] += slope_velocity[j]
                offset[j] += offset_velocity[j]
            if k >= num_steps - TAIL:
                for j in range(lanes):
                    total[i, seed, j] += np.sqrt(slope[j] * slope[j] + offset[j] * offset[j])
    return total


def loop(axes: Axes, num_steps: int) -> Callable[[], Any]:
    f, mu = axes["f"], axes["mu"].astype(np.float32)
    num_seeds = len(axes["seed"])

    def call() -> Any:
        rng = np.random.default_rng(0)
        weights = rng.uniform(-1, 1, (2, 2, num_seeds)).astype(np.float32)
        z = rng.standard_normal((num_seeds, num_steps, SAMPLES), dtype=np.float32)
        total = totals(f, mu, weights[0] - weights[1], z.mean(2), (z * z).mean(2))
        with np.errstate(all="ignore"):
            return np.log10(total / TAIL)

    return call
