"""Axes that fit the values of a coordinate: linear, logarithmic, or one tick for each label."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullFormatter

from resonance_jax import labels

SPREAD = 30  # largest over smallest value from which on an axis may be logarithmic
MOMENTA = ("mu", "beta1", "b1", "momentum")  # these stay below 1
LONG = 30  # characters of all labels together from which on they are slanted


def text_of(data: xr.DataArray) -> str:
    """Text for an axis that shows these data: from their attributes or, without them, from their name."""
    return labels.axis(str(data.name), data.attrs)


def is_number(coordinate: xr.DataArray) -> bool:
    return coordinate.dtype.kind in "iuf"


def positions(coordinate: xr.DataArray) -> np.ndarray:
    """Where the values of a coordinate are drawn: numbers at themselves, labels at 0, 1, 2, ..."""
    return coordinate.values.astype(float) if is_number(coordinate) else np.arange(coordinate.size, dtype=float)


def is_logarithmic(coordinate: xr.DataArray) -> bool:
    """Whether the values span decades and lie evenly on a logarithmic axis rather than on a linear one.

    >>> [is_logarithmic(xr.DataArray(each)) for each in (np.geomspace(1e-3, 1, 7), np.arange(1.0, 100), [0.0, 1, 100])]
    [True, False, False]
    """
    if not is_number(coordinate) or coordinate.min() <= 0 or coordinate.max() < SPREAD * coordinate.min():
        return False
    low, high = float(coordinate.min()), float(coordinate.max())
    return bool(float(coordinate.median()) ** 2 < np.sqrt(low * high) * (low + high) / 2)


def edges(values: np.ndarray, *, log: bool = False) -> np.ndarray:
    """Edges of cells around ascending values: half-way between neighbours, and as far beyond the outer ones.

    Args:
        values: at least one. A single value has a cell as wide as itself, or of a decade.
        log: half-way on a logarithmic axis.

    >>> edges(np.array([0.0, 1.0, 4.0])).tolist(), edges(np.array([1.0, 100.0]), log=True).round(3).tolist()
    ([-0.5, 0.5, 2.5, 5.5], [0.1, 10.0, 1000.0])
    """
    at = np.log10(values) if log else np.asarray(values, float)
    if at.size == 1:
        found = at + np.array([-0.5, 0.5]) * (1 if log else abs(at[0]) or 1)
    else:
        middles = (at[1:] + at[:-1]) / 2
        found = np.concatenate([[2 * at[0] - middles[0]], middles, [2 * at[-1] - middles[-1]]])
    return 10.0**found if log else found


def cell_edges(coordinate: xr.DataArray) -> np.ndarray:
    """Edges of the cells of a coordinate, within what it can be: no negative frequency, no momentum above 1."""
    found = edges(positions(coordinate), log=is_logarithmic(coordinate))
    if is_number(coordinate):
        if coordinate.min() >= 0:
            found = np.maximum(found, 0)
        if coordinate.name in MOMENTA and coordinate.max() < 1:
            found = np.minimum(found, 1)
    return found


def fit_axis(ax: Axes, which: str, coordinate: xr.DataArray) -> None:
    """Scale, ticks and text of the "x" or "y" axis for a coordinate."""
    axis: Any = ax.xaxis if which == "x" else ax.yaxis
    axis.set_label_text(text_of(coordinate))
    if not is_number(coordinate):
        names = [str(value) for value in coordinate.values]
        slanted = which == "x" and sum(map(len, names)) > LONG
        axis.set_ticks(positions(coordinate), names, **dict(rotation=30, ha="right") if slanted else {})
    elif is_logarithmic(coordinate):
        ax.set(**{f"{which}scale": "log"})
        axis.set_minor_formatter(NullFormatter())
    elif coordinate.dtype.kind in "iu" and which == "x":
        axis.set_major_locator(MaxNLocator("auto", integer=True))


def texts_of(coordinate: xr.DataArray) -> list[str]:
    """A text for each value: labels as they are, numbers with as many digits as tell them apart.

    >>> texts_of(xr.DataArray([0.1, 0.25])), texts_of(xr.DataArray([0.99991, 0.99992]))
    (['0.1', '0.25'], ['0.99991', '0.99992'])
    """
    if not is_number(coordinate):
        return [str(value) for value in coordinate.values]
    many = [[f"{value:.{digits}g}" for value in coordinate.values] for digits in range(4, 18)]
    return next((texts for texts in many if len(set(texts)) == coordinate.size), many[0])
