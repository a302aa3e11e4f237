"""The largest momentum at which no frequency of a drift makes runs grow."""

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from resonance_jax import checks
from resonance_jax.numerics.estimate import Estimate
from resonance_jax.optimizers.linear import LinearOptimizer, heavy_ball
from resonance_jax.optimizers.reading import read
from resonance_jax.shifts.base import Shift
from resonance_jax.theory.noise.mean_square import mean_square_growth
from resonance_jax.theory.search.batches import evaluate, trace_rate
from resonance_jax.theory.search.drifts import Drifts, drifts_of
from resonance_jax.theory.search.first_growth import Bracket, first_growth

if TYPE_CHECKING:
    import optax

HIGHEST = 0.999  # above it, runs remember thousands of steps, and tongues of every order lie close together
ARGUMENTS = ("frequency", "mu", "eta", "errors")  # of the rate below
SURE = 3.0  # a rate may lie this many standard errors above its estimate


class SafeMomentum(NamedTuple):
    """What `largest_safe_momentum` found; print it.

    >>> found = SafeMomentum(0.886, 0.151, 5e-05, (0.0001, 0.5), "Safe up to momentum 0.886.")
    >>> print(found)
    Safe up to momentum 0.886.
    >>> found.mu - found.margin > 0.88
    True
    """

    mu: float  # nothing that was searched grows from `lowest` up to here; NaN if no momentum can be called safe
    frequency: float  # the first to grow above mu, in turns per step or as listed; NaN if nothing grows, or has none
    margin: float  # growth begins at most this far above mu; NaN if that is not known
    searched: tuple[float, float]  # lowest and highest frequency, or as listed; NaN for a single shift
    sentence: str  # the same in words, with the reason if mu is NaN

    def __str__(self) -> str:
        return self.sentence


class _Growth(NamedTuple):
    """A rate as a function of scalars; equal for the same parts, so that a second call does not compile again."""

    shift: Callable[[Any], Shift]
    problem: Any
    rate: Callable[..., Any]
    optimizer: Callable[[Any, Any], Any] | None
    keywords: tuple[tuple[str, Any], ...]

    def __call__(self, frequency: Any, mu: Any, eta: Any, errors: Any) -> Any:
        """The rate plus `errors` times its standard error."""
        fits: dict[str, Any] = (
            dict(mu=mu, eta=eta) if self.optimizer is None else dict(optimizer=self.optimizer(mu, eta))
        )
        found = self.rate(self.shift(frequency), self.problem, **fits, **dict(self.keywords))
        return found.rate + errors * found.standard_error if isinstance(found, Estimate) else found

    def _parts(self) -> tuple[Any, ...]:  # a problem and a key hold arrays, which have no hash
        return (*map(id, self[:4]), *((name, id(each) if name == "key" else each) for name, each in self.keywords))

    def __hash__(self) -> int:
        return hash(self._parts())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Growth) and self._parts() == other._parts()


