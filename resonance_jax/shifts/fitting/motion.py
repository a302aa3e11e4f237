"""Does the mean of a recorded stream move, and how: at rest, a line with harmonics, or an AR(2) process."""

from typing import NamedTuple

import numpy as np

from resonance_jax.shifts.fitting import ar2_in_noise, line
from resonance_jax.shifts.fitting.ar2_in_noise import AR2
from resonance_jax.shifts.fitting.line import FEWEST_PERIODS, Line

SLOW_STEPS = 64  # records from here on are long enough for slow motion to be more than a parabola
MOST_LINES = 4  # that are looked for beside the strongest
SAMPLED = 8  # steps for each column that is looked at; others are left out, those of the least variance first


class Motion(NamedTuple):
    """What describes a series of batch means best; `line` or `process`, or neither."""

    trend: np.ndarray  # (K, q), orthonormal: the constant, and slow motion where there is any
    p_value: float
    line: Line | None = None
    process: AR2 | None = None
    weights: np.ndarray | None = None  # (d,), of the columns: they make the series of the process of a mean
    direction: np.ndarray | None = None  # (d,), of the process, of length 1


class Columns(NamedTuple):
    """Coordinates in which batch means are uncorrelated, with variance 1."""

    y: np.ndarray  # (K, c)
    to: np.ndarray  # (c, d): y = means @ to.T
    back: np.ndarray  # (d, c): what a mean moves if a coordinate moves by 1


def p_of_motion(means: np.ndarray, within: np.ndarray | None, samples: int) -> float:
    """Probability that rows which are independent and alike would look as if their mean moved as much as here.

    By tests of the strongest line (Fisher), of the shape of the whole spectrum (Bartlett), and, with two rows a step or
    more, of the variance of the batch means against that of the rows. The smallest p-value counts, times their number.

    Args:
        means: (K, d), batch means.
        within: (d, d), covariance of the rows of a step; None for one row a step.
        samples: rows of a step.
    """
    from scipy.stats import f

    num_steps = len(means)
    columns = whitened(means - means.mean(axis=0))
    if columns is None:
        return 1.0
    width = columns.y.shape[1]
    found = [white_noise_p_value(columns.y)]
    freedom = num_steps * (samples - 1)
    if within is not None and freedom > 10 * width:
        inner = columns.to @ within @ columns.to.T / samples
        noise = np.maximum(np.linalg.eigvalsh(inner), 1e-12)
        ratio = np.mean(1 / noise) * (freedom - width - 1) / freedom * num_steps / (num_steps - 1)
        found.append(float(f.sf(ratio, width * (num_steps - 1), width * freedom)))
    return min(1.0, len(found) * min(found))


