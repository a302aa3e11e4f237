"""Why does it diverge? Rates of growth under a shift, with its mean held, and without it; and a verdict in words."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax import checks
from resonance_jax.problems.linear_regression import LinearRegression
from resonance_jax.shifts.base import Shift
from resonance_jax.theory.estimate import Estimate, exact
from resonance_jax.theory.floquet.expected import optimizer
from resonance_jax.theory.frozen import farthest_mean, frozen_growth
from resonance_jax.theory.noise.almost_sure import almost_sure_growth
from resonance_jax.theory.noise.mean import mean_growth
from resonance_jax.theory.noise.mean_square import mean_square_growth
from resonance_jax.theory.search.resonances import curvatures_at

NUM_RUNS = 32  # whose spread gives the standard error of the almost-sure rate
MARKEDLY = 2.0  # the motion adds to the noise where it makes runs grow at least so many times as fast
SURE = 2.0  # standard errors
ROUNDING = 1e-6  # a mean that grows slower than that stands still, as every one does at mu = 1
LEAST_STEPS, MOST_STEPS = 10_000, 1_000_000  # of a run whose length is not given


class Rates(NamedTuple):
    """Growth per step. An error of 0 says that the rate is exact."""

    mean: float  # of log ||E xi||
    mean_square: float  # half of log E ||xi||^2
    almost_sure: float  # of log ||xi|| of a typical run
    standard_error: float  # of the almost-sure rate
    mean_error: float = 0.0  # standard error of `mean`
    mean_square_error: float = 0.0  # of `mean_square`

    @property
    def grows(self) -> bool:
        """Whether a typical run grows, by more than two standard errors."""
        return self.almost_sure > SURE * self.standard_error

    @property
    def shrinks(self) -> bool:
        return self.almost_sure < -SURE * self.standard_error


class Explanation(NamedTuple):
    """What `explain` returns; print it."""

    shift: Rates
    baseline: Rates  # of iid inputs
    verdict: str  # stable, mean-square only, step too large, frozen instability, resonance, noise, both or undecided
    sentence: str  # what it means
    remedy: str  # what to do about it; empty where nothing is to be done
    held: Rates  # with the mean held at its farthest

    def __str__(self) -> str:
        columns = {"under the shift": self.shift, "held at its end": self.held, "iid baseline": self.baseline}
        rows = [f"{'growth per step':<18}" + "".join(f"{name:>20}" for name in columns)]
        for name, label, error in (
            ("mean", "mean", "mean_error"),
            ("mean_square", "mean square", "mean_square_error"),
            ("almost_sure", "almost sure", "standard_error"),
        ):
            cells = [_number(getattr(each, name), getattr(each, error)) for each in columns.values()]
            rows.append(f"{label:<18}" + "".join(f"{cell:>20}" for cell in cells))
        rows.append("Numbers with +- are estimates and their standard errors, the others are exact.")
        return "\n".join([*rows, f"{self.verdict}: {self.sentence}", *([self.remedy] if self.remedy else [])])


def _number(rate: float, error: float) -> str:
    return f"{rate:+.5f} +- {error:.5f}" if error else f"{rate:+.5f}"


def explain(
    shift: Shift,
    problem: LinearRegression,
    mu: float,
    eta: float,
    *,
    key: Array | None = None,
    num_steps: int | None = None,
) -> Explanation:
    """Whether runs grow under a shift, what is to blame, and what to do.

    The shift is compared with two situations in which nothing moves: iid inputs, and inputs whose mean is held at the
    farthest point of the drift. Typical runs decide, by the almost-sure rate, the mean over 32 runs; they grow or
    shrink where it differs from 0 by more than two standard errors. The verdict is the first that fits:

        stable             typical runs and the mean square shrink
        step too large     the mean of iid inputs' runs grows: the drift is not needed to diverge
        mean-square only   typical runs shrink, rare ones grow so much that the mean square does too
        frozen instability typical runs and the mean grow, and the mean does where the drift is farthest, standing still
        resonance          typical runs grow, and shrink where nothing moves: the motion is to blame
        both               they grow by noise where nothing moves, and at least twice as fast under the shift
        noise              they grow by noise where nothing moves, and the motion does not double that
        undecided          a rate that decides is within two standard errors of 0; more steps may tell

    Args:
        shift: from `resonance_jax.shifts`, or one of your own. Its iid baseline has a mean of 0, and
            inputs of a variance larger by its `iid_spread`.
        problem: from `resonance_jax.problems.linear_regression`.
        mu: momentum, a plain number in [0, 1].
        eta: step size, a plain number > 0.
        key: of the runs; None takes a fixed one.
        num_steps: of each run, a multiple of 10; the first tenth is left out. None takes at least 10,000, and whole
            periods in each tenth.

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
    optimizer(mu, eta)
    key = jax.random.key(0) if key is None else key
    num_steps = _enough_steps(shift) if num_steps is None else num_steps
    far = farthest_mean(shift)
    under, held, without = _rates(shift, problem, far, mu, eta, key, num_steps)
    largest_steps = _largest_steps(shift, problem, far, mu)
    return Explanation(under, without, *_verdict(under, held, without, largest_steps), held)