def largest_safe_momentum(
    shift: Shift | Callable[[Any], Shift],
    problem: Any,
    eta: float,
    *,
    optimizer: "Callable[[Any, Any], optax.GradientTransformation] | None" = None,
    frequencies: Sequence[float] | np.ndarray | None = None,
    rate: Callable[..., Any] = mean_square_growth,
    lowest: float = 0.0,
    highest: float = HIGHEST,
    tolerance: float = 1e-4,
    coarse: int = 48,
    chunk: int = 256,
    **keywords: Any,
) -> SafeMomentum:
    """The largest momentum below which no frequency of a drift grows.

        mu = inf {mu in [lowest, highest] : rate(shift(f), problem, mu, eta) > 0 for some f}

    Unless frequencies are listed, the search chooses them. Tongues lie where n f is a natural frequency of SGDm, which
    follows from the step size, the curvature and the momentum, and a tongue that grows is at least as wide as the
    damping. So the search places two points in each such width, for momenta from the lowest up, and climbs every peak,
    until something grows. Between tongues, and for slow drifts down to f = 2^-13, it samples a few frequencies. It may
    miss tongues of an order above 8, which are weaker than those of lower order.

    An estimated rate is treated as growing unless it lies three standard errors below 0. It is sure to grow, which
    bounds the margin, if it lies three above. A better estimate therefore allows a larger momentum, e.g.
    `rate=rj.theory.almost_sure_growth, num_steps=100_000`.

    Args:
        shift: function of the frequency, as `rj.shifts.sinusoid`, or of the period or interval in steps, as
            `lambda T: rj.shifts.square_wave(T, dim=1)`; or a single shift.
        problem: as `rate` takes it; for the default rate made by `rj.problems.linear_regression`.
        eta: step size, > 0.
        optimizer: another one than SGDm, as a function of momentum and step size:
            `lambda mu, eta: optax.sgd(eta, momentum=mu, nesterov=True)`.
        frequencies: values to pass to `shift`, 1-D; None searches. Nothing between listed values is looked at.
        rate: `rate(shift, problem, mu=mu, eta=eta)`, or with `optimizer=` where one is given; traceable, a number or an
            `Estimate`, positive where it grows. The default, growth of the mean square, is the strictest: it includes
            the noise of the samples, and rare runs. `rj.theory.mean_growth` is the paper's.
        lowest, highest: momenta between which to search, in [0, 1].
        tolerance: largest margin of an exact rate; the margin of an estimated one also covers its errors.
        coarse: number of momenta in the first scan. Growth that begins and ends between two of them is missed.
        chunk: points that are evaluated together, as one compiled program.
        keywords: further arguments of `rate`, as `nodes`, `key`, `path_steps` or `num_steps`.

    Returns:
        A `SafeMomentum`: the momentum, what grows first above it, the margin, and the range searched. Its momentum is
        NaN if none can be called safe: something grows at the lowest momentum, or the first to grow is the slowest
        drift that was searched, so that an even slower one may grow earlier.

    Raises:
        ValueError: values out of range; a shift whose range of frequencies cannot be determined; a rate that is NaN,
            since a setting without a rate cannot be called safe.

    >>> import resonance_jax as rj
    >>> def rate(shift, problem, *, mu, eta):  # grows above mu = 1 - f
    ...     return mu - 1 + 1 / shift.law.period
    >>> problem = rj.problems.linear_regression(dim=1, samples=20)
    >>> safe = largest_safe_momentum(rj.shifts.sinusoid, problem, 0.01, frequencies=[0.01, 0.04, 0.02], rate=rate)
    >>> round(safe.mu, 3), safe.frequency
    (0.96, 0.04)
    """
    _check(shift, eta, tolerance, coarse, chunk)
    checks.between("lowest", lowest, 0, 1, "momentum is the share of the velocity that is kept")
    checks.between("highest", highest, lowest, 1, "it is the end of the scan, above lowest", open_low=True)
    if optimizer is not None and not callable(optimizer):
        raise ValueError(
            f"optimizer must be a function of momentum and step size, got {type(optimizer).__name__}; give e.g. "
            "lambda mu, eta: optax.sgd(eta, momentum=mu, nesterov=True)"
        )

    def linear(mu: float) -> LinearOptimizer:
        return heavy_ball(mu, eta) if optimizer is None else read(optimizer(mu, eta))

    momenta = np.unique(np.clip([lowest, 0.5, 0.9, 0.99, highest], lowest, highest))
    drifts = drifts_of(shift, problem, linear, [*map(float, momenta)], frequencies)
    cell = trace_rate(_Growth(drifts.shift, problem, rate, optimizer, tuple(keywords.items())), ARGUMENTS)
    for name, expected in cell.ranges:
        expected.check({"frequency": drifts.argument(drifts.at(lowest)), "mu": [lowest, highest], "eta": eta}[name])

    def rates(f: np.ndarray, mu: np.ndarray, errors: float = SURE) -> np.ndarray:
        order = np.argsort(drifts.cost(f), kind="stable")  # a chunk takes as long as its longest product
        columns = drifts.argument(f)[order], mu[order], np.full(len(f), eta), np.full(len(f), errors)
        found = np.empty(len(f))
        found[order] = evaluate(cell, dict(zip(ARGUMENTS, columns, strict=True)), chunk=chunk)
        if np.isnan(found).any():
            bad = np.flatnonzero(np.isnan(found))[0]
            raise ValueError(
                f"rate must be a number, got NaN at {drifts.argument(f)[bad]:g} of frequencies and mu = {mu[bad]:g}; "
                "list frequencies without it, or take a rate that is defined there"
            )
        return found

    def search(at: Callable[[float], np.ndarray], low: float, high: float, climb: bool, errors: float) -> Bracket:
        ends: dict[str, Any] = dict(lowest=low, highest=high, num_momenta=coarse, tolerance=tolerance)
        return first_growth(functools.partial(rates, errors=errors), at, **ends, chunk=chunk, climb=climb)

    found = search(drifts.at, lowest, highest, drifts.climb, SURE)
    edge = False
    if (
        drifts.slow.size
        and found.lower > lowest
        and (rates(drifts.slow, np.full(len(drifts.slow), found.lower)) > 0).any()
    ):
        found = search(lambda mu: drifts.slow, lowest, found.lower, False, SURE)
        slowest, next_one = rates(drifts.slow[:2], np.full(2, found.upper))
        # If the rate has reached its limit for slow drifts, it is known for even slower ones.
        edge = found.frequency == drifts.slow[0] and slowest - next_one > tolerance / 2
    edge = edge or (drifts.edge is not None and found.frequency == drifts.edge)
    certain = found.upper
    if not np.isnan(certain) and rates(np.array([found.frequency]), np.array([certain]), -SURE)[0] <= 0:
        later = search(drifts.at, found.upper, highest, drifts.climb, -SURE)  # within errors of 0 up to there
        certain = later.upper
        found = found if np.isnan(certain) else found._replace(frequency=later.frequency)
    return _answer(found, certain, drifts, edge, lowest, highest)


