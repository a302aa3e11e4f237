"""A model of a recorded stream, so that theory can speak about it."""

from typing import Any, NamedTuple

import numpy as np

from resonance_jax import checks
from resonance_jax.shifts.base import Shift
from resonance_jax.shifts.fitting import fitted, line
from resonance_jax.shifts.fitting.line import FEWEST_PERIODS, SIGNIFICANT
from resonance_jax.shifts.fitting.motion import Motion, best_motion, constant, p_of_motion

FEWEST_STEPS = 16
KNOWN = 0.25  # the frequency of an AR(2) process is given where its relative standard error is below this


class Fit(NamedTuple):
    """What `fit` returns; print it.

    >>> import resonance_jax as rj
    >>> wave = np.sin(2 * np.pi * np.arange(400) / 20)
    >>> round(rj.shifts.fit(wave, samples=1).period, 2)
    20.0
    """

    model: str  # "periodic", "ar2" or "resting"
    shift: Shift  # for runs and theory; it includes the offset
    frequency: float  # turns per step; 0.0 at rest, and where the record does not tell
    frequency_error: float  # its standard error; inf without a frequency
    amplitude: float  # along the direction; of an AR(2) process that of the sine of equal variance
    direction: np.ndarray  # (d,), of length 1; its largest entry is positive
    offset: np.ndarray  # (d,), around which the mean moves
    covariance: np.ndarray  # (d, d), of the rows of a step around their mean
    explained: float  # share of the variance of the batch means beyond sampling noise
    slow: float  # share of it that is slower than a third of the record; the shift leaves it out
    p_value: float  # of the line, or of any motion where the model has none
    harmonics: tuple[int, ...]  # of the frequency, that the shift has; 1 is the frequency itself
    others: tuple[float, ...]  # frequencies of further lines, which the shift leaves out
    samples: int  # rows of a step
    num_steps: int  # in the record

    @property
    def period(self) -> float:
        """In steps; inf without a frequency."""
        return 1 / self.frequency if self.frequency else np.inf

    def __str__(self) -> str:
        lines = [f"{self.num_steps} steps of {self.samples} row{'s' * (self.samples > 1)}: {self._headline()}"]
        if self.model != "resting":
            lines.append(
                f"The model explains {self.explained:.0%} of the motion of the batch means beyond sampling noise."
            )
        third = f"{self.num_steps / FEWEST_PERIODS:.0f} steps, a third of the record"
        if self.model == "ar2" and not self.frequency:
            lines.append(f"The record does not tell a period: there is none, or it is longer than {third}.")
        if self.others:
            periods = ", ".join(f"{1 / f:.4g}" for f in self.others)
            lines.append(f"Other lines, which the shift leaves out: periods of {periods} steps.")
        if self.slow > 0.005:
            lines.append(
                f"{self.slow:.0%} of the motion takes longer than {third}, too short to tell whether it repeats; the "
                "shift leaves it out."
            )
        deviations = np.sqrt(np.diag(self.covariance))
        lines.append(f"Offset {_vector(self.offset)}; rows deviate from their mean by {_vector(deviations)}.")
        return "\n".join(lines)

    def _headline(self) -> str:
        if self.model == "resting":
            if self.slow > 0:
                return f"only slow motion (p = {self.p_value:.1g} for none at all)."
            return f"at rest; independent rows would vary as much (p = {self.p_value:.2g})."
        along = f" along {_vector(np.round(self.direction, 3) + 0.0)}" if len(self.direction) > 1 else ""
        error = self.frequency_error * self.period**2 if self.frequency else 0.0
        period = f"period {self.period:.{_digits(error)}f} +- {error:.1g} steps"
        if self.samples > 1:
            period += f" ({self.period * self.samples:.{_digits(error * self.samples)}f} rows)"
        if self.model == "ar2":
            period = f" of {period}" if self.frequency else ""
            return f"irregular motion (AR(2)){period}, typical amplitude {self.amplitude:.2g}{along}."
        higher = f" with harmonics {', '.join(map(str, self.harmonics[1:]))}" if self.harmonics[1:] else ""
        return f"{period}, amplitude {self.amplitude:.2g}{along}{higher}."


