"""Growth along recorded rows, measured on a run of whole passes."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import Array

from resonance_jax.numerics import logscale
from resonance_jax.optimizers.linear import LinearOptimizer
from resonance_jax.problems.base import LeastSquares, Recorded
from resonance_jax.problems.orders import Order
from resonance_jax.runs.recursion import Run, recursion

LEAST_STEPS = 10_000  # before growth is measured, and at least as many in whole passes while it is
CHECKS = 200  # about as often the size of the error is written down
BLOCK = 25  # steps; a multiple of it between two looks is what runs are quickest at
PARTS = 10  # of a pass, whose spread gives the standard error
LEAST_PASS = 40  # steps of a pass, of which there are three checks at least


class Clock(NamedTuple):
    """When the size of the error is looked at, in steps."""

    steps: int  # of a pass
    passes: int
    check: int  # between two looks
    checks: int


def clock_of(steps: int) -> Clock:
    """Whole passes of at least as many steps as a rate needs.

    >>> clock_of(50_000)
    Clock(steps=50000, passes=1, check=250, checks=200)
    """
    passes = math.ceil(LEAST_STEPS / steps)
    check = min(math.ceil(passes * steps / CHECKS / BLOCK) * BLOCK, steps // 3)
    return Clock(steps, passes, check, math.ceil(passes * steps / check))


def check_long_enough(recorded: Recorded) -> None:
    """ValueError for a stream of too few steps."""
    if recorded.steps < LEAST_PASS:
        raise ValueError(
            f"a diagnosis needs at least {LEAST_PASS} steps a pass, got {recorded.steps} of {recorded.samples} rows; "
            "take fewer rows a step, or a longer stream"
        )


class Growth(NamedTuple):
    """Growth per step of a run or of several, with whatever axes."""

    rate: Any
    standard_error: Any
    rise: Any  # largest rise from any time to a later one, in decades


def growth_of_run(problem: LeastSquares, order: Order, key: Array, optimizer: LinearOptimizer) -> Growth:
    """Growth of log ||(theta - theta*, v)|| on recorded rows in an order, after a start that is left out; traceable.

    Args:
        problem: recorded rows.
        order: in which they come.
        key: of the start and of the order.
        optimizer: who fits.
    """
    recorded = problem.recorded
    assert recorded is not None
    ordered = recorded.ordered(order)
    assert ordered.stream is not None
    clock = clock_of(recorded.steps)
    start, advance, phase_space = recursion(
        key, source=ordered.stream, problem=ordered, optimizer=optimizer, driven=False
    )

    def look(run: Run, _: None) -> tuple[Run, Array]:
        run = advance(run, clock.check)
        return run, logscale.log_norm(phase_space(run))

    first = advance(start, min(LEAST_STEPS, clock.passes * clock.steps))
    behind = jax.lax.scan(look, first, None, clock.checks)[1]
    return of_sizes(jnp.append(logscale.log_norm(phase_space(first)), behind), clock)


def of_sizes(sizes: Array, clock: Clock) -> Growth:
    """Growth of a run whose log size is known at the checks of a clock, (checks + 1,).

    In time order every pass sees the same rows. So each part of a pass is averaged over the passes first; the spread
    between the parts then tells how much the rate would differ on other rows of the same source.
    """
    parts = max(3, min(PARTS, clock.steps // clock.check))
    length = clock.steps / parts
    position = np.minimum(np.arange(clock.passes * parts + 1) * length / clock.check, clock.checks)
    below = np.minimum(position.astype(int), clock.checks - 1)
    share = jnp.asarray(position - below, sizes.dtype)
    at = (1 - share) * sizes[below] + share * sizes[below + 1]  # between two looks by a straight line
    of_parts = jnp.diff(at).reshape(clock.passes, parts).mean(axis=0) / length
    rise = jnp.max(sizes - jax.lax.cummin(sizes)) / np.log(10)
    return Growth(jnp.mean(of_parts), jnp.std(of_parts, ddof=1) / np.sqrt(parts), rise)


def found_in(data: xr.Dataset, name: str = "growth") -> Growth:
    """The growth that `rj.sweep` made three variables of."""
    return Growth(data[name], data[f"{name}_standard_error"], data[f"{name}_rise"])


def mean_over(growth: Growth, seeds: str) -> Growth:
    """Of runs that are independent of one another: their mean, its standard error, and the largest rise."""
    number = growth.rate.sizes[seeds]
    error = (growth.standard_error**2).sum(seeds) ** 0.5 / number
    return Growth(growth.rate.mean(seeds), error, growth.rise.max(seeds))


def expected_rate(curvature: np.ndarray, mu: xr.DataArray, eta: xr.DataArray) -> xr.DataArray:
    """Growth per step of SGDm on the mean of B over all rows: where each step sees the whole stream.

    A mode of curvature b has the multipliers  z^2 - (1 + mu - eta b) z + mu = 0.
    """
    b = xr.DataArray(np.linalg.eigvalsh(curvature), dims="mode")

    def largest(mu: np.ndarray, eta: np.ndarray, b: np.ndarray) -> np.ndarray:
        half = (1 + mu - eta * b) / 2
        root = np.sqrt((half**2 - mu).astype(complex))
        return np.log(np.maximum(np.maximum(np.abs(half + root), np.abs(half - root)), np.finfo(float).tiny))

    return xr.apply_ufunc(largest, mu, eta, b).max("mode")
