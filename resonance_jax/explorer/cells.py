"""What a page draws of a dataset: its axes with the edges of their cells, its variables, its curves."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from resonance_jax import labels
from resonance_jax.jobs.layout import DIVERGED, STATUS
from resonance_jax.runs.divergence import says_diverged

SEED = "seed"  # the axis that pages average over
PREFERRED = ("log10_distance", "loss", "distance")  # what is drawn first, where there is one
OVERFLOW = 1e5  # decades; `rj.oscillate` reports a run that left the range of floats at once as 10^1,000,000


class Axis(NamedTuple):
    """One dimension of a sweep, in increasing order."""

    name: str
    label: str
    values: np.ndarray  # centres of the cells; 0, 1, 2, ... where the coordinate is no number, or is zipped
    edges: np.ndarray  # of the cells, one more than values
    log: bool  # drawn on a logarithmic scale
    numeric: bool  # values are those of the coordinate
    texts: list[str]  # each cell in words, "f = 0.01"
    order: np.ndarray  # where the cells were in the dataset


class Variable(NamedTuple):
    """One output over the axes, or over some of them where it is constant along the others."""

    name: str
    label: str
    kind: str  # see `kind_of`
    dims: tuple[str, ...]
    values: np.ndarray
    limits: tuple[float, float]  # of the colours, for all slices
    is_rate: bool
    error: str | None  # the variable that is its standard error


class Curve(NamedTuple):
    """One recorded output: over the axes, and last over a dimension of its own."""

    name: str
    label: str
    kind: str
    dims: tuple[str, ...]  # axes alone
    along: str  # label of the recorded dimension
    positions: np.ndarray  # along it
    values: np.ndarray


class Cells(NamedTuple):
    """All that a page draws."""

    x: str
    y: str
    value: str
    axes: dict[str, Axis]
    variables: dict[str, Variable]
    curves: dict[str, Curve]
    data: xr.Dataset  # sorted along its axes
    diverged: xr.DataArray  # where the dataset says that a run diverged


def cells_of(dataset: xr.Dataset, value: str | None = None, x: str | None = None, y: str | None = None) -> Cells:
    """Choose what to draw of a dataset.

    Args:
        dataset: of a sweep, or any other with two dimensions or more.
        value: variable of the first heatmap; its dimensions are the axes. None: a distance or a loss, if there is one.
        x, y: horizontal and vertical axis; None: the two longest that are not the seed.

    Raises:
        ValueError: no dataset, or a variable or axes that it does not have.

    >>> data = xr.Dataset({"loss": (("seed", "T", "mu"), np.ones((2, 3, 4)))})
    >>> found = cells_of(data)
    >>> found.x, found.y, found.axes["T"].edges.tolist()
    ('T', 'mu', [-0.5, 0.5, 1.5, 2.5])
    """
    if not isinstance(dataset, xr.Dataset):
        raise ValueError(f"explore draws a Dataset, got {type(dataset).__name__}; pass what rj.sweep returned")
    numbers = {str(name): array for name, array in dataset.data_vars.items() if array.dtype.kind in "fiub"}
    drawable = [name for name, array in numbers.items() if name != STATUS and array.ndim >= 2 and array.size]
    if value is None:
        fewest = sorted(drawable, key=lambda name: numbers[name].ndim)
        value = next((name for name in (*PREFERRED, *fewest) if name in drawable), None)
        if value is None:
            raise ValueError(
                f"explore needs a variable of numbers over two dimensions, got {dict(dataset.sizes)}; sweep two axes, "
                "or draw a curve with rj.plotting.overview"
            )
    elif value not in drawable:
        raise ValueError(f"the dataset has no variable {value!r} to draw; choose one of {', '.join(drawable)}")
    dims = [str(dim) for dim in numbers[value].dims]
    x, y = _choose(numbers[value].sizes, x, y)
    axes = {dim: axis_of(dataset, dim) for dim in dims}
    data = dataset.isel({dim: axis.order for dim, axis in axes.items()})
    diverged = _diverged(data, dims)
    variables, curves = {}, {}
    for name in sorted(numbers, key=lambda name: (name.removesuffix("_curve") not in (value, *PREFERRED), name)):
        own = [str(dim) for dim in data[name].dims if dim not in dims]
        if name == STATUS or not numbers[name].size:
            continue
        if not own:
            variables[name] = _variable(data, name, {x, y}, diverged)
        elif len(own) == 1:
            curves[name] = _curve(data, name, own[0])
    return Cells(x, y, value, axes, variables, curves, data, diverged)


def _choose(sizes: Mapping[Any, int], x: str | None, y: str | None) -> tuple[str, str]:
    dims = [str(dim) for dim in sizes]
    for name, given in (("x", x), ("y", y)):
        if given is not None and given not in dims:
            raise ValueError(f"{name} must be an axis of the variable, got {given!r}; choose one of {', '.join(dims)}")
    if x is not None and x == y:
        raise ValueError(f"x and y must be different axes, got {x!r} twice; choose another of {', '.join(dims)}")
    free = sorted((dim for dim in dims if dim not in (x, y)), key=lambda dim: (dim == SEED, -sizes[dim]))
    if x is None and y is None:
        x, y = sorted(free[:2], key=dims.index)
    return x or free[0], y or free[0]


def axis_of(dataset: xr.Dataset, dim: str) -> Axis:
    """One axis of a dataset: sorted, with the edges of its cells, on a logarithmic scale if that is more even.

    >>> axis_of(xr.Dataset(coords={"eta": [1.0, 0.1, 0.01]}), "eta").edges.round(4).tolist()
    [0.0032, 0.0316, 0.3162, 3.1623]
    """
    size = dataset.sizes[dim]
    beside = [str(name) for name, coord in dataset.coords.items() if coord.dims == (dim,)]
    own = dataset[dim].values if dim in beside else np.arange(size)
    numeric = bool(own.dtype.kind in "fiu" and np.isfinite(own).all() and np.unique(own).size == size)
    order = np.argsort(own, kind="stable") if numeric else np.arange(size)
    values = own[order].astype(float) if numeric else np.arange(size, dtype=float)
    texts = [
        ", ".join(f"{name} = {_text(dataset[name].values[i])}" for name in beside) or f"{dim} = {i}" for i in order
    ]
    log = numeric and _evenness(values, log=True) < _evenness(values, log=False)
    edges = 10 ** edges_of(np.log10(values)) if log else edges_of(values)
    attrs = dataset[dim].attrs if dim in beside else {}
    return Axis(dim, describe(dim, attrs, named=True), values, edges, log, numeric, texts, order)


def edges_of(centres: np.ndarray) -> np.ndarray:
    """Edges of cells: half-way between neighbours; the outer cells are symmetric.

    >>> edges_of(np.array([0.0, 1.0, 3.0])).tolist()
    [-0.5, 0.5, 2.0, 4.0]
    """
    if centres.size == 1:
        return centres[0] + np.array([-0.5, 0.5])
    middle = (centres[1:] + centres[:-1]) / 2
    return np.concatenate([[2 * centres[0] - middle[0]], middle, [2 * centres[-1] - middle[-1]]])


def is_even(axis: Axis) -> bool:
    """Whether all cells have the same width on the scale of the axis, so that a picture of pixels is exact."""
    edges = np.log10(axis.edges) if axis.log else axis.edges
    widths = np.diff(edges)
    return bool(np.ptp(widths) <= 1e-3 * widths.mean())


def kind_of(name: str, values: np.ndarray, is_rate: bool = False) -> str:
    """How a variable is coloured and averaged.

    Returns:
        "log10": a log10; powers of ten, diverging at 10^0, averaged as powers. "signed": a rate, diverging at 0.
        "log": positive over more than three decades, coloured by its log10. "flag": True or False. "plain": the rest.

    >>> kind_of("log10_distance", np.zeros(2)), kind_of("loss", np.array([1e-5, 1.0])), kind_of("loss", np.ones(2))
    ('log10', 'log', 'plain')
    """
    if name.startswith("log10_"):
        return "log10"
    if is_rate:
        return "signed"
    if values.dtype == bool:
        return "flag"
    finite = values[np.isfinite(values)]
    return "log" if finite.size and 0 < finite.min() < finite.max() / 1000 else "plain"


def describe(name: str, attrs: Any = None, *, named: bool = False) -> str:
    """What a name stands for, with its units and, for an axis, the name itself.

    >>> describe("growth_rate"), describe("f", named=True), describe("my_output")
    ('growth rate (1/step)', 'frequency of the shift, f (1/step)', 'my_output')
    """
    known = labels.attrs(name) | dict(attrs or {})
    long, units = str(known.get("long_name", name)), known.get("units", "1")
    long = long.removeprefix("log10 of the ")  # the page shows powers of ten
    text = f"{long}, {name}" if named and long != name else long
    return text + (f" ({units})" if units not in ("1", "") and units not in long else "")


def colour_limits(values: np.ndarray, kind: str) -> tuple[float, float]:
    """From the first to the 99th percentile of the finite values; of few values, from the smallest to the largest.

    >>> colour_limits(np.array([1e-4, 1.0, np.nan]), "log")
    (-4.0, 0.0)
    """
    values = values[np.isfinite(values)].astype(float)
    if kind == "log":
        values = np.log10(values)
    elif kind == "log10":
        values = values[values < OVERFLOW]
    if not values.size:
        return 0.0, 1.0
    low, high = np.percentile(values, (1, 99)) if values.size > 100 else (values.min(), values.max())
    return (float(low), float(high)) if high > low else (float(low) - 0.5, float(low) + 0.5)


def _diverged(data: xr.Dataset, dims: list[str]) -> xr.DataArray:
    found = xr.DataArray(np.zeros([data.sizes[dim] for dim in dims], bool), dims=dims)
    for name in ("diverged", "diverged_at"):
        if name in data and set(data[name].dims) <= set(dims):
            found = found | xr.DataArray(says_diverged(name, data[name].values), dims=data[name].dims)
    if STATUS in data and set(data[STATUS].dims) <= set(dims):
        found = found | xr.DataArray(data[STATUS].values == DIVERGED, dims=data[STATUS].dims)
    return found.transpose(*dims)


def _variable(data: xr.Dataset, name: str, shown: set[str], diverged: xr.DataArray) -> Variable:
    array, error = data[name], name + labels.ERROR
    settled = array.values
    if array.dtype.kind == "f" and not name.startswith("log10_"):  # diverged cells have a colour of their own
        settled = array.drop_vars([*array.coords]).where(~diverged).values
    for dim in [str(dim) for dim in array.dims if dim not in shown]:
        first = array.isel({dim: 0})
        if bool(((array == first) | (array.isnull() & first.isnull())).all()):  # as theory is over seeds
            array = first
    has_error = error in data.data_vars
    units = (labels.attrs(name) | array.attrs).get("units")
    is_rate = not name.endswith(labels.ERROR) and (units == "1/step" or has_error or name.endswith("rate"))
    kind = kind_of(name, settled, is_rate)
    limits = colour_limits(array.values if is_rate else settled, kind)
    dims, label = tuple(str(dim) for dim in array.dims), describe(name, array.attrs)
    return Variable(name, label, kind, dims, array.values, limits, is_rate, error if has_error else None)


def _curve(data: xr.Dataset, name: str, along: str) -> Curve:
    array = data[name].transpose(..., along)
    positions = data[along].values if along in data.coords else np.arange(data.sizes[along])
    if positions.dtype.kind not in "fiu":
        positions = np.arange(data.sizes[along])
    dims = tuple(str(dim) for dim in array.dims[:-1])
    attrs = data[along].attrs if along in data.coords else {}
    kind = kind_of(name, array.values)
    return Curve(name, describe(name, array.attrs), kind, dims, describe(along, attrs), positions, array.values)


def _evenness(values: np.ndarray, *, log: bool) -> float:
    """Spread of the widths of the cells, relative to their mean; the smaller, the more even."""
    if values.size < 3 or (log and values[0] <= 0):
        return np.inf if log else 1e-6
    widths = np.diff(np.log(values) if log else values)
    return float(widths.std() / widths.mean())


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