def fit(inputs: Any, samples: int) -> Fit:
    """The shift that describes the rows of a recorded stream best: periodic, AR(2), or at rest.

    Rows are grouped into steps, and a model is fitted to the means m_k of the steps:

        resting    m_k = offset
        periodic   m_k = offset + sum over harmonics h of  a_h cos(2 pi h f k) + b_h sin(2 pi h f k)
        ar2        m_k = offset + direction z_k,  z_k = phi_1 z_{k-1} + phi_2 z_{k-2} + xi_k

    The stream is at rest unless tests at a total false alarm rate of 1e-3 say otherwise: rows that are independent and
    alike are called moving once in a thousand streams. Among the others the Bayesian information criterion decides.
    Harmonics are included where they are significant. The sampling noise of a batch mean, covariance / samples, is
    white noise on top of each model.

    How well is the frequency known? `frequency_error` is its standard error. For a line of amplitude A in K batch means
    of noise variance s it is sqrt(6 s / A^2 / K^3) / pi. The peak of an AR(2) process wanders: if its half-width is
    gamma radians, 1 + phi_2 being 2 gamma, the error is about sqrt(gamma / K) / (2 pi), up to twice that in noise. To
    know f to 1%, within three standard errors, takes 10^5 gamma / (2 pi f)^2 steps: 2,000 for `ar2(0.03)`, but 160,000
    for `ar2(0.01)`. In a record shorter than 1 / gamma, an AR(2) process is hard to tell from a line, and may be called
    periodic.

    Motion that turns fewer than three times in the record has no frequency that could be known. If there is much of it,
    it is taken out, `slow` says how much it was, and the model describes the rest.

    The shift includes the offset. The iid baseline of a `Shift` has a mean of 0, and so has the "iid baseline" that
    `explain` compares with: it is the stream without motion and without offset. Where the offset is not small compared
    with the deviations of the rows, subtract it from the inputs, in training and before the fit.

    Args:
        inputs: (N, d) rows in the order of time, or (N,) for one input: anything that `np.asarray` takes.
        samples: consecutive rows of a step; rows beyond the last whole step are left out.

    Returns:
        A `Fit`. Its covariance is what theory needs, that of rows around their mean: of rows less the model; for AR(2)
        of rows within a step or, with `samples=1`, of all rows less the variance of the process in the record. With
        `samples=1`, `explained` takes the flat part of the spectrum for sampling noise.

    Raises:
        ValueError: rows that are not finite numbers, or fewer than 16 steps.

    >>> import resonance_jax as rj
    >>> k, rng = np.arange(20_000) // 10, np.random.default_rng(0)
    >>> rows = 3.0 + 0.5 * np.sin(2 * np.pi * k / 22) + rng.normal(size=20_000)
    >>> found = fit(rows, samples=10)
    >>> print(found)
    2000 steps of 10 rows: period 22.003 +- 0.003 steps (220.03 rows), amplitude 0.51.
    The model explains 100% of the motion of the batch means beyond sampling noise.
    Offset (3); rows deviate from their mean by (1).
    >>> problem = rj.problems.linear_regression(dim=1, samples=10, input_variance=found.covariance)
    >>> float(rj.theory.mean_growth(found.shift, problem, mu=0.5, eta=0.01)) < 0
    True
    """
    rows = _rows(inputs)
    checks.at_least_one("samples", samples, "it is the number of consecutive rows of a step")
    num_steps = len(rows) // samples
    if num_steps < FEWEST_STEPS:
        raise ValueError(
            f"a fit needs at least {FEWEST_STEPS} steps, got {len(rows)} rows, which are {num_steps} steps of "
            f"samples={samples}; record more rows, or take fewer of them a step"
        )
    batches = rows[: num_steps * samples].reshape(num_steps, samples, -1)
    means = batches.mean(axis=1)
    around = (batches - means[:, None, :]).reshape(num_steps * samples, -1)
    scatter = around.T @ around  # (d, d), within steps
    within = scatter / (num_steps * (samples - 1)) if samples > 1 else None
    p_value = p_of_motion(means, within, samples)
    motion = Motion(constant(num_steps), p_value)
    if p_value < SIGNIFICANT:
        motion = best_motion(means, within, samples, p_value)
    noise = _sampling_noise(means) if within is None else np.trace(within) / samples
    if motion.process is not None:
        return _of_process(motion, means, within, samples, noise)
    return _of_line(motion, means, scatter, samples, noise)


