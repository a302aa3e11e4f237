"""Will momentum blow up on this stream, is the order to blame, and what is safe?"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import Array

from resonance_jax import checks
from resonance_jax.problems.base import Recorded
from resonance_jax.problems.recorded import recorded
from resonance_jax.streams.conclude import conclude, recorded_of
from resonance_jax.streams.diagnosis import Diagnosis
from resonance_jax.theory.recorded.growth import check_long_enough
from resonance_jax.theory.recorded.plane import plane

MOMENTA = 1 - np.geomspace(1, 1e-3, 28)  # of the plane, from 0 to 0.999
STEP_SIZES = np.geomspace(1e-4, 1, 29)  # of the plane, in units of the largest step size of a quadratic, 4 / curvature
RANGES = {"mus": (0, 1, "give momenta"), "etas": (0, np.inf, "give positive step sizes")}
UNEVEN = 100.0  # ratio of deviations, and of a mean to its deviation, from which on columns should be standardised


def diagnose(
    inputs: Any,
    targets: Any = None,
    *,
    samples: int,
    mu: float | None = None,
    eta: float | None = None,
    features: Callable[[Array], Array] | None = None,
    bias: bool = True,
    loss_factor: float = 2.0,
    mus: Sequence[float] | np.ndarray | None = None,
    etas: Sequence[float] | np.ndarray | None = None,
    permutations: int = 4,
    model: bool = True,
    progress: bool = False,
) -> Diagnosis:
    """Whether SGD with momentum diverges on a recorded stream, what is to blame, and what is safe.

    Runs of least squares go over the rows in time order and shuffled, on a whole plane of momentum and step size. How
    they grow depends on the inputs alone, not on the targets. The verdict on a setting is the first that fits:

        stable          runs shrink in time order, and nowhere on the way do they rise a thousandfold
        step too large  they would grow even if each step saw all rows
        bursts          they shrink in the long run, but rise a thousandfold on the way
        order           they grow in time order, and shrink shuffled
        both            they grow shuffled, and at least twice as fast in time order
        noise           they grow in time order and shuffled
        undecided       the growth is within two standard errors of 0

    A run that ends lower than it began and never rises tenfold has shrunk, and one that rose a thousandfold has grown,
    whatever the standard errors say.

    Args:
        inputs: rows in the order of time, (N, d) or (N,): NumPy, pandas or xarray.
        targets: one for each row; only checked.
        samples: consecutive rows of a step.
        mu, eta: your own momentum and step size, which the diagnosis then looks at closely. They are added to the
            plane. Where one is None, the diagnosis looks at the setting at which the order does most harm.
        features, bias, loss_factor: as `rj.problems.recorded`.
        mus, etas: of the plane, ascending; None takes 28 momenta from 0 to 0.999, and 29 step sizes over the four
            decades below the largest at which any quadratic with the mean curvature of the rows converges.
        permutations: shuffled runs of each cell.
        model: whether to fit a model of the stream, `rj.shifts.fit`, and to ask theory about it.
        progress: show bars.

    Returns:
        A `Diagnosis`: print it, `.plot()` it, take `.data`, `.verdict`, `.remedies`. Growth in time order is that of
        passes over the same rows, of at least 10,000 steps after 10,000 that are left out; its standard error comes
        from the spread between ten parts of the stream, and tells how much another stream of the same source may
        differ. Growth below 1e-4 a step cannot be told from none, and below 2e-7, the rounding of float32, it is taken
        as none where the run never rose. Safe values are those of the plane: growth between
        two of them is not seen.

    Raises:
        ValueError: what `rj.problems.recorded` refuses, fewer than 40 steps a pass, axes that are not ascending.

    >>> import resonance_jax as rj
    >>> k, rng = np.arange(3000), np.random.default_rng(0)
    >>> rows = np.sqrt(2) * np.sin(2 * np.pi * k / 12) + 0.1 * rng.normal(size=3000)
    >>> found = rj.diagnose(rows, samples=1, mu=0.95, eta=0.01, mus=[0.5, 0.9], etas=[0.001], model=False)
    >>> found.verdict, found.safe
    ('stable', True)
    """
    problem = recorded(inputs, targets, samples=samples, features=features, bias=bias, loss_factor=loss_factor)
    linear, rows = recorded_of(problem)
    check_stream(rows, bias, mu, eta, permutations)
    data = plane(linear, *plane_axes(rows, mu, eta, mus, etas), permutations, progress=progress)
    return conclude(problem, data, mu=mu, eta=eta, bias=bias, loss_factor=loss_factor, model=model)


def plane_axes(
    rows: Recorded, mu: float | None, eta: float | None, mus: Any, etas: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Momenta and step sizes of the plane, with the user's own among them."""
    largest = 4 / np.linalg.eigvalsh(rows.curvature)[-1]
    momenta = _axis("mus", MOMENTA if mus is None else mus, mu)
    return momenta, _axis("etas", largest * STEP_SIZES if etas is None else etas, eta)


def check_stream(rows: Recorded, bias: bool, mu: Any, eta: Any, permutations: Any) -> None:
    """ValueError for a short stream or a setting out of its range; a warning for columns of uneven scales."""
    check_long_enough(rows)
    if mu is not None:
        checks.between("mu", mu, 0, 1, "momentum is the share of the velocity that is kept")
    if eta is not None:
        checks.between("eta", eta, 0, np.inf, "give a positive step size", open_low=True)
    checks.at_least_one("permutations", permutations, "shuffled runs tell the order from the noise")
    _warn_of_scales(rows.rows[:, : rows.rows.shape[1] - int(bias)])


def _warn_of_scales(x: np.ndarray) -> None:
    deviations, means = x.std(axis=0, dtype=float), np.abs(x.mean(axis=0, dtype=float))
    if deviations.max() > UNEVEN * deviations.min() or (means > UNEVEN * deviations).any():
        warnings.warn(
            f"columns have deviations from {deviations.min():.3g} to {deviations.max():.3g} and means up to "
            f"{means.max():.3g}: one step size does not suit all of them; standardise them, (x - x.mean(0)) / x.std(0)",
            stacklevel=4,
        )


def _axis(name: str, values: Any, own: float | None) -> np.ndarray:
    """Ascending values, with the user's own."""
    array = np.asarray(values, float)
    if array.ndim != 1 or not array.size or not (np.diff(array) > 0).all():
        raise ValueError(
            f"{name} must be ascending numbers in one dimension, got {values!r}; e.g. np.linspace(0, 0.99, 30)"
        )
    low, high, remedy = RANGES[name]
    for value in array[[0, -1]]:
        checks.between(f"each of {name}", float(value), low, high, remedy, open_low=name == "etas")
    if own is None or np.isclose(array, own, rtol=1e-6, atol=0).any():
        return array
    return np.sort(np.append(array, own))
