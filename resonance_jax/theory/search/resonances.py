"""Where resonance can be: the natural frequencies of an optimizer, and how densely a search must look around them.

A mode of curvature b turns by omega a step; for SGDm it is damped by (1 - mu) / 2,

    z^2 - (1 + mu - eta b) z + mu = 0,    z = sqrt(mu) exp(+-i omega),

and a drift of frequency f excites it where n f is omega / pi, up to a whole number of turns: the tongue of order n. A
tongue that grows is at least as wide as the damping, (1 - mu) / (2 pi n) in f. This tells how densely to search, so
that points fall into each tongue that grows, however thin it is at other momenta.
"""

from typing import NamedTuple

import numpy as np

from resonance_jax.numerics.products import LONGEST, MOST_TURNS, TOLERANCE
from resonance_jax.optimizers import modes
from resonance_jax.optimizers.linear import LinearOptimizer
from resonance_jax.problems.base import Problem
from resonance_jax.runs import contracts
from resonance_jax.shifts.base import Shift
from resonance_jax.shifts.inputs import Inputs

ORDERS = 8  # tongues of higher order are weaker than these, and lie between them
SLOWEST = 2.0**-13  # lowest frequency that is searched: the periods of slower drifts are longer than most runs
BETWEEN = 8  # points per octave where no tongue is expected: growth by noise changes little with the frequency
LEAST_DAMPING = 1e-4  # tongues are resolved down to this damping
# A drift with few steps a period visits few phases, and may grow where its neighbours, which visit all phases, do not.
# These are whole periods, and fractions p / q of a turn per step.
LOCKED = np.unique([p / q for q in range(2, 65) for p in range(1, q // 2 + 1) if p == 1 or q <= 16])
CURVATURES = 33  # between the least and the largest, whose modes are looked at
MESH = 20_000  # points on which the density of a search is integrated


class Curvatures(NamedTuple):
    """Range of the eigenvalues of E[B] while the inputs move."""

    low: float
    high: float


class Turning(NamedTuple):
    """How the modes of an optimizer oscillate."""

    low: float  # least omega, in radians per step: 0 for a mode without oscillation
    high: float  # largest omega, pi where each step overshoots
    damping: float  # of the mode that is damped least


def turning(optimizer: LinearOptimizer, curvatures: Curvatures) -> Turning:
    """Of all modes between the least and the largest curvature, by the two multipliers of each that are largest."""
    b = np.linspace(curvatures.low, curvatures.high, CURVATURES)
    found = modes.multipliers(optimizer, b)
    largest = np.take_along_axis(found, np.argsort(-np.abs(found), axis=-1)[:, :2], axis=-1)
    omega = np.abs(np.angle(largest)).max(axis=-1)
    return Turning(float(omega.min()), float(omega.max()), float(1 - np.abs(largest).prod(axis=-1).max()))


def curvatures_of(shift: Shift, problem: Problem) -> Curvatures:
    """Least and largest curvature over what the shift visits."""
    return curvatures_at(shift.law.visited(shift, every_phase=True), problem)


def curvatures_at(inputs: Inputs, problem: Problem) -> Curvatures:
    """Least and largest eigenvalue of E[B] at these inputs, (n, dim) and (n,)."""
    eigenvalues = curvatures_each(inputs, problem)
    return Curvatures(float(eigenvalues[:, 0].min()), float(eigenvalues[:, -1].max()))


def curvatures_each(inputs: Inputs, problem: Problem) -> np.ndarray:
    """Eigenvalues of E[B] at each of the inputs, ascending, (n, weights)."""
    gaussian = contracts.gaussian_of(problem)
    dim = int(gaussian.dim)
    mean, added = (np.asarray(each, float) for each in inputs)
    mean = np.broadcast_to(mean, (len(mean), problem.dim)) if mean.shape[1] == 1 else mean
    mean = (mean if gaussian.axes is None else mean @ np.asarray(gaussian.axes, float))[:, :dim]
    variances = np.broadcast_to(np.asarray(gaussian.variances, float), (problem.dim,))[:dim]
    x = np.pad(mean, ((0, 0), (0, int(gaussian.bias))), constant_values=1.0)
    B = x[:, :, None] * x[:, None, :]
    slopes = np.arange(dim)
    B[:, slopes, slopes] += variances + added[:, None]
    return float(gaussian.factor) * np.linalg.eigvalsh(B)


def lowest_frequency(slowest: float) -> float:
    """The frequency below which all tongues, even those of a mode of the least omega, have an order above `ORDERS`."""
    return float(np.clip(slowest / (np.pi * ORDERS), 2 * SLOWEST, 0.05))


def slow_frequencies(lowest: float) -> np.ndarray:
    """Frequencies below the lowest one that is searched for tongues, two per octave."""
    return np.geomspace(SLOWEST, lowest, 2 + int(2 * np.log2(lowest / SLOWEST)))[:-1]


def frequencies_to_search(turning: Turning, *, lowest: float, most: int) -> np.ndarray:
    """Frequencies in [lowest, 0.5], two in each width of a tongue, and some between the tongues.

    If these are more than `most`, tongues of high order are left out. Then the damping is weak compared with the
    natural frequency, and each order is weaker than the one before by their ratio.
    """
    for orders in (ORDERS, ORDERS // 2, 2, 1):
        f = _frequencies(turning, lowest, orders)
        if len(f) <= most:
            break
    return f


def _frequencies(turning: Turning, lowest: float, orders: int) -> np.ndarray:
    f = np.geomspace(lowest, 0.5, MESH)
    damping = max(turning.damping, LEAST_DAMPING)
    wanted = np.maximum(BETWEEN / np.log(2) / f, 4 * BETWEEN)  # points per unit of frequency
    for order in range(1, orders + 1):
        whole = order * f
        away = np.abs(whole - np.round(whole)) * np.pi  # distance to the nearest whole number of turns
        inside = (away >= turning.low - 2 * damping) & (away <= turning.high + 2 * damping)
        wanted = np.maximum(wanted, np.where(inside, 4 * np.pi * order / damping, 0))
    number = np.concatenate([[0.0], np.cumsum((wanted[1:] + wanted[:-1]) / 2 * np.diff(f))])
    even = np.interp(np.linspace(0, number[-1], int(np.ceil(number[-1])) + 1), number, f)
    return np.unique(np.concatenate([_simple(even, 0.25 * np.gradient(even)), LOCKED[lowest <= LOCKED]]))


def _simple(f: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """Fractions p / N near f, with the smallest p that is close enough: their exact products have N steps."""
    p = np.arange(1, MOST_TURNS + 1)[:, None]
    fractions = p / np.maximum(np.round(p / f), 2 * p)
    near = np.abs(fractions - f) <= slack
    return np.where(near.any(axis=0), fractions[near.argmax(axis=0), np.arange(len(f))], f)


def num_steps(f: np.ndarray) -> np.ndarray:
    """Steps of the product over whole turns for a rate at frequency f, as in `products.turns`."""
    p = np.arange(1, MOST_TURNS + 1)[:, None]
    steps = p / np.maximum(f, 1 / LONGEST)
    error = np.where(steps <= LONGEST, np.maximum(np.abs(steps - np.round(steps)) / steps, TOLERANCE), np.inf)
    return np.where(f > 0, np.round(steps)[error.argmin(axis=0), np.arange(len(f))], 1)
