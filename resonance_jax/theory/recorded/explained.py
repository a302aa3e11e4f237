"""One setting on recorded rows: growth in their order and shuffled, and a verdict in words."""

from typing import Any

import jax
import numpy as np
import xarray as xr
from jax import Array

from resonance_jax.optimizers import modes
from resonance_jax.optimizers.linear import LinearOptimizer
from resonance_jax.problems.base import LeastSquares
from resonance_jax.problems.orders import shuffled
from resonance_jax.sweep import sweep
from resonance_jax.theory import explanation
from resonance_jax.theory.explanation import Explanation
from resonance_jax.theory.recorded import verdicts
from resonance_jax.theory.recorded.growth import (
    Growth,
    check_long_enough,
    found_in,
    growth_of_run,
    mean_over,
)

SEEDS = 8  # of orders that are drawn
REMEDIES = {
    "stable": "",
    "noise": "Take more rows a step, a smaller step size or a smaller momentum.",
    "step too large": "{step}",
    "undecided": "Treat it as unsafe: take a smaller momentum or step size.",
}
OTHERWISE = "Take a smaller momentum or step size, or shuffle the rows; rj.diagnose finds how much of each."


def explain_rows(problem: LeastSquares, optimizer: LinearOptimizer, eta: float | None) -> Explanation:
    """What `explain` says about recorded rows, in whatever order they come."""
    rows = problem.recorded
    if rows is None:
        raise ValueError("explain knows Gaussian and recorded inputs; for others, sweep rj.theory.almost_sure_growth")
    check_long_enough(rows)

    def run(order: Any, seeds: int) -> Growth:
        def point(seed: Array) -> dict[str, Growth]:
            return {"growth": growth_of_run(problem, order, jax.random.key(seed), optimizer)}

        return mean_over(found_in(sweep(point, {"seed": np.arange(seeds)}).astype(float)), "seed")

    in_time = rows.order.label == "time"
    own, mixed = run(rows.order, 1 if in_time else SEEDS), run(shuffled(), SEEDS)
    curvatures = np.linalg.eigvalsh(rows.curvature)
    expected = xr.DataArray(modes.rates(optimizer, curvatures).max())
    verdict = verdicts.NAMES[int(verdicts.verdicts(own, mixed, expected))]
    sentence = verdicts.MEANINGS[verdict]
    return Explanation(
        explanation.Rates(np.nan, np.nan, float(own.rate), float(own.standard_error)),
        explanation.Rates(float(expected), np.nan, float(mixed.rate), float(mixed.standard_error)),
        verdict,
        sentence if in_time else sentence.replace("in time order", "in this order"),
        REMEDIES.get(verdict, OTHERWISE).format(step=explanation.smaller_step(optimizer, eta, curvatures[-1])),
        None,
    )
