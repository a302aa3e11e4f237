"""A sweep is `vmap` with labels: a point on the product of named axes, in memory or as a job that keeps its chunks."""

import functools
import inspect
import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from resonance_jax import checks
from resonance_jax._version import __version__
from resonance_jax.engine import programs
from resonance_jax.engine.axes import Point, Values
from resonance_jax.engine.devices import Device, check_devices, chunks_at_once, name_of
from resonance_jax.engine.grid import Grid, prepare
from resonance_jax.engine.progress import Bar
from resonance_jax.engine.shapes import chunks_of, shape_of
from resonance_jax.labels import attrs as describe

if TYPE_CHECKING:
    import xarray as xr

PROGRESS_CHUNKS = 10  # a bar with fewer stops tells little


def sweep(
    point: Point,
    axes: Mapping[str, Values],
    *,
    chunk: int | None = None,
    devices: int | Sequence[Device] | None = None,
    progress: bool = False,
    store: str | os.PathLike[str] | None = None,
    resume: bool = False,
    shard: tuple[int, int] | str | None = None,
) -> "xr.Dataset":
    """Evaluate a point on the product of the axes, as one compiled program.

    Args:
        point: pure function of named scalars that returns a dict of scalars or arrays of fixed shape. It is traced: it
            may use `jax.numpy` and everything in this package, with its arguments as hyperparameters. Large arrays
            that it closes over, such as recorded rows, are copied to each device once and not compiled in.
        axes: name of an argument -> its values, 1-D. The result has these dimensions, in this order. Arguments with
            a default need no axis.
            Numbers are traced. Strings, bools, None, functions, tuples and other hashables are static: the point gets
            the plain value, and is traced and compiled once for each; functions are labelled by their name.
            Axes given as `xarray.DataArray`s that share a dimension are zipped, as in xarray's pointwise indexing.
        chunk: largest number of cells that are computed at a time, but for rounding up to a multiple of the devices;
            None takes as many as fit into the memory, with a store about a twentieth of the grid.
        devices: number of devices or the devices themselves; None takes all local ones. A CPU that is one device then
            computes a chunk on each of its cores, up to eight.
        progress: show a bar, on a grid cut into about ten chunks unless `chunk` is given.
        store: folder, by habit `name.zarr`, that each chunk is written to when it is finished. Finished chunks are
            never lost, whatever ends the process; `xarray.open_zarr` reads them at any time.
        resume: go on with a store that has chunks of this sweep: whole ones stay, damaged ones are computed again.
        shard: with a store, the part to compute: `(i, n)` or `"i/n"`, i from 1, is every n-th chunk, so that n
            processes fill one store.

    Returns:
        Dataset with a variable for each entry of the dict, the axes as coordinates, and what was run in the attributes.
        A named tuple, as the `Estimate` of a rate, becomes one variable for each field: under the key "square" those
        are `square` and `square_standard_error`. The dimensions of a `Labelled` array, as the curves of a run with
        `record=`, keep their names and coordinates. A cell depends on its own coordinates only. A second call with
        other values, as many of them, does not compile: the traced point is remembered, and with it the globals and
        attributes it read then. Define it anew, as running its `def` again does, to have changes seen.
        With a store, all that it holds, and `status`, which tells cells that are missing (0, NaN in the outputs), ok
        (1), diverged (2) and nonfinite (3).

    Raises:
        ValueError: axes that do not fit the point, or a point that does not return a dict of arrays; before anything is
            compiled. A store of another sweep, or one that is begun where `resume` is not given.
        MemoryError: more cells at a time than the device has memory for; give a smaller `chunk`, or fewer devices where
            one cell for each is too much.

    >>> square = sweep(lambda x, y: {"product": x * y}, {"x": [1.0, 2.0], "y": [3.0, 4.0, 5.0]})
    >>> square.product.sel(x=2.0).values.tolist()
    [6.0, 8.0, 10.0]
    >>> power = sweep(lambda x, f: {"y": f(x)}, {"x": [-2.0, 3.0], "f": [jax.numpy.abs, jax.numpy.square]})
    >>> power.y.sel(f="square").values.tolist()
    [4.0, 9.0]
    """
    chosen = check_devices(devices)
    if chunk is not None:
        checks.at_least_one("chunk", chunk, "it counts cells; leave it out to have it chosen")
    if store is None and (resume or shard is not None):
        raise ValueError(
            f"{'resume' if resume else 'shard'} needs a store to keep finished chunks in; give store='name.zarr'"
        )
    if store is None:
        at_once = chunks_at_once(devices) if chunk is None else 1
        return _in_memory(point, prepare(point, axes), chunk, chosen, progress, at_once)

    from resonance_jax.jobs import job  # zarr takes a while to import
    from resonance_jax.jobs.store import load

    part = job.Shard.parse(shard)
    outcome = job.run(
        prepare(point, axes),
        Path(store),
        devices=chosen,
        source=_source_of(point),
        facts={"point": _name_of(point)},
        resume=resume,
        shard=part,
        chunk=chunk,
        report=functools.partial(Bar, show=progress),
    )
    data = load(Path(store))
    data.attrs |= {
        "chunk_shape": list(outcome.store.chunk_shape),
        "num_chunks": outcome.store.num_chunks,
        "compile_seconds": round(outcome.compile_seconds, 3),
        "run_seconds": round(outcome.seconds, 6),
    }
    return data


