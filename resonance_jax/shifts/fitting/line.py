"""The strongest line in the spectrum of a series of vectors, with its harmonics, by least squares on the host."""

from typing import Any, NamedTuple

import numpy as np

SIGNIFICANT = 1e-3  # probability of a false alarm
MOST_HARMONICS = 16  # the highest that is looked for
FEWEST_PERIODS = 3  # in a record, for a frequency to be known


class Line(NamedTuple):
    """What repeats in a series y (K, c) that has no part along the trend."""

    frequency: float  # turns per step
    harmonics: tuple[int, ...]  # multiples of the frequency that are there; 1 comes first
    p_value: float  # probability of so strong a line in white noise
    rest: np.ndarray  # (K, c), without the line and its harmonics
    others: tuple[float, ...] = ()  # frequencies of further lines, still in the rest


def waves(frequency: float, harmonics: tuple[int, ...], num_steps: int) -> np.ndarray:
    """Cosine and sine of each harmonic at the steps, (K, 2 harmonics); a sine that is 0 at every step stays 0."""
    angles = 2 * np.pi * (np.outer(np.arange(num_steps), frequency * np.array(harmonics)) % 1)
    still = np.abs(frequency * np.array(harmonics) - 0.5) < 0.25 / num_steps
    return np.stack([np.cos(angles), np.where(still, 0, np.sin(angles))], axis=2).reshape(num_steps, -1)


def coefficients_of(y: np.ndarray, trend: np.ndarray, frequency: float, harmonics: tuple[int, ...]) -> np.ndarray:
    """Coefficients (2 harmonics, c) of the waves, by least squares beside the trend (K, q), of orthonormal columns.

    Args:
        y: (K, c), without a part along the trend.
    """
    gram, product = _normal_equations(y, trend, frequency, harmonics)
    return np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ product


def _normal_equations(
    y: np.ndarray, trend: np.ndarray, frequency: float, harmonics: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    x = waves(frequency, harmonics, len(y))
    along = trend.T @ x
    return x.T @ x - along.T @ along, x.T @ y


def _without(y: np.ndarray, trend: np.ndarray, frequency: float, harmonics: tuple[int, ...]) -> np.ndarray:
    """The series without the waves and the trend."""
    rest = y - waves(frequency, harmonics, len(y)) @ coefficients_of(y, trend, frequency, harmonics)
    return rest - trend @ (trend.T @ rest)


def strongest(y: np.ndarray, trend: np.ndarray, fewest_periods: float) -> Line:
    """The line of the largest power among those that turn often enough in the record, and its harmonics.

    Args:
        y: (K, c), of columns that are uncorrelated and of equal variance; no part along the trend.
        trend: (K, q), orthonormal columns.
        fewest_periods: that the line has in the record.
    """
    frequency, p_value = _peak(y, fewest_periods, trend.shape[1])
    frequency = _refined(y, trend, frequency, (1,))
    harmonics: tuple[int, ...] = (1,)
    for _ in range(MOST_HARMONICS):
        rest = _without(y, trend, frequency, harmonics)
        more = _significant_harmonics(rest, frequency, harmonics)
        if not more:
            return Line(frequency, harmonics, p_value, rest)
        harmonics = (1, *sorted({*harmonics, *more} - {1}))
        frequency = _refined(y, trend, frequency, harmonics)
    return Line(frequency, harmonics, p_value, _without(y, trend, frequency, harmonics))


def strongest_p_value(y: np.ndarray) -> float:
    """Probability that white noise has a line as strong as the strongest, at any frequency."""
    return _peak(y, 1, 1)[1]


def _peak(y: np.ndarray, fewest_periods: float, num_removed: int) -> tuple[float, float]:
    """Frequency of the largest power, to half a bin of the periodogram, and its p-value."""
    num_steps, num_columns = y.shape
    power = np.zeros(num_steps + 1)
    for column in y.T:
        power += np.abs(np.fft.rfft(column, 2 * num_steps)) ** 2 / (num_steps / 2)
    power[-1] /= 2  # half a turn a step has no sine
    first = round(2 * fewest_periods)
    largest = first + int(power[first:].argmax())
    share = power[largest] / max(np.sum(y**2), 1e-300)
    return largest / 2 / num_steps, _p_value(share, len(power) - first, num_columns, num_steps - num_removed)


def _p_value(share: float, tried: int, num_columns: int, num_free: int) -> float:
    """Bound on the probability that one of so many lines has this share of the power of white noise.

    The first term of Fisher's g-test, which is exact for one column and frequencies k / K.
    """
    from scipy.stats import beta

    return float(min(1, tried * beta.sf(min(share, 1), num_columns, (num_free / 2 - 1) * num_columns)))


def _refined(y: np.ndarray, trend: np.ndarray, frequency: float, harmonics: tuple[int, ...]) -> float:
    """The frequency within half a bin of the periodogram that leaves the least."""
    from scipy.optimize import minimize_scalar

    if frequency == 0.5:
        return frequency
    half = 0.5 / len(y) / max(harmonics)
    bounds = (max(frequency - half, 0.5 / len(y)), min(frequency + half, 0.5))

    def loss(f: float) -> float:
        gram, product = _normal_equations(y, trend, f, harmonics)
        return -float(np.sum(product * (np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ product)))

    found: Any = minimize_scalar(loss, bounds=bounds, method="bounded", options=dict(xatol=1e-6 * half))
    return float(found.x)


def _significant_harmonics(rest: np.ndarray, frequency: float, known: tuple[int, ...]) -> list[int]:
    """Harmonics below half a turn a step that white noise would show with probability below 1e-3, all together."""
    num_steps, num_columns = rest.shape
    total = np.sum(rest**2)
    high = min(MOST_HARMONICS, int((0.5 + 0.25 / num_steps) / frequency))
    tried = [h for h in range(2, high + 1) if h not in known]
    if not tried or total <= 1e-24 * num_steps:
        return []
    turns = np.exp(-2j * np.pi * np.outer(np.array(tried) * frequency, np.arange(num_steps)))
    shares = np.sum(np.abs(turns @ rest) ** 2, axis=1) / (num_steps / 2) / total
    return [
        h
        for h, share in zip(tried, shares, strict=True)
        if _p_value(share, len(tried), num_columns, num_steps) < SIGNIFICANT
    ]
