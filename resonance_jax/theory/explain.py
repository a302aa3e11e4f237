"""Why does it diverge? Growth rates under a shift, with its inputs held, and without it; and a verdict in words."""

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax import checks
from resonance_jax.numerics.estimate import Estimate, exact
from resonance_jax.optimizers.choosing import chosen
from resonance_jax.optimizers.linear import LinearOptimizer, nesterov
from resonance_jax.problems.base import Problem
from resonance_jax.runs import contracts
from resonance_jax.shifts.base import Shift
from resonance_jax.shifts.inputs import Inputs
from resonance_jax.shifts.laws.periodic import Periodic
from resonance_jax.sweep import sweep
from resonance_jax.theory.explanation import SURE, Explanation, Rates, smaller_step
from resonance_jax.theory.floquet.crossing import crossing, kind_of
from resonance_jax.theory.floquet.mean import mean_growth
from resonance_jax.theory.frozen import farthest_inputs, held_growth
from resonance_jax.theory.noise.almost_sure import almost_sure_growth
from resonance_jax.theory.noise.mean_square import mean_square_growth
from resonance_jax.theory.search.resonances import curvatures_each

if TYPE_CHECKING:
    import optax

NUM_RUNS = 32  # their spread gives the standard error of the almost-sure rate
MARKEDLY = 2.0  # the motion is to blame too if it makes runs grow at least this many times as fast as noise alone
ROUNDING = 1e-6  # growth of the mean below this is rounding: at mu = 1 it may neither grow nor shrink
LEAST_STEPS, MOST_STEPS = 10_000, 1_000_000  # of a run whose length is not given


def explain(
    shift: Shift | None = None,
    problem: Problem | None = None,
    mu: float | None = None,
    eta: float | None = None,
    *,
    optimizer: "optax.GradientTransformation | None" = None,
    key: Array | None = None,
    num_steps: int | None = None,
    nodes: int = 64,
) -> Explanation:
    """Whether runs grow under a shift, what is to blame, and what to do.

    The shift is compared with two situations in which nothing moves: iid inputs, and inputs held at the far end of the
    drift, where the curvature is largest. Typical runs decide, by the almost-sure rate, the mean over 32 runs; they
    grow or shrink where it differs from 0 by more than two standard errors. The verdict is the first that fits:

        stable             typical runs and the mean square shrink
        step too large     the mean of iid inputs' runs grows: the drift is not needed to diverge
        mean-square only   typical runs shrink, rare ones grow so much that the mean square does too
        frozen instability typical runs and the mean grow, and the mean does where the drift is farthest, standing still
        resonance          typical runs grow, and shrink where nothing moves: the motion is to blame
        both               they grow by noise where nothing moves, and at least twice as fast under the shift
        noise              they grow by noise where nothing moves, and the motion does not double that
        undecided          a rate that decides is within two standard errors of 0; more steps may settle it

    Recorded rows are compared with the same rows shuffled, and get the verdicts of `rj.diagnose`, which looks at many
    settings at once and finds out more.

    Args:
        shift: from `resonance_jax.shifts`, or one of your own. Its iid baseline has a mean of 0, and inputs of a
            variance larger by its `iid_variance`. None: nothing moves, or the problem has rows of its own.
        problem: from `resonance_jax.problems.linear_regression` or `recorded`.
        mu: momentum, a plain number in [0, 1].
        eta: step size, a plain number > 0.
        optimizer: instead of mu and eta, any optax optimizer that is linear in the gradient, with plain numbers.
        key: of the runs; None takes a fixed one.
        num_steps: of each run, a multiple of 10; the first tenth is left out. None takes at least 10,000, and whole
            periods in each tenth.
        nodes: as `mean_growth`. Neither this nor `num_steps` is for recorded rows.

    Returns:
        An `Explanation`. The mean's rate is the discrete one. Along simulated paths, as of AR(2), the mean and the mean
        square are estimates, along the means of the same 32 runs.

    Raises:
        ValueError: traced values (sweep the three rates instead), or what the rates refuse.

    >>> import resonance_jax as rj
    >>> problem = rj.problems.linear_regression(dim=1, samples=20, bias=False)
    >>> explain(rj.shifts.sinusoid(1 / 26, amplitude=2.0), problem, 0.99, 0.01, num_steps=1000).verdict
    'resonance'
    """
    traced = [name for name, value in (("mu", mu), ("eta", eta)) if not checks.is_concrete(value)]
    if traced:
        raise ValueError(
            f"explain needs plain numbers, got a traced {traced[0]}; sweep mean_growth, mean_square_growth and "
            "almost_sure_growth instead"
        )
    linear = chosen(mu, eta, optimizer)
    if any(each.of for gradient, weight, old in linear.rows() for each in (gradient, weight, *old)):
        raise ValueError(
            "explain needs plain numbers, got an optimizer with traced ones; sweep the three rates instead"
        )
    least_squares = contracts.least_squares_of(problem)
    assert problem is not None
    source = contracts.source_of(shift, problem)
    if not isinstance(source, Shift):
        from resonance_jax.theory.recorded.explained import explain_rows  # it imports xarray, which is slow

        return explain_rows(least_squares, linear, eta)
    shift = source
    key = jax.random.key(0) if key is None else key
    num_steps = _enough_steps(shift) if num_steps is None else num_steps
    far = farthest_inputs(shift, problem)
    ends = _ends(shift, far)
    under, held, without = _rates(shift, problem, ends, linear, key, num_steps, nodes)
    iid_step, far_step = (smaller_step(linear, eta, high) for high in curvatures_each(ends, problem)[::-1, -1])
    verdict, sentence, remedy = _verdict(under, held, without, (iid_step, far_step))
    if verdict == "resonance" and optimizer is None:
        remedy += _of_nesterov(shift, problem, float(mu or 0), float(eta or 0), nodes)
    return Explanation(under, without, verdict, sentence, remedy, held)