def _rows(inputs: Any) -> np.ndarray:
    """(N, d) in float64."""
    try:
        rows = np.asarray(inputs)
    except ValueError as error:
        raise ValueError(f"inputs must be rows of equal length, got {error}; give (N, d), or (N,)") from None
    if rows.ndim not in (1, 2) or rows.size == 0:
        raise ValueError(
            f"inputs must be rows in the order of time, got shape {rows.shape}; give (N, d), or (N,) for one input"
        )
    rows = rows.reshape(len(rows), -1)
    if rows.dtype.kind not in "biufO":
        raise ValueError(f"inputs must be real numbers, got dtype {rows.dtype}; drop or encode other columns")
    if rows.dtype.kind == "O":
        for (row, column), entry in np.ndenumerate(rows):
            if not isinstance(entry, int | float | np.number):
                raise ValueError(
                    f"inputs must be real numbers, got {entry!r} in row {row}, column {column}; drop or encode this "
                    "column, or fill its gaps"
                )
    rows = rows.astype(float)
    bad = np.argwhere(~np.isfinite(rows))
    if bad.size:
        row, column = bad[0]
        raise ValueError(
            f"inputs must be finite, got {rows[row, column]} in row {row}, column {column} ({len(bad)} such in all); "
            "fill gaps, for example by interpolation, so that the steps stay equally long"
        )
    return rows


def _sampling_noise(means: np.ndarray) -> float:
    """Variance of the flat part of the spectrum, summed over columns: a median, which peaks do not lift."""
    power = np.abs(np.fft.rfft(means - means.mean(axis=0), axis=0)[1:]) ** 2 / len(means)
    return float(np.sum(np.median(power, axis=0)) / np.log(2))


def _of_line(motion: Motion, means: np.ndarray, scatter: np.ndarray, samples: int, noise: float) -> Fit:
    """A mean at rest, or one that repeats."""
    num_steps, dim = means.shape
    centre, trend, found = means.mean(axis=0), motion.trend, motion.line
    coefficients, repeats = np.zeros((2, dim)), np.zeros_like(means)
    frequency, error = 0.0, np.inf
    if found is not None:
        frequency = found.frequency
        coefficients = line.coefficients_of(means - trend @ (trend.T @ means), trend, frequency, found.harmonics)
        repeats = line.waves(frequency, found.harmonics, num_steps) @ coefficients
    offset = centre - repeats.mean(axis=0)
    drift = trend @ (trend.T @ (means - repeats))
    rest = means - repeats - drift
    used = trend.shape[1] + (0 if found is None else len(coefficients) + 1)
    covariance = (scatter + samples * rest.T @ rest) / max(num_steps * samples - used, 1)
    moved, slow = _shares(means, noise)(repeats - repeats.mean(axis=0), drift - drift.mean(axis=0))
    axes, lengths, _ = np.linalg.svd(coefficients[:2].T, full_matrices=False)
    direction = axes[:, 0] * np.sign(axes[np.abs(axes[:, 0]).argmax(), 0])
    if found is None:
        direction, shift = _unit(dim), fitted.standing(offset)
    else:
        error = _line_error(coefficients, rest, found.harmonics)
        shift = fitted.repeating(frequency, offset, found.harmonics, coefficients)
    return Fit(
        model="resting" if found is None else "periodic",
        shift=shift,
        frequency=frequency,
        frequency_error=error,
        amplitude=float(lengths[0]),
        direction=direction,
        offset=offset,
        covariance=covariance,
        explained=moved,
        slow=slow if trend.shape[1] > 1 else 0.0,
        p_value=motion.p_value,
        harmonics=() if found is None else found.harmonics,
        others=() if found is None else found.others,
        samples=samples,
        num_steps=num_steps,
    )


