"""The least momentum at which a rate grows for some frequency: scan, climb the peaks, refine."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

MOST_PEAKS = 16  # that are climbed, the highest first
ROUNDS, FINER = 3, 8  # a peak is climbed in this many rounds, each this many times finer
PARTS = 8  # the last step of the scan is divided by this, again and again

Rates = Callable[[np.ndarray, np.ndarray], np.ndarray]  # frequencies (n,), momenta (n,) -> rates (n,)
Frequencies = Callable[[float], np.ndarray]  # momentum -> frequencies, ascending


class Bracket(NamedTuple):
    """Momenta between which growth begins."""

    lower: float  # nothing grows up to here; NaN if something does at the lowest momentum
    upper: float  # something grows here; NaN if nothing does up to the highest momentum, which is then `lower`
    frequency: float  # the one that grows fastest at `upper`


def first_growth(
    rates: Rates,
    frequencies: Frequencies,
    *,
    lowest: float,
    highest: float,
    num_momenta: int,
    tolerance: float,
    chunk: int,
    climb: bool,
) -> Bracket:
    """Scan the momenta from the lowest up until something grows, then cut the last step down to the tolerance.

    Args:
        rates: positive where it grows.
        frequencies: where to look. The first may be 0, the iid baseline; no peak is searched next to it.
        lowest, highest: momenta.
        num_momenta: of the scan, half of them evenly spaced, half evenly spaced in the logarithm of the damping.
        tolerance: of the momentum.
        chunk: number of points that are evaluated together.
        climb: whether to search for peaks between two frequencies.
    """
    before = np.nan
    for mu, f, found in _scan(rates, frequencies, _momenta(lowest, highest, num_momenta), chunk):
        peak, height = _highest(rates, f, found, mu, climb)
        if height > 0:
            if np.isnan(before):
                return Bracket(np.nan, mu, peak)
            return _refine(rates, Bracket(before, mu, peak), _growing(f, found, peak, climb), tolerance, climb)
        before = mu
    return Bracket(before, np.nan, np.nan)


def _momenta(lowest: float, highest: float, number: int) -> np.ndarray:
    half = max(number // 2, 1) + 1
    evenly = np.linspace(lowest, highest, half)
    if highest == 1:
        return evenly
    return np.unique(np.concatenate([evenly, 1 - np.geomspace(1 - lowest, 1 - highest, half)]).clip(lowest, highest))


def _scan(
    rates: Rates, frequencies: Frequencies, momenta: np.ndarray, chunk: int
) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """Momentum, its frequencies and their rates, one momentum after another, evaluated in chunks."""
    waiting: list[tuple[float, np.ndarray]] = []
    for mu in map(float, momenta):
        waiting.append((mu, frequencies(mu)))
        if mu == momenta[-1] or sum(len(f) for _, f in waiting) >= chunk:
            f_of = np.concatenate([f for _, f in waiting])
            mu_of = np.concatenate([np.full(len(f), each) for each, f in waiting])
            ends = np.cumsum([len(f) for _, f in waiting])[:-1]
            for (each, f), found in zip(waiting, np.split(rates(f_of, mu_of), ends), strict=True):
                yield each, f, found
            waiting = []


def _highest(rates: Rates, f: np.ndarray, found: np.ndarray, mu: float, climb: bool) -> tuple[float, float]:
    """The frequency of the largest rate, and the rate; that of a peak between two frequencies, if one is higher."""
    best = int(found.argmax())
    if not climb or found[best] > 0:
        return float(f[best]), float(found[best])
    inner = np.arange(1, len(f))  # without f[0] = 0, the iid baseline
    left, right = found[np.maximum(inner - 1, 1)], found[np.minimum(inner + 1, len(f) - 1)]
    rise = found[inner] - np.minimum(left, right)  # a peak in between may be higher by about as much
    peaks = inner[(found[inner] >= np.maximum(left, right)) & (found[inner] + rise > 0)]
    peaks = peaks[np.argsort(-found[peaks])][:MOST_PEAKS]
    low, high = f[np.maximum(peaks - 1, 1)], f[np.minimum(peaks + 1, len(f) - 1)]
    top, height = float(f[best]), float(found[best])
    for _ in range(ROUNDS if peaks.size else 0):
        between = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, FINER + 1)  # (peaks, points)
        heights = rates(between.ravel(), np.full(between.size, mu)).reshape(between.shape)
        if heights.max() > height:
            top, height = float(between.ravel()[heights.argmax()]), float(heights.max())
        if height > 0:
            break
        at = heights.argmax(axis=1)
        rows = np.arange(len(at))
        low, high = between[rows, np.maximum(at - 1, 0)], between[rows, np.minimum(at + 1, FINER)]
    return top, height


def _growing(f: np.ndarray, found: np.ndarray, peak: float, climb: bool) -> np.ndarray:
    """Frequencies to look at for smaller momenta: those that grow, and their neighbours."""
    grows = found > 0
    if not climb:
        return f[grows]
    grows |= np.abs(f - peak) == np.abs(f - peak).min()
    wider = grows.copy()
    wider[1:] |= grows[:-1]
    wider[:-1] |= grows[1:]
    wider[0] = grows[0]
    return np.concatenate([[0.0], f[1:][wider[1:]]])


def _refine(rates: Rates, bracket: Bracket, f: np.ndarray, tolerance: float, climb: bool) -> Bracket:
    while bracket.upper - bracket.lower > tolerance:
        momenta = np.linspace(bracket.lower, bracket.upper, PARTS + 1)
        grid = rates(np.tile(f, PARTS - 1), np.repeat(momenta[1:-1], len(f))).reshape(PARTS - 1, len(f))
        upper, frequency = bracket.upper, bracket.frequency
        for mu, found in reversed(list(zip(momenta[1:-1], grid, strict=True))):
            peak, height = float(f[found.argmax()]), found.max()
            if height <= 0:
                peak, height = _highest(rates, f, found, mu, climb)
            if height <= 0:
                bracket = Bracket(float(mu), upper, frequency)
                break
            upper, frequency = float(mu), peak
        else:
            bracket = Bracket(bracket.lower, upper, frequency)
    return bracket
