"""Growth along recorded rows: the size of the error over time, over any axes, and the rates on the host."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr
from jax import Array

from resonance_jax.numerics import logscale
from resonance_jax.problems.base import LeastSquares
from resonance_jax.problems.orders import Order
from resonance_jax.runs.recursion import Run, recursion
from resonance_jax.sweep import sweep

LEAST_STEPS = 10_000  # before growth is measured, and at least as many in whole passes while it is
CHECKS = 800  # at which the size of the error is written down
PARTS = 10  # of a pass, whose spread gives the standard error in time order
LEAST_PASS = 40  # steps of a pass, so that a check is no longer than a third of it


class Clock(NamedTuple):
    """When the size of the error is looked at, in steps."""

    steps: int  # of a pass
    passes: int
    check: int  # between two looks
    checks: int

    @property
    def times(self) -> np.ndarray:
        return self.check * np.arange(self.checks + 1)


def clock_of(steps: int) -> Clock:
    """Whole passes of at least as many steps as a rate needs.

    >>> clock_of(50_000)
    Clock(steps=50000, passes=1, check=63, checks=794)
    """
    passes = math.ceil(LEAST_STEPS / steps)
    check = math.ceil(passes * steps / CHECKS)
    return Clock(steps, passes, check, math.ceil(passes * steps / check))


def sizes(problem: LeastSquares, axes: Mapping[str, Any], order: Any, **options: Any) -> xr.DataArray:
    """log ||(theta - theta*, v)|| at the times of `clock_of`, after a start that is left out.

    Args:
        problem: recorded rows.
        axes: values of `mu`, `eta`, `seed` and `of_order`, as `rj.sweep` takes them.
        order: value of `of_order` -> the `Order` of the rows.
        options: for `rj.sweep`.

    Returns:
        The axes, and `check` behind them.
    """
    recorded = problem.recorded
    assert recorded is not None
    clock = clock_of(recorded.steps)

    def point(of_order: Array, seed: Array, mu: Array, eta: Array) -> dict[str, Array]:
        made: Order = order(of_order)
        ordered = recorded.ordered(made)._replace(kick=lambda drawn, inputs: None)  # kicks do not change the growth
        assert ordered.stream is not None
        start, advance, phase_space = recursion(
            jax.random.key(seed), source=ordered.stream, problem=ordered, mu=mu, eta=eta
        )

        def look(run: Run, _: None) -> tuple[Run, Array]:
            run = advance(run, clock.check)
            return run, logscale.log_norm(phase_space(run))

        first = advance(start, min(LEAST_STEPS, clock.passes * clock.steps))
        behind = jax.lax.scan(look, first, None, clock.checks)[1]
        return {"first": logscale.log_norm(phase_space(first)), "size": behind}

    found = sweep(point, axes, **options)
    dims = [*found["first"].dims, "check"]
    values = np.concatenate([found["first"].values[..., None], found["size"].values], axis=-1).astype(float)
    return xr.DataArray(values, dims=dims, coords=found["first"].coords)


class Rates(NamedTuple):
    """Growth per step and its standard error, and the largest rise on the way, in decades."""

    rate: xr.DataArray
    standard_error: xr.DataArray
    rise: xr.DataArray


def in_time(size: xr.DataArray, clock: Clock) -> Rates:
    """Rates of one run in time order.

    Every pass sees the same rows, so the spread between the parts of a pass, each averaged over the passes, tells how
    much the rate would differ on other rows of the same source.
    """
    parts = max(3, min(PARTS, clock.steps // clock.check))
    bounds = np.arange(clock.passes * parts + 1) * (clock.steps / parts)
    at = _at(size, bounds, clock)
    of_parts = np.diff(at, axis=-1).reshape(*at.shape[:-1], clock.passes, parts).mean(axis=-2) / (clock.steps / parts)
    return _rates(size, of_parts)


def over_seeds(size: xr.DataArray, clock: Clock, seeds: str) -> Rates:
    """Mean rates of runs whose order is drawn: all their parts are independent of one another."""
    moved = size.transpose(..., seeds, "check")
    total = clock.passes * clock.steps
    at = _at(moved, np.arange(PARTS + 1) * (total / PARTS), clock)
    of_parts = np.diff(at, axis=-1) / (total / PARTS)
    found = _rates(moved.isel({seeds: 0}, drop=True), of_parts.reshape(*of_parts.shape[:-2], -1))
    return found._replace(rise=_rise(moved).max(seeds))


def _rates(like: xr.DataArray, of_parts: np.ndarray) -> Rates:
    template = like.isel(check=0, drop=True)
    rate = template.copy(data=of_parts.mean(axis=-1))
    error = template.copy(data=of_parts.std(axis=-1, ddof=1) / np.sqrt(of_parts.shape[-1]))
    return Rates(rate, error, _rise(like))


def _at(size: xr.DataArray, times: np.ndarray, clock: Clock) -> np.ndarray:
    """Sizes at any times, between those that were looked at by straight lines; times on the last axis."""
    position = np.minimum(times / clock.check, clock.checks)
    below = np.minimum(position.astype(int), clock.checks - 1)
    values, share = size.values, position - below
    return (1 - share) * values[..., below] + share * values[..., below + 1]


def _rise(size: xr.DataArray) -> xr.DataArray:
    """Decades by which the error grew at most, from any time to a later one."""
    values = size.values
    rise = (values - np.minimum.accumulate(values, axis=-1)).max(axis=-1) / np.log(10)
    return size.isel(check=0, drop=True).copy(data=rise)


def expected_rate(curvature: np.ndarray, mu: xr.DataArray, eta: xr.DataArray) -> xr.DataArray:
    """Growth per step of SGDm on the mean of B over all rows: where each step sees the whole stream.

    A mode of curvature b has the multipliers  z^2 - (1 + mu - eta b) z + mu = 0.
    """
    b = xr.DataArray(np.linalg.eigvalsh(curvature), dims="mode")
    half = (1 + mu - eta * b) / 2
    root = np.sqrt((half**2 - mu).astype(complex))
    largest = np.maximum(np.abs(half + root), np.abs(half - root)).max("mode")
    return np.log(np.maximum(largest, np.finfo(float).tiny))
