"""Growth and verdicts over momentum and step size: one compiled sweep."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import xarray as xr
from jax import Array

from resonance_jax.optimizers.linear import heavy_ball
from resonance_jax.problems.base import LeastSquares
from resonance_jax.problems.orders import blocks
from resonance_jax.sweep import sweep
from resonance_jax.theory.recorded import verdicts
from resonance_jax.theory.recorded.growth import Growth, expected_rate, found_in, growth_of_run, mean_over


def plane(
    problem: LeastSquares, mus: np.ndarray, etas: np.ndarray, permutations: int, *, progress: bool = False
) -> xr.Dataset:
    """Growth in time order and shuffled, what is expected, and the verdicts.

    Args:
        problem: recorded rows.
        mus, etas: momenta and step sizes, ascending.
        permutations: shuffled runs of each cell.
        progress: show a bar.

    Returns:
        Over `mu` and `eta`: `growth_rate`, `shuffled_rate`, their standard errors, `expected_rate`, `rise`,
        `shuffled_rise` and `verdict`; `largest_safe_mu` for each step size, `largest_safe_eta` for each momentum.
    """
    found = sweep(point_of(problem), axes_of(problem, mus, etas, permutations), progress=progress)
    found = found.drop_vars(["length", "seed"]).astype(float)
    time, mixed = found_in(found.isel(run=0)), mean_over(found_in(found.isel(run=slice(1, None))), "run")
    assert problem.recorded is not None
    return summary(time, mixed, problem.recorded.curvature)


def point_of(problem: LeastSquares) -> Callable[..., dict[str, Growth]]:
    """The growth of one run, for `rj.sweep`."""

    def point(length: Array, seed: Array, mu: Array, eta: Array) -> dict[str, Growth]:
        return {"growth": growth_of_run(problem, blocks(length), jax.random.key(seed), heavy_ball(mu, eta))}

    return point


def axes_of(problem: LeastSquares, mus: np.ndarray, etas: np.ndarray, permutations: int) -> dict[str, Any]:
    """One run in time order and several shuffled, for each momentum and step size.

    One block of all rows is the order of time, and blocks of one row are shuffled, so one program serves both.
    """
    assert problem.recorded is not None
    lengths = np.array([len(problem.recorded.rows)] + [1] * permutations, np.int32)
    seeds = np.array([0, *range(permutations)])
    return {
        "length": xr.DataArray(lengths, dims="run"),
        "seed": xr.DataArray(seeds, dims="run"),
        "mu": mus,
        "eta": etas,
    }


def summary(time: Growth, mixed: Growth, curvature: np.ndarray) -> xr.Dataset:
    """The rates as one dataset, with what is expected and what follows from them."""
    expected = expected_rate(curvature, time.rate.mu, time.rate.eta)
    verdict = verdicts.verdicts(time, mixed, expected)
    return xr.Dataset(
        {
            "growth_rate": time.rate,
            "growth_rate_standard_error": time.standard_error,
            "rise": time.rise,
            "shuffled_rate": mixed.rate,
            "shuffled_rate_standard_error": mixed.standard_error,
            "shuffled_rise": mixed.rise,
            "expected_rate": expected,
            "verdict": verdict,
            "largest_safe_mu": verdicts.largest_safe(verdict, "mu"),
            "largest_safe_eta": verdicts.largest_safe(verdict, "eta"),
        }
    )
