"""A page whose clicks compute: a bokeh server on this machine that runs the point of a sweep where it is clicked."""

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from resonance_jax.explorer import page
from resonance_jax.explorer.cells import Cells, cells_of
from resonance_jax.explorer.packing import pack
from resonance_jax.explorer.verdicts import verdicts
from resonance_jax.sweep import sweep

if TYPE_CHECKING:
    from bokeh.document import Document
    from bokeh.server.server import Server

RECORD = 256  # snapshots of a clicked run, where the point takes `record`

Point = Callable[..., dict[str, Any]]
Axes = Mapping[str, Any]


def serve(
    point: Point,
    axes: Axes,
    dataset: xr.Dataset,
    *,
    value: str | None = None,
    x: str | None = None,
    y: str | None = None,
    title: str | None = None,
    port: int = 5006,
) -> "Server":
    """A server for one page, on this machine alone. `server.run_until_shutdown()` waits for Ctrl-C.

    Args:
        point: of the sweep. If it takes `record`, clicked runs have more snapshots than those of the sweep.
        axes: of the sweep.
        dataset: what the sweep returned, for the heatmap.
        value, x, y, title: as `rj.explore` has them.
        port: of the server; 0 takes any that is free.

    Returns:
        The server, started; its `port` is where it listens.

    Raises:
        ValueError: the port is taken.
    """
    cells = cells_of(dataset, value, x, y)
    page.require_bokeh()
    from bokeh.application import Application
    from bokeh.application.handlers.function import FunctionHandler
    from bokeh.server.server import Server

    compute = functools.partial(compute_run, with_record(point), axes, cells)
    first = {dim: float(cells.axes[dim].values[0]) for dim in (cells.x, cells.y)}
    compute(dict.fromkeys(cells.axes, 0), first)  # compiles, so that the first click is as fast as the others
    prepare = functools.partial(prepare_document, cells, compute, title or page.default_title(cells))
    try:
        server = Server({"/": Application(FunctionHandler(prepare))}, port=port, address="localhost")
    except OSError as error:
        raise ValueError(f"port {port} cannot be used: {error.strerror}; choose another port") from None
    server.start()
    return server


def with_record(point: Point) -> Point:
    """The point, with more snapshots if it takes `record`."""
    return functools.partial(point, record=RECORD) if "record" in inspect.signature(point).parameters else point


def compute_run(point: Point, axes: Axes, cells: Cells, index: Mapping[str, int], at: Mapping[str, float]) -> dict:
    """The run at the clicked coordinates, for every seed, as `page.js` shows it.

    Args:
        point: of the sweep.
        axes: of the sweep.
        cells: what the page draws.
        index: which cell was clicked, a number for each axis.
        at: where exactly, on the two axes of the heatmap. Axes of floats take it as it is; others take their cell.
    """
    one = {name: _values(cells, name, values, index, at) for name, values in axes.items()}
    found = sweep(point, one)
    here = cells_of(found, cells.value, cells.x, cells.y)
    texts = [axis.texts[0] for name, axis in here.axes.items() if name != page.seed_of(cells)]

    def over_seeds(array: xr.DataArray, *own: str) -> np.ndarray:
        beside = [dim for dim in array.dims if dim not in (page.seed_of(cells), *own)]
        return array.isel(dict.fromkeys(beside, 0)).astype(float).values.reshape(-1, *(array.sizes[dim] for dim in own))

    curves = {name: (found[name], str(found[name].dims[-1])) for name in here.curves if name in cells.curves}
    return {
        "index": dict(index),
        "texts": texts,
        "values": {name: over_seeds(found[name]).tolist() for name in here.variables},
        "curves": {name: over_seeds(array, along).tolist() for name, (array, along) in curves.items()},
        "positions": {name: here.curves[name].positions.tolist() for name in curves},
        "verdicts": verdicts(here).values.reshape(-1).tolist(),
    }


def _values(cells: Cells, name: str, values: Any, index: Mapping[str, int], at: Mapping[str, float]) -> Any:
    """One value of an axis of the sweep; all of them for the seeds."""
    dim = str(values.dims[0]) if isinstance(values, xr.DataArray) else name
    if dim == page.seed_of(cells):
        return values
    if name in at and name == dim and cells.axes[name].numeric and np.asarray(values).dtype.kind == "f":
        return np.array([at[name]])
    i = int(cells.axes[dim].order[index[dim]])
    return values[i : i + 1]


def prepare_document(cells: Cells, compute: Callable[..., dict], title: str, document: "Document") -> None:
    """Fill the document of a new visitor."""
    from resonance_jax.explorer.document import add_models

    packed = page.pack_cells(cells)[0]._replace(curves=pack({}))  # clicks compute them
    spec = page.specification(cells, packed, live=True)
    models = add_models(document, cells, spec)
    document.title = title
    document.template = page.template()
    document.template_variables.update(page.template_variables(cells, spec, packed, []))
    ask, answer = models["ask"], models["answer"]

    def clicked(attribute: str, old: Any, new: Any) -> None:
        asked = {name: values[0] for name, values in ask.data.items()}
        try:
            run = compute(json.loads(asked["index"]), {cells.x: asked["x"], cells.y: asked["y"]})
        except ValueError as error:
            run = {"error": str(error)}
        answer.data = {"run": [json.dumps(_with_words(run))]}

    ask.on_change("data", clicked)


def _with_words(value: Any) -> Any:
    """Numbers that JSON does not have, as words."""
    if isinstance(value, dict):
        return {name: _with_words(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_words(each) for each in value]
    if isinstance(value, float) and not np.isfinite(value):
        return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
