"""One setting on recorded rows: growth in their order and shuffled, and a verdict in words."""

import numpy as np
import xarray as xr

from resonance_jax.problems.base import LeastSquares
from resonance_jax.problems.orders import shuffled
from resonance_jax.theory import explanation
from resonance_jax.theory.explanation import Explanation
from resonance_jax.theory.recorded import growth, verdicts

SEEDS = 8  # of orders that are drawn
REMEDIES = {
    "stable": "",
    "noise": "Take more rows a step, a smaller step size or a smaller momentum.",
    "step too large": "Take a step size below {step:.3g}.",
    "undecided": "Treat it as unsafe: take a smaller momentum or step size.",
}
OTHERWISE = "Take a smaller momentum or step size, or shuffle the rows; rj.diagnose finds how much of each."


def explain_rows(problem: LeastSquares, mu: float, eta: float) -> Explanation:
    """What `explain` says about recorded rows, in whatever order they come."""
    rows = problem.recorded
    if rows is None:
        raise ValueError("explain knows Gaussian and recorded inputs; for others, sweep rj.theory.almost_sure_growth")
    clock = growth.clock_of(rows.steps)

    def sizes(order: object, seeds: int) -> xr.DataArray:
        axes = dict(of_order=[0], seed=np.arange(seeds), mu=[mu], eta=[eta])
        return growth.sizes(problem, axes, lambda _: order).isel(of_order=0, mu=0, eta=0, drop=True)

    if rows.order.label == "time":
        own = growth.in_time(sizes(rows.order, 1).isel(seed=0, drop=True), clock)
    else:
        own = growth.over_seeds(sizes(rows.order, SEEDS), clock, "seed")
    mixed = growth.over_seeds(sizes(shuffled(), SEEDS), clock, "seed")
    expected = growth.expected_rate(rows.curvature, xr.DataArray(mu), xr.DataArray(eta))
    verdict = verdicts.NAMES[int(verdicts.verdicts(own, mixed, expected))]
    step = 2 * (1 + mu) / float(np.linalg.eigvalsh(rows.curvature)[-1])
    sentence = verdicts.MEANINGS[verdict]
    return Explanation(
        explanation.Rates(np.nan, np.nan, float(own.rate), float(own.standard_error)),
        explanation.Rates(float(expected), np.nan, float(mixed.rate), float(mixed.standard_error)),
        verdict,
        sentence if rows.order.label == "time" else sentence.replace("in time order", "in this order"),
        REMEDIES.get(verdict, OTHERWISE).format(step=step),
        None,
    )