def _of_process(motion: Motion, means: np.ndarray, within: np.ndarray | None, samples: int, noise: float) -> Fit:
    """A mean that follows an AR(2) process."""
    found, weights, direction, trend = motion.process, motion.weights, motion.direction, motion.trend
    assert found is not None
    assert weights is not None
    assert direction is not None
    num_steps = len(means)
    drift = trend @ (trend.T @ means)
    rest, offset = means - drift, means.mean(axis=0)
    moved = max(float(np.mean((rest @ weights) ** 2)) - found.white, 0.0)  # variance along the direction, in the record
    covariance = within
    if covariance is None:
        variances, axes = np.linalg.eigh(
            rest.T @ rest / (num_steps - trend.shape[1]) - moved * np.outer(direction, direction)
        )
        covariance = axes * np.maximum(variances, 0) @ axes.T
    explained, slow = _shares(means, noise)(np.sqrt(moved) * np.ones((num_steps, 1)), drift - offset)
    known = found.frequency * num_steps >= FEWEST_PERIODS and found.frequency_error <= KNOWN * found.frequency
    return Fit(
        model="ar2",
        shift=fitted.wandering(found, offset, direction),
        frequency=found.frequency if known else 0.0,
        frequency_error=found.frequency_error if known else np.inf,
        amplitude=float(np.sqrt(2 * found.variance)),
        direction=direction,
        offset=offset,
        covariance=covariance,
        explained=explained,
        slow=slow if trend.shape[1] > 1 else 0.0,
        p_value=motion.p_value,
        harmonics=(1,) if known else (),
        others=(),
        samples=samples,
        num_steps=num_steps,
    )


def _shares(means: np.ndarray, noise: float) -> Any:
    """A function: shares of these parts, (K, d) each, in the variance of batch means beyond sampling noise."""
    total = float(np.sum(np.var(means, axis=0)) - noise)

    def of(*parts: np.ndarray) -> list[float]:
        sizes = [float(np.sum(np.mean(part**2, axis=0))) for part in parts]
        return [size / max(total, sum(sizes)) if size > 0 else 0.0 for size in sizes]

    return of


def _line_error(coefficients: np.ndarray, rest: np.ndarray, harmonics: tuple[int, ...]) -> float:
    """Standard error of the frequency: the Cramer-Rao bound for the residual noise."""
    num_steps = len(rest)
    inverse = np.linalg.pinv(rest.T @ rest / num_steps, hermitian=True)
    orders = np.repeat(np.array(harmonics, float), 2)[:, None]
    strength = float(np.sum((orders * coefficients) @ inverse * (orders * coefficients)))
    return float(np.sqrt(6 / max(strength, 1e-300) / num_steps**3) / np.pi)


def _unit(dim: int) -> np.ndarray:
    return np.eye(dim)[0]


def _digits(error: float) -> int:
    """Digits behind the point that a number with this error deserves."""
    return int(np.clip(np.ceil(-np.log10(max(error, 1e-9))), 0, 4))


def _vector(values: np.ndarray) -> str:
    shown = [f"{value:.2g}" for value in values[:6]] + ["..."] * (len(values) > 6)
    return f"({', '.join(shown)})"
