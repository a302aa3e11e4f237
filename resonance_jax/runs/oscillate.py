"""Linear optimizers on least squares, computed exactly as a linear recursion that cannot overflow."""

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from resonance_jax.engine.calls import as_program
from resonance_jax.numerics import logscale
from resonance_jax.optimizers.choosing import chosen
from resonance_jax.problems.base import Problem
from resonance_jax.runs import contracts, divergence
from resonance_jax.runs.divergence import DIVERGED_ABOVE
from resonance_jax.runs.recursion import Run, recursion
from resonance_jax.runs.snapshots import along_steps, growth_between, snapshot_steps, walk
from resonance_jax.shifts.base import Shift

if TYPE_CHECKING:
    import optax


LOST = 1e6  # decades; stands for a run that left the range of floats within a few steps


@as_program("key", "mu", "eta")
def oscillate(
    key: Array,
    *,
    shift: Shift | None = None,
    problem: Problem,
    mu: ArrayLike | None = None,
    eta: ArrayLike | None = None,
    optimizer: "optax.GradientTransformation | None" = None,
    num_steps: int,
    tail: int,
    record: int = 0,
    diverged_above: ArrayLike = DIVERGED_ABOVE,
) -> dict[str, Any]:
    """One run of SGDm, or of another linear optimizer, in error coordinates e = theta - theta*.

        v_{k+1} = mu v_k - eta (B_k e_k - b_k),    e_{k+1} = e_k + v_{k+1},    v_0 = 0

    with B_k, b_k from the samples drawn at step k. The draws depend on the key alone, not on the optimizer or the
    shift: cells of a sweep with the same seed see the same noise (`cell_key` gives each its own). The state is rescaled
    by exact powers of two on the way, so a run may diverge or converge without limit.

    Args:
        key: typed key of the run, `jax.random.key(seed)`.
        shift: what the inputs do over time, from `resonance_jax.shifts`; None: nothing moves them, or the problem has
            rows of its own.
        problem: least squares, `resonance_jax.problems.linear_regression` or `recorded`.
        mu: momentum, in [0, 1].
        eta: step size, > 0.
        optimizer: instead of mu and eta, an `optax.GradientTransformation` that is linear in the gradient, e.g.
            `optax.sgd(eta, momentum=mu, nesterov=True)`; see `rj.optimizers.read`. `train` runs the others.
        num_steps: steps of the run.
        tail: how many of the last steps enter the mean distance.
        record: number of snapshots, equally spaced, the last at the end; 0 takes none.
        diverged_above: a run has diverged if its mean distance exceeds this many times that of the start; see
            `train`, which checks it along the way as well.

    Returns:
        `log10_distance`: log10 of the mean of ||theta_k - theta*|| over the last `tail` steps.
        `growth_rate`: growth of log ||(theta - theta*, v)|| per step, mean over the run; v stands for all buffers of
        the optimizer, measured in what they add to the weights.
        Both finite for every run; an error of exactly 0 reads as a tiny number. In float32 they are right to 1e-3
        decades and 1e-5 a step for every step size up to eta tr B = 1e15; where eta tr B lies between 10 and 1000, so
        that a step is one or two decades, the mean distance may be 0.2 decades too small.
        `diverged`: whether the mean distance of the last steps is above the limit.
        An optimizer that explodes by itself, as with a momentum above 3, or with hyperparameters that are no numbers,
        is reported as diverged by 10^1,000,000.
        With snapshots, over the dimension `step`: `log10_distance_curve`, of ||theta_k - theta*|| there, and
        `growth_curve`, growth of log ||(theta - theta*, v)|| per step since the snapshot before.

    Raises:
        ValueError: a value out of its range, a shift that does not fit the problem, or an optimizer that is not linear.

    >>> import jax, resonance_jax as rj
    >>> run = rj.oscillate(jax.random.key(0), shift=rj.shifts.sinusoid(1 / 22),
    ...                    problem=rj.problems.linear_regression(dim=1, samples=20),
    ...                    mu=0.99, eta=0.01, num_steps=1000, tail=100)
    >>> bool(run["growth_rate"] > 0), bool(run["diverged"])  # resonance
    (True, True)
    """
    least_squares, source = contracts.check_run(key, shift, problem, num_steps, tail)
    linear = chosen(mu, eta, optimizer)
    divergence.check(diverged_above)
    dtype = jnp.result_type(float)
    start, advance, phase_space = recursion(key, source=source, problem=least_squares, optimizer=linear)

    def sizes(run: Run) -> tuple[Array, Array]:
        """Logs of the distance, and of all that the optimizer keeps."""
        everything = phase_space(run)
        distance = everything._replace(mantissa=everything.mantissa[0])
        return unless_lost(run, logscale.log_norm(distance)), unless_lost(run, logscale.log_norm(everything))

    def unless_lost(run: Run, log: Array) -> Array:
        return jnp.where(jnp.isfinite(logscale.peak(run.state.mantissa)), log, LOST * np.log(10))

    steps = snapshot_steps(record, num_steps)
    run, seen = walk(
        lambda run, steps, measure: advance(run, steps, steps if measure else 0),
        sizes,
        start,
        steps=steps,
        num_steps=num_steps,
        tail=tail,
    )
    grown = sizes(run)[1] - sizes(start)[1]
    log_distance = unless_lost(run, logscale.log(run.total) - np.log(tail))
    theta_star, theta_0 = least_squares.weights(jax.random.split(key, 4)[0])
    reference = divergence.reference(logscale.norm(theta_0 - theta_star), logscale.norm(theta_star))
    found: dict[str, Any] = {
        "log10_distance": log_distance / np.log(10),
        "growth_rate": grown / num_steps,
        "diverged": log_distance - jnp.log(reference) > jnp.log(jnp.asarray(diverged_above, dtype)),
    }
    if seen is not None:
        distances, everything = seen
        found["log10_distance_curve"] = along_steps(distances / np.log(10), steps)
        found["growth_curve"] = along_steps(growth_between(sizes(start)[1], everything, steps), steps)
    return found
