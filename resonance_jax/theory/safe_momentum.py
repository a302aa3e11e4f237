"""The largest momentum that no frequency of a shift drives to growth."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from resonance_jax import checks
from resonance_jax.shifts.base import Shift
from resonance_jax.theory.batches import evaluate, program_of
from resonance_jax.theory.mean_square import mean_square_growth

FREQUENCIES = np.linspace(0.0005, 0.05, 100)  # the range of the paper's heatmaps


class SafeMomentum(NamedTuple):
    """Where growth begins."""

    mu: float  # no listed frequency grows from the lowest momentum up to this one; NaN if one grows at the lowest
    frequency: float  # the listed value that grows first, just above mu; NaN if none grows up to the highest


class _Growth(NamedTuple):
    """The rate as a function of scalars; equal for the same parts, so that a second call does not compile."""

    shift: Callable[[Any], Shift]
    problem: Any
    rate: Callable[..., Any]

    def __call__(self, frequency: Any, mu: Any, eta: Any) -> Any:
        return self.rate(self.shift(frequency), self.problem, mu=mu, eta=eta)

    def __hash__(self) -> int:  # a problem holds arrays, which have none
        return hash(tuple(map(id, self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Growth) and all(a is b for a, b in zip(self, other, strict=True))


def largest_safe_momentum(
    shift: Shift | Callable[[Any], Shift],
    problem: Any,
    eta: float,
    *,
    frequencies: Sequence[float] | np.ndarray = FREQUENCIES,
    rate: Callable[..., Any] = mean_square_growth,
    lowest: float = 0.0,
    highest: float | None = None,
    tolerance: float = 1e-4,
    coarse: int = 64,
    chunk: int = 1024,
) -> SafeMomentum:
    """The largest momentum below which no listed frequency grows.

        mu = inf {mu in [lowest, highest] : rate(shift(f), problem, mu, eta) > 0 for some listed f}

    Growth need not be monotone in mu, so the whole range is scanned, then the first cell of the scan in which growth
    begins, and so on. A window of growth between two momenta of the first scan is missed, and so is a tongue between
    two listed frequencies: list them densely where tongues are thin, or trace them with `stability_boundary`.

    Args:
        shift: function of the frequency, as `rj.shifts.sinusoid`, or `lambda T: rj.shifts.square_wave(T, dim=1)` with
            periods for frequencies; or one shift, which is then all there is to be safe from.
        problem: as `rate` takes it; for the default rate made by `rj.problems.linear_regression`.
        eta: step size, > 0.
        frequencies: what is passed to `shift`, 1-D.
        rate: `rate(shift, problem, mu=mu, eta=eta)`, traceable, positive where it grows. The default, growth of the
            mean square, is the strictest: it sees the noise of the samples, and rare runs. `rj.theory.mean_growth` is
            the paper's.
        lowest: where the scan begins, in [0, 1].
        highest: where it ends, at most 1; None: 1 - tolerance, since at 1 nothing is damped and the rate of every
            frequency outside its tongues is 0 up to rounding.
        tolerance: the result is at most this much below the infimum, and not above it but for the rate's own rounding.
        coarse: cells of each scan; a window of growth as wide as a cell of the first is found.
        chunk: points that are evaluated together, as one compiled program.

    Returns:
        `SafeMomentum(mu, frequency)`: the momentum, and the listed value that grows first; of several within the
        tolerance the one that grows fastest. (highest, NaN) if none grows; (NaN, frequency) if one grows at the lowest.

    Raises:
        ValueError: values out of range, or a rate that is NaN: what cannot be judged is not safe.

    >>> import resonance_jax as rj
    >>> def rate(shift, problem, *, mu, eta):  # grows above mu = 1 - f
    ...     return mu - 1 + 1 / shift.period
    >>> problem = rj.problems.linear_regression(dim=1, samples=20)
    >>> safe = largest_safe_momentum(rj.shifts.sinusoid, problem, 0.01, frequencies=[0.01, 0.04, 0.02], rate=rate)
    >>> round(safe.mu, 3), safe.frequency
    (0.96, 0.04)
    """
    if isinstance(shift, Shift):
        only, period = shift, np.inf if shift.period is None else float(shift.period)
        shift, frequencies = (lambda _: only), [1 / period]
    listed = _check(shift, eta, frequencies, tolerance, coarse, chunk)
    checks.between("lowest", lowest, 0, 1, "momentum is the share of the velocity that is kept")
    top = 1 - tolerance if highest is None else highest
    checks.between("highest", top, lowest, 1, "it is the end of the scan, above lowest", open_low=True)

    program = program_of(_Growth(shift, problem, rate), ("frequency", "mu", "eta"))
    for name, expected in program.ranges:
        expected.check({"frequency": listed, "mu": [lowest, top], "eta": eta}[name])

    def begin(mu: np.ndarray) -> tuple[int, float]:
        """Which of the momenta is the first at which a frequency grows, and which one; (their number, NaN) if none."""
        columns = [each.ravel() for each in np.meshgrid(listed, mu, [eta], indexing="ij")]
        rates = evaluate(program, dict(zip(("frequency", "mu", "eta"), columns, strict=True)), chunk=chunk)
        if np.isnan(rates).any():
            f, bad_mu, _ = (float(column[np.isnan(rates)][0]) for column in columns)
            raise ValueError(
                f"rate must be a number, got NaN at {f:g} of frequencies and mu = {bad_mu:g}; leave that value out, or "
                "take a rate that is defined there"
            )
        rates = rates.reshape(len(listed), len(mu))
        growing = np.flatnonzero((rates > 0).any(axis=0))
        return (int(growing[0]), float(listed[rates[:, growing[0]].argmax()])) if growing.size else (len(mu), np.nan)

    mu = np.linspace(lowest, top, coarse + 1)
    first, frequency = begin(mu)
    if first in (0, len(mu)):
        return SafeMomentum(np.nan if first == 0 else top, frequency)
    while mu[first] - mu[first - 1] > tolerance:
        mu = np.linspace(mu[first - 1], mu[first], max(coarse, 2) + 1)
        inside, its_frequency = begin(mu[1:-1])
        first, frequency = inside + 1, frequency if np.isnan(its_frequency) else its_frequency
    return SafeMomentum(float(mu[first - 1]), frequency)


def _check(shift: Any, eta: Any, frequencies: Any, tolerance: Any, coarse: Any, chunk: Any) -> np.ndarray:
    """The listed frequencies."""
    if not callable(shift):
        raise ValueError(
            f"shift must be a function of the frequency, got {type(shift).__name__}; pass rj.shifts.sinusoid itself, "
            "or lambda T: rj.shifts.square_wave(T, dim=1)"
        )
    listed = np.asarray(frequencies)
    if listed.ndim != 1 or listed.size == 0 or listed.dtype.kind not in "iuf" or not np.isfinite(listed).all():
        raise ValueError(f"frequencies must be a list of finite numbers, got {frequencies!r}; give at least one")
    checks.between("eta", eta, 0, jnp.inf, "give a positive step size", open_low=True)
    smallest = 8 * float(jnp.finfo(jnp.result_type(float)).eps)  # two momenta of a scan differ
    checks.between("tolerance", tolerance, smallest, 0.5, f"it is a distance in mu, in {jnp.result_type(float)}")
    checks.at_least_one("chunk", chunk, "it counts the points that are evaluated together")
    checks.at_least_one("coarse", coarse, "it counts the cells of a scan")
    return listed.astype(float)
