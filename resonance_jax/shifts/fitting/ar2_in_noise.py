"""Maximum likelihood of an AR(2) process that is seen through white noise, on the host."""

import cmath
import math
from typing import Any, NamedTuple

import numpy as np

NARROWEST = 0.01  # half-width times record, of a process that keeps amplitude and phase all the time
LONGEST_START = 20_000  # steps that a first guess is made from
LARGEST_RATIO = 1e8  # of the variance of the process to that of the noise


class AR2(NamedTuple):
    """m_k = phi_1 m_{k-1} + phi_2 m_{k-2} + xi_k, seen as m_k + white noise."""

    phi_1: float
    phi_2: float
    variance: float  # of m_k
    white: float  # variance of the white noise
    log_likelihood: float  # without its constant
    frequency: float  # of the peak of the spectrum of m_k, in turns per step; 0 or 0.5 where it has no peak between
    frequency_error: float  # its standard error; inf where the likelihood does not tell

    @property
    def noise_variance(self) -> float:
        """Variance of xi_k."""
        return self.variance * innovation_share(self.phi_1, self.phi_2)


def innovation_share(phi_1: float, phi_2: float) -> float:
    """Variance of xi_k over that of m_k."""
    return (1 + phi_2) * (1 - phi_2 - phi_1) * (1 - phi_2 + phi_1) / (1 - phi_2)


def peak(phi_1: float, phi_2: float) -> float:
    """Frequency at which the spectrum is largest; 0 or 0.5 where it falls or rises all the way."""
    cosine = -phi_1 * (1 - phi_2) / (4 * phi_2) if phi_2 < 0 else np.copysign(np.inf, phi_1)
    return float(np.arccos(np.clip(cosine, -1, 1)) / (2 * np.pi))


def log_likelihood(z: np.ndarray, phi_1: float, phi_2: float, ratio: float, white: float | None) -> tuple[float, float]:
    """Of an AR(2) process plus white noise, exactly and without its constant; and the variance of the noise.

    The Kalman filter with the gain that it has in the long run is a linear recursion of the innovations; what the first
    state has beyond the long-run variance, 2 numbers, is integrated out at the end.

    Args:
        z: (K,), the series, around 0.
        phi_1, phi_2: of a stationary process.
        ratio: variance of the process over that of the noise.
        white: variance of the noise; None takes the most likely one.
    """
    from scipy.signal import lfilter

    phi_2 = phi_2 if abs(phi_2) > 1e-12 else 1e-12
    theta_1, theta_2, spread = _moving_average(phi_1, phi_2, ratio * innovation_share(phi_1, phi_2))
    gain_1, gain_2 = theta_1 + phi_1, (spread - 1) / spread
    settled = np.array([[spread - 1, gain_1], [gain_1, spread - 1 - gain_2 * (spread - 1)]])
    correlation = phi_1 / (1 - phi_2)
    excess = ratio * np.array([[1, correlation], [correlation, 1]]) - settled  # of (m_k, m_{k-1}) at the start
    over, under = [1, -phi_1, -phi_2], [1, theta_1, theta_2]
    innovations: Any = lfilter(over, under, z)
    slowest = max(abs(np.roots(under)), default=0.0)
    heard = int(min(len(z), 10 + 40 / max(1 - slowest, 1e-9)))  # until a first state is forgotten
    response = np.stack([lfilter(over, under, np.zeros(heard), zi=zi)[0] for zi in ([1.0, 0.0], [0.0, phi_2])])
    sizes, axes = np.linalg.eigh(excess)
    response = (axes * np.sqrt(np.maximum(sizes, 0))).T @ response  # to a first state of independent numbers
    pull, posterior = response @ innovations[:heard] / spread, np.eye(2) + response @ response.T / spread
    squares = float(innovations @ innovations) / spread - float(pull @ np.linalg.solve(posterior, pull))
    scale = squares / len(z) if white is None else white
    log_scales = len(z) * math.log(spread) + math.log(np.linalg.det(posterior))
    return -0.5 * (len(z) * math.log(scale) + log_scales + squares / scale), scale


def _moving_average(phi_1: float, phi_2: float, drive: float) -> tuple[float, float, float]:
    """The invertible theta_1, theta_2 and v of |phi(z)|^2 + drive = v |theta(z)|^2 on the unit circle."""
    c0, c1, c2 = 1 + phi_1**2 + phi_2**2 + drive, -phi_1 * (1 - phi_2), -phi_2
    root = cmath.sqrt(c1 * c1 - 4 * c2 * (c0 - 2 * c2))
    far = -(c1 + root if abs(c1 + root) > abs(c1 - root) else c1 - root) / 2
    inside = []
    for w in (far / c2, (c0 - 2 * c2) / far):  # z + 1/z of the four roots
        s = cmath.sqrt(w - 2) * cmath.sqrt(w + 2)
        inside.append(2 / (w + s if abs(w + s) > abs(w - s) else w - s))
    theta_1, theta_2 = -(inside[0] + inside[1]).real, (inside[0] * inside[1]).real
    return theta_1, theta_2, c0 / (1 + theta_1**2 + theta_2**2)