def _in_memory(
    point: Point, grid: Grid, chunk: int | None, devices: tuple[Device, ...], progress: bool, at_once: int
) -> "xr.Dataset":
    import xarray as xr

    with Bar(grid.size, show=progress) as bar:
        bar.say("compiling")
        limit = chunk or math.ceil(grid.size / max(PROGRESS_CHUNKS if progress else 1, at_once))
        _, compiled = programs.compile_to_fit(grid, limit, devices, may_shrink=chunk is None, at_once=at_once)
        shape = grid.outer(next(iter(compiled.values())).shape)
        chunks = chunks_of(grid.whole, shape)
        data = programs.empty(grid, grid.whole) if len(chunks) > 1 else []
        labels, finished = None, 0

        bar.say("running")
        begin = time.perf_counter()
        launched = programs.launch(compiled, grid, chunks, at_once)
        try:
            for index, outputs_of in zip(chunks, launched, strict=True):
                if labels is None:
                    labels = xr.Dataset(coords=grid.coordinates).coords  # made while the device works
                outputs = outputs_of()
                for array, output in zip(data, outputs, strict=len(chunks) > 1):
                    array[index] = output
                data = data or outputs
                cells = math.prod(shape_of(index))
                bar.advance(cells)
                finished += cells
        except KeyboardInterrupt as error:
            error.add_note(
                f"{finished} of {grid.size} cells were finished and are lost; store='name.zarr' keeps finished chunks, "
                "and resume=True goes on with them."
            )
            raise
        finally:
            launched.close()  # chunks that wait for a core are not begun after an error or Ctrl-C
        seconds = time.perf_counter() - begin

    swept = xr.Dataset(
        {name: (dims, output) for (name, dims), output in zip(grid.output_dims.items(), data, strict=True)},
        coords=labels,
        attrs={
            "point": _name_of(point),
            "resonance_jax": __version__,
            "jax": jax.__version__,
            "device": name_of(devices),
            "dtype": str(jnp.result_type(float)),
            "chunk_shape": list(shape),
            "num_chunks": len(chunks),
            "peak_bytes": float(max(each.peak_bytes for each in compiled.values())),
            "compile_seconds": round(sum(each.take_compile_seconds() for each in compiled.values()), 3),
            "run_seconds": round(seconds, 6),
        },
    )
    for name, variable in swept.variables.items():
        variable.attrs.update(describe(str(name)))
    return swept


def _name_of(point: Point) -> str:
    return f"{getattr(point, '__module__', '')}.{getattr(point, '__qualname__', repr(point))}"


def _source_of(point: Any) -> str:
    """Text of the function, where there is one."""
    while isinstance(point, functools.partial):
        point = point.func
    try:
        return inspect.getsource(point)
    except (OSError, TypeError):
        return ""