def _enough_steps(shift: Shift) -> int:
    """Whole periods in each tenth of a run, so that no half of the drift has more weight than the other."""
    tenth, period = LEAST_STEPS / 10, np.inf if shift.law.cycle is None else float(shift.law.cycle)
    if np.isinf(period):
        return LEAST_STEPS
    if period > MOST_STEPS / 10:
        raise ValueError(
            f"a period of {period:g} steps is longer than the {MOST_STEPS / 10:g} that runs are made for; ask for a "
            "faster drift, for the mean held still, or give num_steps"
        )
    return 10 * round(np.ceil(tenth / period) * period)


def _ends(shift: Shift, far: Inputs) -> Inputs:
    """Where nothing moves, (2, dim) and (2,): the far end of the drift, and the iid baseline."""
    iid = jnp.asarray(shift.iid_variance, far.variance.dtype)
    return Inputs(jnp.stack([far.mean, jnp.zeros_like(far.mean)]), jnp.stack([far.variance, iid]))


def _rates(
    shift: Shift, problem: Problem, ends: Inputs, optimizer: LinearOptimizer, key: Array, num_steps: int, nodes: int
) -> tuple[Rates, Rates, Rates]:
    """Under the shift, held at its far end, and of the iid baseline; typical runs by one program for all three."""
    settings: dict[str, Any] = dict(problem=problem, optimizer=optimizer)
    keys = jax.random.split(key, NUM_RUNS)

    def run(stage: Array, number: Array) -> dict[str, Array]:
        staged = _staged(shift, ends, stage)
        return {"rate": almost_sure_growth(staged, key=keys[number], num_steps=num_steps, **settings).rate}

    def moving(stage: Array) -> dict[str, Estimate]:
        paths: dict[str, Any] = dict(
            key=key, path_steps=num_steps, num_paths=NUM_RUNS, nodes=nodes
        )  # those of the runs
        square = mean_square_growth(shift, **settings, **paths)
        if not isinstance(shift.law, Periodic):
            return {
                "mean": mean_growth(shift, **settings, **paths),
                "square": square,
                "angle": exact(jnp.full_like(square.rate, jnp.nan)),
            }
        found = crossing(shift, **settings)
        return {"mean": exact(found.rate), "square": square, "angle": exact(found.angle)}

    def still(stage: Array) -> dict[str, Estimate]:
        mean, square = held_growth(jax.tree.map(lambda leaf: leaf[stage - 1], ends), **settings)
        return {"mean": exact(mean), "square": exact(square), "angle": exact(jnp.full_like(mean, jnp.nan))}

    runs = sweep(run, {"stage": range(3), "number": range(NUM_RUNS)}).rate.values.astype(float)
    typical, errors = runs.mean(axis=1), runs.std(axis=1, ddof=1) / np.sqrt(NUM_RUNS)
    parts = [sweep(moving, {"stage": [0]}), sweep(still, {"stage": [1, 2]})]
    moments = {name: np.concatenate([part[name].values for part in parts]).astype(float) for name in parts[0].data_vars}

    def rates(stage: int) -> Rates:
        mean, mean_error, square, square_error = (
            float(moments[name][stage]) for name in ("mean", "mean_standard_error", "square", "square_standard_error")
        )
        kind = kind_of(mean, float(moments["angle"][stage])) if stage == 0 and isinstance(shift.law, Periodic) else ""
        return Rates(mean, square, float(typical[stage]), float(errors[stage]), mean_error, square_error, kind)

    return rates(0), rates(1), rates(2)