def white_noise_p_value(y: np.ndarray) -> float:
    """Probability of such a line, or of such a shape of the spectrum, in white noise; y is (K, c), uncorrelated."""
    from scipy.stats import kstwobign

    num_steps, width = y.shape
    power = np.sum(np.abs(np.fft.rfft(y, axis=0)[1 : (num_steps + 1) // 2]) ** 2, axis=1)
    if not power.sum() > 0:
        return 1.0
    away = np.abs(np.cumsum(power) / power.sum() - np.arange(1, len(power) + 1) / len(power)).max()
    shape = float(kstwobign.sf(away * np.sqrt(len(power) * width)))
    return min(1.0, 2 * min(line.strongest_p_value(y), shape))


def best_motion(means: np.ndarray, within: np.ndarray | None, samples: int, p_value: float) -> Motion:
    """The model of the largest likelihood, less what its parameters cost (Bayesian information criterion).

    Candidates are a line with its harmonics where it is significant, an AR(2) process along one direction, and either
    of them, or nothing, on top of slow motion: a straight line, or a parabola and waves that turn at most three times.
    Lines beside the strongest count for it, so that they are not taken for an irregular motion.
    """
    num_steps = len(means)
    everything = whitened(means - means.mean(axis=0))
    assert everything is not None
    width, cost = everything.y.shape[1], np.log(num_steps) / 2
    candidates = [(_log_likelihood(everything.y), Motion(constant(num_steps), p_value))]
    for trend in (constant(num_steps), straight(num_steps), slow(num_steps)):
        still = everything.y - trend @ (trend.T @ everything.y)
        columns = whitened(still)
        if columns is None:
            continue
        level = _log_likelihood(still) - cost * width * (trend.shape[1] - 1)
        if trend.shape[1] > 1:
            candidates.append((level, Motion(trend, p_value)))
        fewest_periods = FEWEST_PERIODS if trend.shape[1] < 3 else FEWEST_PERIODS + 0.5
        found = line.strongest(columns.y, trend, fewest_periods)
        repeats = found.p_value < line.SIGNIFICANT
        if repeats:
            complete = white_noise_p_value(found.rest) > line.SIGNIFICANT
            if complete and trend.shape[1] == 1:
                return Motion(trend, found.p_value, line=found)
            for each, rest in _with_others(found, trend, fewest_periods):
                waves = 2 * (len(each.harmonics) + len(each.others)) * width
                price = cost * (waves + 3 * (1 + len(each.others)))  # a frequency is known better than an amplitude
                gain = _log_likelihood(rest @ columns.back.T) - _log_likelihood(still) - price
                candidates.append((level + gain, Motion(trend, each.p_value, line=each)))
            if complete:  # nothing is left for a process to explain
                continue
        series, weights, direction = _principal(columns, everything)
        white = None
        if within is not None:
            white = max(float(weights @ within @ weights) / samples, 1e-9 * float(np.mean(series**2)))
        process, above_line = ar2_in_noise.most_likely(series, white, found.frequency)
        if repeats and above_line < cost:  # the record does not tell it from a line
            continue
        alone = -0.5 * num_steps * (np.log(np.mean(series**2)) + 1)
        gain = process.log_likelihood - alone - cost * (3 + width - 1)
        candidates.append((level + gain, Motion(trend, p_value, None, process, weights, direction)))
    best = max(candidates, key=lambda each: each[0])[1]
    if best is not candidates[0][1]:
        return best
    # White motion, beyond what rows explain: the process is the only model that has it.
    return max(candidates[1:], key=lambda each: (each[1].process is not None, each[0]), default=candidates[0])[1]


def _with_others(first: Line, trend: np.ndarray, fewest_periods: float) -> list[tuple[Line, np.ndarray]]:
    """The strongest line, and it with further ones while these are significant; each with what they all leave."""
    found, others = [(first, first.rest)], ()
    for _ in range(MOST_LINES):
        more = line.strongest(found[-1][1], trend, fewest_periods)
        if more.p_value >= line.SIGNIFICANT:
            break
        others = (*others, more.frequency)
        found.append((first._replace(others=others), more.rest))
    return found


def constant(num_steps: int) -> np.ndarray:
    return np.full((num_steps, 1), num_steps**-0.5)


def straight(num_steps: int) -> np.ndarray:
    return np.linalg.qr(np.stack([np.ones(num_steps), np.arange(num_steps)], axis=1))[0]


def slow(num_steps: int) -> np.ndarray:
    """Orthonormal columns (K, q), the constant first, of motion that takes more than a third of the record."""
    t = (np.arange(num_steps) + 0.5) / num_steps
    columns = [t, t**2]
    if num_steps >= SLOW_STEPS:
        columns += [wave(np.pi * j * t) for j in range(1, 2 * FEWEST_PERIODS + 1) for wave in (np.cos, np.sin)]
    moving = np.stack(columns, axis=1)
    axes, sizes, _ = np.linalg.svd(moving - moving.mean(axis=0), full_matrices=False)
    return np.hstack([constant(num_steps), axes[:, sizes > 1e-3 * sizes[0]]])


def whitened(centred: np.ndarray) -> Columns | None:
    """Uncorrelated coordinates of variance 1; None where nothing varies."""
    scale = np.sqrt(np.mean(centred**2, axis=0))
    scale = np.where(scale > 0, scale, 1)
    variances, axes = np.linalg.eigh(centred.T @ centred / np.outer(scale, scale) / len(centred))
    kept = np.flatnonzero(variances > 1e-10)[-max(1, len(centred) // SAMPLED) :]
    if not kept.size:
        return None
    deviations, axes = np.sqrt(variances[kept]), axes[:, kept]
    to = (axes / deviations / scale[:, None]).T
    return Columns(centred @ to.T, to, scale[:, None] * axes * deviations)


def _log_likelihood(rest: np.ndarray) -> float:
    """Of white Gaussian noise with the covariance that is most likely, without constants."""
    covariance = rest.T @ rest / len(rest)
    return -0.5 * len(rest) * float(np.linalg.slogdet(covariance + 1e-8 * np.eye(len(covariance)))[1])


def _principal(columns: Columns, everything: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The motion along the direction of the largest spectral peaks: its series, weights and direction (d,).

    White noise is spread over all frequencies alike, whatever its covariance, so the direction in which power gathers
    is that of the motion. The weights are those of least noise among all that see a motion along it in full.
    """
    spectrum = np.fft.rfft(columns.y, axis=0)[1:]
    power = np.sum(np.abs(spectrum) ** 2, axis=1)
    excess = np.maximum(power - min(3 * power.mean(), 0.5 * power.max()), 0)
    _, axes = np.linalg.eigh((spectrum.conj().T @ (excess[:, None] * spectrum)).real)
    axis = axes[:, -1]
    reach = everything.back @ (columns.back @ axis)
    length = np.linalg.norm(reach)
    sign = np.sign(reach[np.abs(reach).argmax()])
    weights = length * sign * (everything.to.T @ (columns.to.T @ axis))
    return length * sign * (columns.y @ axis), weights, sign * reach / length