def most_likely(z: np.ndarray, white: float | None, line: float) -> tuple[AR2, float]:
    """The AR(2) process plus white noise under which a series is most likely, and what makes it more than a line.

    Args:
        z: (K,), the series, around 0.
        white: variance of the noise, where it is known.
        line: frequency of the strongest line.

    Returns:
        The process, and by how much its log-likelihood is above that of a process which keeps amplitude and phase at
        the frequency of the line for the whole record.
    """
    from scipy.optimize import minimize

    def found(x: np.ndarray, coefficients: Any) -> tuple[float, float]:
        phi_1, phi_2 = coefficients(x)
        return log_likelihood(z, phi_1, phi_2, _ratio(x, len(z)), white)

    def best(coefficients: Any, start: np.ndarray, moves: Any) -> np.ndarray:
        def loss(free: np.ndarray) -> float:
            return -found(start + free @ moves, coefficients)[0]

        simplex = np.vstack([np.zeros(len(moves)), np.eye(len(moves))])
        options = dict(initial_simplex=simplex, xatol=1e-4, fatol=1e-5, maxfev=400)
        return start + minimize(loss, simplex[0], method="Nelder-Mead", options=options).x @ moves

    wave = 2 * abs(np.mean(z * np.exp(-2j * np.pi * line * np.arange(len(z))))) ** 2  # variance of the line
    wave = min(wave, np.mean(z**2))  # at half a turn a step it is half of that
    rest = max(np.mean(z**2) - wave, 1e-9 * wave) if white is None else white
    keeps = _at(line, NARROWEST / len(z), np.log(max(wave, 1e-300) / rest))
    steps = np.diag([1.0, min(0.1, 1 / (line * len(z))), 1.0])
    start = max((_start(z), keeps + np.array([3.0, 0, 0])), key=lambda x: found(x, _oscillating)[0])
    tried = [
        (_oscillating, keeps),
        (_oscillating, best(_oscillating, start, steps)),
        (_decaying, best(_decaying, np.array([1.0, 0.0, 0.0]), steps)),
    ]
    likelihoods = [found(x, coefficients)[0] for coefficients, x in tried]
    coefficients, x = tried[int(np.argmax(likelihoods))]
    scale = found(x, coefficients)[1]
    phi_1, phi_2 = coefficients(x)
    error = _peak_error(lambda y: found(y, coefficients)[0], lambda y: peak(*coefficients(y)), x)
    process = AR2(phi_1, phi_2, _ratio(x, len(z)) * scale, scale, max(likelihoods), peak(phi_1, phi_2), error)
    return process, max(likelihoods) - likelihoods[0]


def _ratio(x: np.ndarray, num_steps: int) -> float:
    """Variance of the process over that of the noise; less than 1 / (10 K) would never be seen."""
    return float(np.exp(np.clip(x[2], -np.log(10 * num_steps), np.log(LARGEST_RATIO))))


def _at(f: float, gamma: float, log_ratio: float) -> np.ndarray:
    """The parameters of `_oscillating` at a frequency."""
    f = float(np.clip(f, 1e-9, 0.5 - 1e-9))
    return np.array([np.log(gamma), np.log(2 * f / (1 - 2 * f)), log_ratio])


def _oscillating(x: np.ndarray) -> tuple[float, float]:
    """Of roots exp(-gamma +- i omega), x = (log gamma, logit of 2 f, ...)."""
    gamma = np.exp(np.clip(x[0], -14, 2))
    omega = np.pi / (1 + np.exp(-np.clip(x[1], -20, 20)))
    return float(2 * np.exp(-gamma) * np.cos(omega)), float(-np.exp(-2 * gamma))


def _decaying(x: np.ndarray) -> tuple[float, float]:
    """Of two real roots, up to 0.9998."""
    p, q = np.tanh(np.clip(x[:2], -4.6, 4.6))
    return float(p + q), float(-p * q)


def _start(z: np.ndarray) -> np.ndarray:
    """Where to begin: the best of a grid, by Whittle's approximation to the likelihood."""
    z = z[:LONGEST_START]
    power = np.abs(np.fft.rfft(z)[1:]) ** 2 / len(z)
    f = np.arange(1, len(power) + 1) / len(z)
    turn = np.exp(-2j * np.pi * f)
    best = np.inf, np.zeros(3)
    for width in (1, 4, 16, 64):
        smooth = np.convolve(power, np.ones(min(width, len(power))) / width, mode="same")
        for gamma in np.geomspace(0.5 / len(z), 1.0, 10):
            start = _at(min(f[smooth.argmax()], 0.499), gamma, 0.0)
            phi_1, phi_2 = _oscillating(start)
            shape = innovation_share(phi_1, phi_2) / np.abs(1 - phi_1 * turn - phi_2 * turn**2) ** 2
            for log_ratio in np.linspace(-5, 9, 8):
                density = 1 + np.exp(log_ratio) * shape
                loss = np.log(np.mean(power / density)) + np.mean(np.log(density))
                if loss < best[0]:
                    best = loss, np.array([*start[:2], log_ratio])
    return best[1]


def _peak_error(likelihood: Any, value: Any, x: np.ndarray) -> float:
    """Standard error of a function of the parameters, from the curvature of the log-likelihood."""
    top, steps = likelihood(x), np.full(len(x), 0.02)
    for _ in range(4):  # steps by which the likelihood falls by about one half
        falls = [top - min(likelihood(x + each), likelihood(x - each)) for each in np.diag(steps)]
        steps = np.clip(steps * np.sqrt(0.5 / np.maximum(falls, 1e-4)), 1e-9, 0.5)
    moves = np.diag(steps)
    slope = np.array([value(x + each) - value(x - each) for each in moves]) / 2
    curvature = np.empty((len(x), len(x)))
    for i, a in enumerate(moves):
        for j, b in enumerate(moves):
            ends = likelihood(x + a + b) + likelihood(x - a - b) - likelihood(x + a - b) - likelihood(x - a + b)
            curvature[i, j] = -ends / 4
    values, vectors = np.linalg.eigh(curvature)
    along = (vectors.T @ slope) ** 2
    if (values <= 0).any() and along[values <= 0].max() > 1e-6 * along.sum():
        return np.inf
    return float(np.sqrt(np.sum(along / np.where(values > 0, values, np.inf))))