def _of_nesterov(shift: Shift, problem: Problem, mu: float, eta: float, nodes: int) -> str:
    """Whether a word in the training script removes the resonance."""
    other: Any = nesterov(mu, eta)
    found = sweep(
        lambda setting: {"square": mean_square_growth(shift, problem, optimizer=other, nodes=nodes)}, {"setting": [0]}
    )
    rate, error = (float(found[name][0]) for name in ("square", "square_standard_error"))
    return NESTEROV.format(rate=-rate) if rate + SURE * error < 0 else ""


def _staged(shift: Shift, ends: Inputs, stage: Array) -> Shift:
    """For a run: the shift itself in stage 0, and in stages 1 and 2 its inputs held at one of the ends."""

    def inputs(key: Array, k: Array, state: Any) -> tuple[Inputs, Any]:
        sequence, state = shift.inputs(key, k, state)
        held = jax.tree.map(lambda leaf: leaf[jnp.maximum(stage - 1, 0)][None], ends)
        return jax.tree.map(lambda moving, still: jnp.where(stage == 0, moving, still), sequence, held), state

    return shift._replace(inputs=inputs)


SMALLER_MOMENTUM = "Take a smaller momentum (rj.theory.largest_safe_momentum finds one), or shuffle the data."
RARE_DRIFTS = "Take a smaller step size or a smaller momentum; where nothing moves, the mean square converges."
NESTEROV = " Nesterov's momentum, optax.sgd(..., nesterov=True), shrinks at this setting, by {rate:.2g} a step."
HOW = {
    "+1": " Each period of the shift makes the mean grow along one mode (multiplier +1).",
    "-1": " Each period of the shift turns the mean around and makes it grow (multiplier -1).",
    "pair": " Two modes of the weights feed each other (a pair of complex multipliers).",
}
LESS_NOISE = "Take more samples a step, a smaller step size or a smaller momentum."


def _verdict(under: Rates, held: Rates, without: Rates, smaller_steps: tuple[str, str]) -> tuple[str, str, str]:
    """First of the verdicts that fits, what it means, and what to do."""
    still = max(held, without, key=lambda rates: rates.almost_sure)  # the faster of the two in which nothing moves
    error = np.hypot(under.standard_error, still.standard_error)
    faster = under.almost_sure - still.almost_sure > SURE * error
    calmed = " Without the shift they would diverge." if without.grows else ""
    where = "sampling noise alone makes runs diverge"
    if not without.grows and held.mean > ROUNDING:
        where = "sampling noise makes runs diverge, whose mean converges; held at the far end, the mean diverges too"
    elif not without.grows:
        where = "with the mean held at its far end, sampling noise alone makes runs diverge"
    too_large, too_far = smaller_steps
    fitting = [
        (
            under.shrinks and under.mean_square <= 0,
            ("stable", "typical runs converge, and so does their mean square." + calmed, ""),
        ),
        (
            without.mean > ROUNDING,
            ("step too large", "the step size is too large for these inputs, even if they do not drift.", too_large),
        ),
        (
            under.shrinks,
            (
                "mean-square only",
                "typical runs converge, but rare ones grow so much that the mean square diverges." + calmed,
                LESS_NOISE if max(held.mean_square, without.mean_square) > 0 else RARE_DRIFTS,
            ),
        ),
        (
            not under.grows,
            (
                "undecided",
                "the rate of a typical run is within two standard errors of 0; more steps may settle it.",
                "Treat it as unsafe. " + SMALLER_MOMENTUM,
            ),
        ),
        (
            held.mean > ROUNDING and under.mean > ROUNDING,
            (
                "frozen instability",
                "the inputs are too large at the far end of the drift: held there, runs diverge without any motion.",
                too_far,
            ),
        ),
        (
            still.shrinks,
            ("resonance", "typical runs diverge under the shift and converge where nothing moves.", SMALLER_MOMENTUM),
        ),
        (
            not still.grows,
            (
                "undecided",
                "typical runs diverge; more steps may settle whether they would if nothing moved.",
                SMALLER_MOMENTUM,
            ),
        ),
        (
            faster and under.almost_sure > MARKEDLY * still.almost_sure,
            ("both", f"{where}, and the motion makes them diverge at least twice as fast.", LESS_NOISE),
        ),
        (True, ("noise", f"{where}; the motion does not make them diverge twice as fast.", LESS_NOISE)),
    ]
    verdict, sentence, remedy = next(verdict for fits, verdict in fitting if fits)
    return verdict, sentence + (HOW.get(under.crossing, "") if verdict in ("resonance", "both") else ""), remedy
