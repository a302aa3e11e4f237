"""Which part of a dataset a picture shows, and which dimension lies in which direction."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from resonance_jax.plotting._axes import is_number, texts_of

PREFERRED = ("log10_distance", "loss", "distance")  # outputs of a dataset
MEASURES = ("loss", "distance")  # of `train`: where runs diverged, the mean only shows that


class Roles(NamedTuple):
    """The dimension that each direction of a picture shows; None: none."""

    x: str | None
    y: str | None
    col: str | None
    row: str | None


def output_of(data: xr.Dataset, name: str | None) -> tuple[xr.DataArray, xr.DataArray | None]:
    """An output of a dataset, and which of its runs diverged: only for a loss or a distance whose dataset tells."""
    names = [str(each) for each in data.data_vars if each != "status"]
    if name is not None and name not in names:
        raise ValueError(f"the data have no output {name!r}; they have {', '.join(names)}")
    if not names:
        raise ValueError("the dataset has no output; pass one with at least one data variable")
    name = name or next(each for each in (*PREFERRED, *names) if each in names)
    if name not in MEASURES:
        return data[name], None
    if "status" in data:
        from resonance_jax.jobs.layout import DIVERGED, MISSING  # imports zarr, which only stores need

        return data[name], (data.status == DIVERGED).where(data.status != MISSING)
    return data[name], data.diverged_at >= 0 if "diverged_at" in data else None


def select(data: xr.Dataset, sel: Mapping[str, Any]) -> tuple[xr.Dataset, list[str]]:
    """The part of the data with the chosen values, and a text for each dimension of which one value is left."""
    texts = []
    for dim, wanted in sel.items():
        if dim not in data.dims:
            dims = ", ".join(map(str, data["values"].dims))
            raise ValueError(f"sel names {dim!r}, which is not a dimension; choose from {dims}")
        if np.ndim(wanted) == 0:
            found = _index(data[dim], wanted)
            texts.append(f"{dim} = {texts_of(data[dim][[found]])[0]}")
            data = data.isel({dim: found})
        else:
            data = data.isel({dim: [_index(data[dim], each) for each in wanted]})
    return data, texts


def _index(values: xr.DataArray, wanted: Any) -> int:
    """Of the nearest number within the range of the values, or of a label."""
    if is_number(values):
        low, high = float(values.min()), float(values.max())
        tolerance = 1e-6 * max(abs(low), abs(high))
        if not isinstance(wanted, str) and low - tolerance <= wanted <= high + tolerance:
            return int(np.abs(values.values - wanted).argmin())
        options = f"numbers from {low:g} to {high:g}"
    else:
        labels = [str(value) for value in values.values]
        if str(wanted) in labels:
            return labels.index(str(wanted))
        options = ", ".join(labels)
    raise ValueError(f"{values.name} has no value {wanted}; choose from {options}")


def assign_roles(data: xr.Dataset, asked: Roles, over: str) -> tuple[Roles, list[str]]:
    """A role for every dimension of `values` with more than one of them, and the dimensions that have none."""
    given = [dim for dim in asked if dim]
    dims = [str(dim) for dim in data["values"].dims if dim != over]
    for dim in given:
        if dim not in dims:
            raise ValueError(f"{dim!r} is not a dimension to draw; choose from {', '.join(dims) or 'none'}")
        if given.count(dim) > 1:
            raise ValueError(f"{dim!r} has two roles; x, y, col and row need a dimension each")
    others = [dim for dim in dims if dim not in given]
    left = [dim for dim in others if data.sizes[dim] > 1] or ([] if asked.x else others[-1:])
    left.sort(key=lambda dim: is_number(data[dim]))  # stable: labels first, and so in panels rather than on axes
    if not asked.x and not left:
        raise ValueError("no dimension is left for the horizontal axis; give x, or select fewer values")
    found = asked._asdict()
    if not asked.x:
        found["x"] = left.pop(-2 if len(left) > 1 and not asked.y else -1)
    for role in ("y", "col", "row"):
        if not found[role] and left:
            found[role] = left.pop()
    return Roles(**found), [dim for dim in others if dim not in found.values()]


def first_of(data: xr.Dataset, dims: list[str]) -> tuple[xr.Dataset, list[str]]:
    """The first value of each dimension, and a text that says so."""
    texts = [
        f"{dim} = {texts_of(data[dim][:1])[0]}" + f" (1 of {data.sizes[dim]} values)" * (data.sizes[dim] > 1)
        for dim in dims
        if dim in data.coords or data.sizes[dim] > 1
    ]
    return data.isel(dict.fromkeys(dims, 0)), texts