# In words


def _answer(found: Bracket, certain: float, drifts: Drifts, edge: bool, lowest: float, highest: float) -> SafeMomentum:
    low, high = drifts.searched
    if np.isnan(low):
        what, where = "this shift", ""
    elif low == high:
        what, where = f"{drifts.unit} = {low:g}", ""
    else:
        what = f"{'the listed values' if drifts.unit == 'listed' else drifts.unit} from {low:.4g} to {high:.4g}"
        where = f" at {'' if drifts.unit == 'listed' else drifts.unit + ' = '}{found.frequency:.4g}"
    searched = f"Searched: {what}, momentum from {lowest:g} to {highest:g}."
    if drifts.edge is not None:
        searched += " Longer intervals are not covered."
    if np.isnan(found.upper):
        return SafeMomentum(found.lower, np.nan, np.nan, drifts.searched, f"Nothing grows. {searched}")
    margin = certain - found.lower
    if np.isnan(found.lower):
        if certain == found.upper:
            reason = f"No momentum is safe: growth{where} at the lowest one, {lowest:g}. Take a smaller step size."
        else:
            reason = f"Cannot tell: at the lowest momentum, {lowest:g}, growth{where} is within its errors of 0."
        sentence = f"{reason} {searched}"
        return SafeMomentum(np.nan, found.frequency, np.nan, drifts.searched, sentence)
    if edge:
        sentence = (
            f"Cannot tell: the slowest drift that was searched grows first{where}, from momentum {found.upper:.4f} on, "
            f"and slower ones may grow earlier. List the frequencies that matter. {searched}"
        )
        return SafeMomentum(np.nan, found.frequency, np.nan, drifts.searched, sentence)
    above = "how far above, the estimates do not tell" if np.isnan(margin) else f"at most {margin:.1g} above"
    sentence = f"Safe up to momentum {found.lower:.5f}; growth begins{where}, {above}. {searched}"
    return SafeMomentum(found.lower, found.frequency, margin, drifts.searched, sentence)


def _check(shift: Any, eta: Any, tolerance: Any, coarse: Any, chunk: Any) -> None:
    if not callable(shift) and not isinstance(shift, Shift):
        raise ValueError(
            f"shift must be a function of the frequency, got {type(shift).__name__}; pass rj.shifts.sinusoid itself, "
            "or lambda T: rj.shifts.square_wave(T, dim=1)"
        )
    checks.between("eta", eta, 0, jnp.inf, "give a positive step size", open_low=True)
    smallest = 8 * float(jnp.finfo(jnp.result_type(float)).eps)  # two momenta of a scan differ
    checks.between("tolerance", tolerance, smallest, 0.5, f"it is a distance in mu, in {jnp.result_type(float)}")
    checks.at_least_one("chunk", chunk, "it counts the points that are evaluated together")
    checks.at_least_one("coarse", coarse, "it counts the momenta of the first scan")
