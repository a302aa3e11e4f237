"""A sweep is `vmap` with labels: a point on the product of named axes, compiled, run and put together in memory."""

import math
import time
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import xarray as xr
from numpy.typing import ArrayLike

from resonance_jax import checks
from resonance_jax._version import __version__
from resonance_jax.engine import chunks
from resonance_jax.engine.axes import Device, Point, check_devices
from resonance_jax.engine.progress import Bar

PROGRESS_CHUNKS = 10  # a bar with fewer stops tells little


def sweep(
    point: Point,
    axes: Mapping[str, ArrayLike],
    *,
    chunk: int | None = None,
    devices: int | Sequence[Device] | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Evaluate a point on the product of the axes, as one compiled program.

    Args:
        point: pure function of named scalars that returns a dict of scalars or arrays of fixed shape. It is traced: it
            may use `jax.numpy` and everything in this package, with its arguments as hyperparameters.
        axes: name of an argument -> its values, 1-D. The result has these dimensions, in this order. Arguments with
            a default need no axis.
        chunk: largest number of cells that are computed at a time, but for rounding up to a multiple of the devices;
            None takes as many as fit into the memory.
        devices: number of devices or the devices themselves; None takes all local ones.
        progress: show a bar, on a grid cut into about ten chunks unless `chunk` is given.

    Returns:
        Dataset with a variable for each entry of the dict, the axes as coordinates, and what was run in the attributes.
        A named tuple, as the `Estimate` of a rate, becomes one variable for each field: under the key "square" those
        are `square` and `square_standard_error`. A cell depends on its own coordinates only. A second call with other
        values, as many of them, does not compile: the traced point is remembered, and with it the globals and
        attributes it read then. Define it anew, as running its `def` again does, to have changes seen.

    Raises:
        ValueError: axes that do not fit the point, or a point that does not return a dict of arrays; before anything is
            compiled.
        MemoryError: more cells at a time than the device has memory for; give a smaller `chunk`, or fewer devices where
            one cell for each is too much.

    >>> square = sweep(lambda x, y: {"product": x * y}, {"x": [1.0, 2.0], "y": [3.0, 4.0, 5.0]})
    >>> square.product.sel(x=2.0).values.tolist()
    [6.0, 8.0, 10.0]
    """
    chosen = check_devices(devices)
    if chunk is not None:
        checks.at_least_one("chunk", chunk, "it counts cells; leave it out to have it chosen")
    grid = chunks.prepare(point, axes)
    with Bar(grid.size, progress) as bar:
        bar.say("compiling")
        few = math.ceil(grid.size / (PROGRESS_CHUNKS if progress else 1))
        _, program = chunks.compile_to_fit(grid, chunk or few, chosen, may_shrink=chunk is None)

        bar.say("running")
        begin = time.perf_counter()
        with chunks.memory_error(program.box):
            whole = program.executable(*grid.values) if program.box == grid.shape else None
            labels = xr.Dataset(coords=grid.coordinates).coords  # made while the device works
            if whole is None:
                data = chunks.run(program, grid, grid.whole, finished=bar.advance)
            else:
                data = jax.device_get(whole)
                bar.advance(grid.size)
        seconds = time.perf_counter() - begin

    return xr.Dataset(
        {name: (dims, output) for (name, dims), output in zip(grid.dims.items(), data, strict=True)},
        coords=labels,
        attrs={
            "point": f"{getattr(point, '__module__', '')}.{getattr(point, '__qualname__', repr(point))}",
            "resonance_jax": __version__,
            "jax": jax.__version__,
            "device": f"{len(chosen)} x {chosen[0].device_kind} ({chosen[0].platform})",
            "dtype": str(jnp.result_type(float)),
            "chunk_shape": list(program.box),
            "num_chunks": len(chunks.places(grid.whole, program.box)),
            "peak_bytes": float(program.peak_bytes),
            "compile_seconds": round(program.take_compile_seconds(), 3),
            "run_seconds": round(seconds, 6),
        },
    )
