"""Why does it diverge? The three rates of growth under a shift beside those without it, and a verdict in words."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax import checks
from resonance_jax.problems.linear_regression import LinearRegression
from resonance_jax.shifts.base import Shift
from resonance_jax.theory.almost_sure import almost_sure_growth
from resonance_jax.theory.mean import mean_growth
from resonance_jax.theory.mean_square import mean_square_growth

NUM_RUNS = 32  # whose spread gives the standard error of the almost-sure rate
MARKEDLY = 2.0  # the shift adds to the noise where it makes runs grow at least so many times as fast
SURE = 2.0  # standard errors


class Rates(NamedTuple):
    """Growth per step."""

    mean: float  # of log ||E xi||
    mean_square: float  # half of log E ||xi||^2
    almost_sure: float  # of log ||xi|| of a typical run
    standard_error: float  # of the almost-sure rate

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
    verdict: str  # stable, mean-square only, resonance, noise, both or undecided
    sentence: str

    def __str__(self) -> str:
        rows = [f"{'growth per step':<20}{'under the shift':>22}{'iid baseline':>22}"]
        for name, label in (("mean", "mean"), ("mean_square", "mean square")):
            rows.append(
                f"{label:<20}" + "".join(f"{getattr(each, name):>+22.5f}" for each in (self.shift, self.baseline))
            )
        found = [f"{each.almost_sure:+.5f} +- {each.standard_error:.5f}" for each in (self.shift, self.baseline)]
        rows.append(f"{'almost sure':<20}" + "".join(f"{each:>22}" for each in found))
        return "\n".join([*rows, f"{self.verdict}: {self.sentence}"])


def explain(
    shift: Shift,
    problem: LinearRegression,
    mu: float,
    eta: float,
    *,
    key: Array | None = None,
    num_steps: int = 10_000,
) -> Explanation:
    """Whether runs grow under a shift, and whether the shift is to blame.

    Typical runs decide, by the almost-sure rate, the mean over 32 runs; they grow or shrink where it differs from 0 by
    more than two standard errors. The verdict is

        stable           typical runs and the mean square shrink
        mean-square only typical runs shrink, rare ones grow so much that the mean square does too
        resonance        typical runs grow, those of the iid baseline shrink
        noise            typical runs of the baseline grow as well, and the shift does not make them grow twice as fast
        both             typical runs of the baseline grow, and under the shift they grow at least twice as fast
        undecided        a rate that decides is within two standard errors of 0; more steps may tell

    Args:
        shift: from `resonance_jax.shifts`, or one of your own. Its iid baseline has a mean of 0, and
            inputs of a variance larger by its `iid_spread`.
        problem: from `resonance_jax.problems.linear_regression`.
        mu: momentum, a plain number in [0, 1].
        eta: step size, a plain number > 0.
        key: of the runs; None takes a fixed one.
        num_steps: of each run, a multiple of 10; the first tenth is left out.

    Returns:
        An `Explanation`. The mean's rate is the discrete one.

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
    key = jax.random.key(0) if key is None else key
    under, without = _rates(shift, problem, mu, eta, key, num_steps)
    return Explanation(under, without, *_verdict(under, without))


def _rates(
    shift: Shift, problem: LinearRegression, mu: float, eta: float, key: Array, num_steps: int
) -> tuple[Rates, Rates]:
    """With the shift and without it, by one program."""
    dtype = jnp.result_type(float)

    @jax.jit
    def found(moving: Array, mu: Array, eta: Array, key: Array) -> tuple[Array, Array, Array]:
        settings: dict[str, Any] = dict(shift=_moving(shift, moving), problem=problem, mu=mu, eta=eta)
        runs = jax.vmap(lambda key: almost_sure_growth(**settings, key=key, num_steps=num_steps).rate)
        return (
            mean_growth(**settings, discrete=True),
            mean_square_growth(**settings),
            runs(jax.random.split(key, NUM_RUNS)),
        )

    def rates(moving: float) -> Rates:
        mean, square, runs = found(*(jnp.asarray(value, dtype) for value in (moving, mu, eta)), key)
        runs = np.asarray(runs, float)
        return Rates(float(mean), float(square), float(runs.mean()), float(runs.std(ddof=1) / np.sqrt(NUM_RUNS)))

    return rates(1.0), rates(0.0)


def _moving(shift: Shift, moving: Array) -> Shift:
    """The shift where `moving` is 1, and where it is 0 its iid baseline: a mean of 0, with the spread of that."""

    def means(key: Array, k: Array, state: Any) -> tuple[Array, Any]:
        sequence, state = shift.means(key, k, state)
        return moving * sequence, state

    profile, redrawn = shift.profile, shift.redrawn
    spread, iid_spread = (jnp.asarray(value, moving.dtype) for value in (shift.spread, shift.iid_spread))
    return shift._replace(
        means=means,
        spread=jnp.where(moving > 0, spread, iid_spread),
        profile=None if profile is None else lambda phase: moving * profile(phase),
        redrawn=None if redrawn is None else redrawn._replace(variance=moving * redrawn.variance),
    )


def _verdict(under: Rates, without: Rates) -> tuple[str, str]:
    """First of the verdicts that fits."""
    error = np.hypot(under.standard_error, without.standard_error)
    faster = under.almost_sure - without.almost_sure > SURE * error
    calmed = " Without the shift they would diverge." if without.grows else ""
    fitting = [
        (
            not under.grows and not under.shrinks,
            "undecided",
            "the rate of a typical run is within two standard errors of 0; more steps may tell.",
        ),
        (
            under.shrinks and under.mean_square > 0,
            "mean-square only",
            "typical runs converge, but rare ones grow so much that the mean square diverges." + calmed,
        ),
        (under.shrinks, "stable", "typical runs converge, and so does their mean square." + calmed),
        (without.shrinks, "resonance", "typical runs diverge under the shift and converge without it."),
        (
            not without.grows,
            "undecided",
            "typical runs diverge; whether they would without the shift, more steps may tell.",
        ),
        (
            faster and under.almost_sure > MARKEDLY * without.almost_sure,
            "both",
            "sampling noise alone makes runs diverge, and the shift makes them diverge at least twice as fast.",
        ),
        (True, "noise", "sampling noise alone makes runs diverge; the shift does not make them diverge twice as fast."),
    ]
    return next((verdict, sentence) for fits, verdict, sentence in fitting if fits)
