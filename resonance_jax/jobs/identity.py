"""Which sweep a store belongs to: what two jobs must have in common to share it, and how two sweeps differ."""

import difflib
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from resonance_jax._version import __version__
from resonance_jax.engine.devices import Device, name_of
from resonance_jax.engine.grid import Grid
from resonance_jax.engine.shapes import Shape
from resonance_jax.jobs.store import Store


def identity(grid: Grid, source: str, devices: Sequence[Device]) -> dict[str, Any]:
    """What two jobs must have in common to share a store."""
    return {
        "program": grid.digest(),
        "source": source,
        "resonance_jax": __version__,
        "jax": jax.__version__,
        "dtype": str(jnp.result_type(float)),
        "backend": devices[0].platform,
    }


def provenance(devices: Sequence[Device]) -> dict[str, Any]:
    """Where and when a store was made."""
    return {"created": now(), "device": name_of(devices), "python": platform.python_version()}


def check_same(store: Store, grid: Grid, attrs: Mapping[str, Any], chunk: int | None) -> None:
    found = differences(store, grid, attrs, chunk)
    if found:
        raise ValueError(
            f"{store.path} holds another sweep: {'; '.join(found)}. Give another store, or the sweep it was made with"
        )


def differences(store: Store, grid: Grid, attrs: Mapping[str, Any], chunk: int | None = None) -> list[str]:
    """How a sweep differs from that of a store, in words. A changed file that computes the same is the same sweep."""
    found = []
    axes = {name: dim for name, (dim, _) in grid.coordinates.items()}
    if store.dims != grid.dims or store.axes != axes:
        found.append(f"axes {_axes(axes)}, in the store {_axes(store.axes)}")
    else:
        for name, (_, labels) in grid.coordinates.items():
            stored = store.coordinate(name)
            if stored.shape != labels.shape or not np.array_equal(stored, labels):
                found.append(f"axis {name} is {_range(labels)}, in the store {_range(stored)}")
    found += [
        f"{name} is {attrs[name]}, in the store {store.attrs.get(name)}"
        for name in ("resonance_jax", "jax", "dtype", "backend")
        if store.attrs.get(name) != attrs[name]
    ]
    if not found and store.attrs.get("program") != attrs["program"]:
        found.append(
            f"the point computes something else{_first_change(store.attrs.get('source', ''), attrs['source'])}"
        )
    if not found and chunk is not None and grid.chunk_shape(chunk) != store.chunk_shape:
        found.append(f"chunks of {_by(grid.chunk_shape(chunk))} cells, in the store {_by(store.chunk_shape)}")
    return found


def _first_change(old: str, new: str) -> str:
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm=""))[3:]
    removed = next((line[1:].strip() for line in lines if line.startswith("-")), None)
    added = next((line[1:].strip() for line in lines if line.startswith("+")), None)
    if removed is None and added is None:
        return ", through a file it imports"
    return f"; first change of the file: {added!r}, in the store {removed!r}"


def _axes(coordinates: Mapping[str, str]) -> str:
    """Names of the axes, each with its dimension where that has another name."""
    return ", ".join(name if name == dim else f"{name} along {dim}" for name, dim in coordinates.items())


def _range(values: np.ndarray) -> str:
    if values.dtype.kind not in "iuf":
        return ", ".join(map(str, values))
    return f"{len(values)} values from {values[0]:g} to {values[-1]:g} ({values.dtype})"


def _by(shape: Shape) -> str:
    return " x ".join(map(str, shape))


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