def _enough_steps(shift: Shift) -> int:
    """Whole periods in each tenth of a run: a part of one would count the fast or the slow half of the drift twice."""
    tenth, period = LEAST_STEPS / 10, np.inf if shift.period is None else float(shift.period)
    if np.isinf(period):
        return LEAST_STEPS
    if period > MOST_STEPS / 10:
        raise ValueError(
            f"a period of {period:g} steps is longer than the {MOST_STEPS / 10:g} that runs are made for; ask for a "
            "faster drift, for the mean held still, or give num_steps"
        )
    return 10 * round(np.ceil(tenth / period) * period)


def _rates(
    shift: Shift, problem: LinearRegression, far: np.ndarray, mu: float, eta: float, key: Array, num_steps: int
) -> tuple[Rates, Rates, Rates]:
    """With the shift, with its mean held, and without it; runs by one program for all three."""
    dtype = jnp.result_type(float)
    settings: dict[str, Any] = dict(problem=problem, mu=jnp.asarray(mu, dtype), eta=jnp.asarray(eta, dtype))
    paths: dict[str, Any] = dict(key=key, num_steps=num_steps, num_paths=NUM_RUNS)  # those of the runs below

    @jax.jit
    def runs(moving: Array, at: Array, spread: Array) -> Array:
        staged = _staged(shift, moving, at, spread)
        one = jax.vmap(lambda key: almost_sure_growth(staged, **settings, key=key, num_steps=num_steps).rate)
        return one(jax.random.split(key, NUM_RUNS))

    @jax.jit
    def frozen(at: Array, spread: Array) -> tuple[Estimate, Estimate]:
        mean, square = frozen_growth(shift._replace(spread=spread), mean=at, **settings)
        return exact(mean), exact(square)

    @jax.jit
    def moving() -> tuple[Estimate, Estimate]:
        return mean_growth(shift, **settings, **paths), mean_square_growth(shift, **settings, **paths)

    def rates(moments: tuple[Estimate, Estimate], moving: float, at: np.ndarray, spread: Any) -> Rates:
        found = np.asarray(runs(*(jnp.asarray(each, dtype) for each in (moving, at, spread))), float)
        (mean, mean_error), (square, square_error) = (map(float, each) for each in moments)
        error = float(found.std(ddof=1) / np.sqrt(NUM_RUNS))
        return Rates(mean, square, float(found.mean()), error, mean_error, square_error)

    def still(at: np.ndarray, spread: Any) -> Rates:
        return rates(frozen(jnp.asarray(at, dtype), jnp.asarray(spread, dtype)), 0.0, at, spread)

    return rates(moving(), 1.0, 0 * far, shift.spread), still(far, shift.spread), still(0 * far, shift.iid_spread)


def _staged(shift: Shift, moving: Array, at: Array, spread: Array) -> Shift:
    """For a run: the shift where `moving` is 1; where it is 0, a mean that stands at `at`. The spread is that given."""

    def means(key: Array, k: Array, state: Any) -> tuple[Array, Any]:
        sequence, state = shift.means(key, k, state)
        return moving * sequence + at[None, :], state

    return shift._replace(means=means, spread=spread)


def _largest_steps(shift: Shift, problem: LinearRegression, far: np.ndarray, mu: float) -> tuple[float, float]:
    """Step sizes beyond which the mean grows where nothing moves, eta b = 2 (1 + mu): iid inputs, and the far end."""
    alike = far * np.sqrt(problem.dim / far.size)
    ends = [(0 * alike, shift.iid_spread), (alike, shift.spread)]
    iid, end = (curvatures_at(mean[None, :], problem, float(np.asarray(spread))).high for mean, spread in ends)
    return 2 * (1 + mu) / iid, 2 * (1 + mu) / end


SMALLER_MOMENTUM = "Take a smaller momentum (rj.theory.largest_safe_momentum finds one), or shuffle the data."
RARE_DRIFTS = "Take a smaller step size or a smaller momentum; where nothing moves, the mean square converges."
LESS_NOISE = "Take more samples a step, a smaller step size or a smaller momentum."


def _verdict(under: Rates, held: Rates, without: Rates, largest_steps: tuple[float, float]) -> tuple[str, str, str]:
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
    too_large, too_far = (f"Take a step size below {eta:.3g}." for eta in largest_steps)
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
                "the rate of a typical run is within two standard errors of 0; more steps may tell.",
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
                "typical runs diverge; whether they would if nothing moved, more steps may tell.",
                SMALLER_MOMENTUM,
            ),
        ),
        (
            faster and under.almost_sure > MARKEDLY * still.almost_sure,
            ("both", f"{where}, and the motion makes them diverge at least twice as fast.", LESS_NOISE),
        ),
        (True, ("noise", f"{where}; the motion does not make them diverge twice as fast.", LESS_NOISE)),
    ]
    return next(verdict for fits, verdict in fitting if fits)
