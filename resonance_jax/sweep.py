"""The engine: a sweep is `vmap` with labels.

The point is traced once, to the program of a single cell. `vmap`, one axis after another, makes the grid of it, so
what does not depend on an axis is computed once along it: the draws of a seed are shared by all its cells. One `jit`
compiles a chunk of the grid, a box of fixed shape; a grid that does not fit runs chunk after chunk, the last ones
padded.
"""

import functools
import itertools
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.extend.core import jaxpr_as_fun
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import ArrayLike

from resonance_jax import checks
from resonance_jax._version import __version__
from resonance_jax.axes import Device, Point, check_axes, check_devices, working_dtype
from resonance_jax.progress import Bar

PROGRESS_CHUNKS = 10  # a bar with fewer stops tells little
MEMORY_SHARE = 0.5  # of what the device has, for one chunk


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
        A cell depends on its own coordinates only. A second call with other values, as many of them, does not compile:
        the traced point is remembered, and with it the globals and attributes it read then. Define it anew, as running
        its `def` again does, to have changes seen.

    Raises:
        ValueError: axes that do not fit the point, or a point that does not return a dict of arrays; before anything is
            compiled.

    >>> square = sweep(lambda x, y: {"product": x * y}, {"x": [1.0, 2.0], "y": [3.0, 4.0, 5.0]})
    >>> square.product.sel(x=2.0).values.tolist()
    [6.0, 8.0, 10.0]
    """
    coordinates = check_axes(point, axes)
    chosen = check_devices(devices)
    if chunk is not None and (not isinstance(chunk, int | np.integer) or isinstance(chunk, bool) or chunk < 1):
        raise ValueError(
            f"chunk must be a whole number of cells, at least 1, got {chunk!r}; leave it out to have it chosen"
        )

    values = {name: working_dtype(value) for name, value in coordinates.items()}
    shape = tuple(len(value) for value in values.values())
    with Bar(math.prod(shape), progress) as bar:
        bar.say("compiling")
        arguments = tuple((name, value.dtype) for name, value in values.items())
        cell = _trace(point, arguments, jnp.result_type(float))
        for name, expected in cell.ranges:
            expected.check(coordinates[name])
        dims = {name: tuple(f"{name}_{i}" for i in range(len(out.shape))) for name, out in cell.outputs.items()}
        clash = (set(cell.outputs) & set(axes)) | ({d for each in dims.values() for d in each} & {*axes, *cell.outputs})
        if clash:
            raise ValueError(f"outputs, their dimensions and axes share the names {sorted(clash)}; rename the outputs")
        few = math.ceil(math.prod(shape) / (PROGRESS_CHUNKS if progress else 1))
        program = _compile_to_fit(cell, shape, chunk or few, chosen, may_shrink=chunk is None)

        bar.say("running")
        begin = time.perf_counter()
        whole = program.executable(*values.values()) if program.box == shape else None
        labels = xr.Dataset(coords=coordinates).coords  # made while the device works
        if whole is None:
            data = _run(program, list(values.values()), shape, cell, bar)
        else:
            data = jax.device_get(whole)
            bar.advance(math.prod(shape))
        seconds = time.perf_counter() - begin

    return xr.Dataset(
        {name: ((*axes, *dims[name]), output) for name, output in zip(cell.outputs, data, strict=True)},
        coords=labels,
        attrs={
            "point": f"{getattr(point, '__module__', '')}.{getattr(point, '__qualname__', repr(point))}",
            "resonance_jax": __version__,
            "jax": jax.__version__,
            "device": f"{len(chosen)} x {chosen[0].device_kind} ({chosen[0].platform})",
            "dtype": str(jnp.result_type(float)),
            "chunk_shape": list(program.box),
            "num_chunks": math.prod(-(-n // b) for n, b in zip(shape, program.box, strict=True)),
            "peak_bytes": float(program.peak_bytes),
            "compile_seconds": round(program.take_compile_seconds(), 3),
            "run_seconds": round(seconds, 6),
        },
    )


# One cell


class _Cell(NamedTuple):
    """The traced program of one cell."""

    arguments: tuple[tuple[str, Any], ...]  # name and dtype, in the order of the axes
    program: Callable[..., list[Any]]  # scalars -> outputs
    outputs: dict[str, jax.ShapeDtypeStruct]
    ranges: list[tuple[str, checks.Range]]  # what the point's parts expect of its arguments

    def __hash__(self) -> int:
        return id(self.program)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Cell) and self.program is other.program


@functools.lru_cache(maxsize=64)
def _trace(point: Point, arguments: tuple[tuple[str, Any], ...], precision: Any) -> _Cell:
    """Trace the point once, on scalars. Everything later works on the traced program, whatever the shape of the grid.

    The working precision is part of the key: another one is another program.
    """

    def checked(**scalars: Any) -> dict[str, Any]:
        with checks.watching(scalars) as found:
            outputs = point(**scalars)
        ranges.extend(found)
        if not isinstance(outputs, dict) or not outputs:
            raise ValueError(f"point must return a dict of arrays, got {outputs!r}; return e.g. {{'loss': loss}}")
        for name, output in outputs.items():
            if not isinstance(name, str) or not isinstance(output, jax.Array | np.ndarray | np.generic | int | float):
                raise ValueError(
                    f"point must return a dict of arrays, got {type(output).__name__} under {name!r}; "
                    "return scalars or arrays of fixed shape under string names"
                )
        return {name: jnp.asarray(output) for name, output in outputs.items()}

    ranges: list[tuple[str, checks.Range]] = []
    scalars = {name: jax.ShapeDtypeStruct((), dtype) for name, dtype in arguments}
    try:
        jaxpr, outputs = jax.make_jaxpr(checked, return_shape=True)(**scalars)
    except jax.errors.ConcretizationTypeError as error:
        raise ValueError(
            "a value of an axis is needed as a plain number: in an `if`, as a shape, or as a hyperparameter that its "
            f"optimizer cannot trace. The axes are {', '.join(scalars)}. Use jnp.where, or take it off the axes and "
            f"sweep once for each of its values. JAX says: {str(error).splitlines()[0]}"
        ) from error
    run = jaxpr_as_fun(jaxpr)
    in_order = sorted(scalars)  # the traced program takes its arguments, as it gives its outputs, by sorted name

    def program(*values: Any) -> list[Any]:
        by_name = dict(zip(scalars, values, strict=True))
        return run(*(by_name[name] for name in in_order))

    return _Cell(arguments, program, dict(sorted(outputs.items())), ranges)


# Chunks


class _Program:
    """A compiled chunk: a box of cells on some devices."""

    def __init__(self, executable: Any, box: tuple[int, ...], seconds: float) -> None:
        self.executable = executable
        self.box = box
        self.seconds = seconds

    def take_compile_seconds(self) -> float:
        """What compiling took, to the first who asks: a later sweep with the same program did not compile."""
        seconds, self.seconds = self.seconds, 0.0
        return seconds

    @functools.cached_property
    def peak_bytes(self) -> int:
        """Memory of one run on one device, by the compiler's own account."""
        stats = self.executable.memory_analysis()
        return stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes if stats else 0


def _compile_to_fit(
    cell: _Cell, shape: tuple[int, ...], limit: int, devices: tuple[Device, ...], may_shrink: bool
) -> _Program:
    """Compile chunks of at most `limit` cells, fewer where the memory asks for it."""
    while True:
        program = _compile(cell, _box(shape, limit, len(devices)), devices)
        budget = _memory(devices[0]) * MEMORY_SHARE
        if not may_shrink or program.peak_bytes <= budget:
            return program
        cells = math.prod(program.box)
        limit = max(1, min(cells // 2, int(0.8 * cells * budget / program.peak_bytes)))
        if math.prod(_box(shape, limit, len(devices))) >= cells:  # one cell on each device, and no way to go below
            return program


def _box(shape: tuple[int, ...], limit: int, num_devices: int) -> tuple[int, ...]:
    """Shape of a chunk of at most `limit` cells: last axes whole, one cut into equal parts, the first ones singly.

    On several devices the longest side is rounded up to a multiple of their number.
    """
    box: list[int] = []
    room = limit
    for n in reversed(shape):
        parts = math.ceil(n / max(1, min(n, room)))
        box.insert(0, math.ceil(n / parts))
        room //= box[0]
    if num_devices > 1:
        longest = _split_axis(box)
        box[longest] = math.ceil(box[longest] / num_devices) * num_devices
    return tuple(box)


def _split_axis(box: Sequence[int]) -> int:
    return max(range(len(box)), key=lambda i: box[i])


def _memory(device: Device) -> float:
    """Bytes a device can still give; for the host, its physical memory shared by its devices."""
    stats = device.memory_stats()
    if stats and "bytes_limit" in stats:
        return stats["bytes_limit"] - stats.get("bytes_in_use", 0)
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / jax.local_device_count()
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return 4 * 2**30


@functools.lru_cache(maxsize=64)
def _compile(cell: _Cell, box: tuple[int, ...], devices: tuple[Device, ...]) -> _Program:
    """The only `jit` of the package: nested `vmap` over the box, split over the devices along its longest side."""
    grid = cell.program
    rank = len(box)
    for i in reversed(range(rank)):
        grid = jax.vmap(grid, in_axes=tuple(0 if j == i else None for j in range(rank)))

    # An explicit split: each device runs its part with no word to the others, where automatic sharding may choose else.
    mesh = Mesh(np.array(devices), ("devices",))
    split = _split_axis(box)
    in_specs = tuple(PartitionSpec("devices") if i == split else PartitionSpec() for i in range(rank))
    out_spec = PartitionSpec(*("devices" if i == split else None for i in range(rank)))
    if len(devices) > 1:
        grid = jax.shard_map(grid, mesh=mesh, in_specs=in_specs, out_specs=out_spec, check_vma=False)

    arguments = [
        jax.ShapeDtypeStruct((side,), dtype, sharding=NamedSharding(mesh, spec))
        for side, (_, dtype), spec in zip(box, cell.arguments, in_specs, strict=True)
    ]
    begin = time.perf_counter()
    executable = jax.jit(grid).lower(*arguments).compile()
    return _Program(executable, box, time.perf_counter() - begin)


def _run(
    program: _Program, values: list[np.ndarray], shape: tuple[int, ...], cell: _Cell, bar: Bar
) -> list[np.ndarray]:
    """Run chunk after chunk and put each into its place."""
    data = [np.empty(shape + out.shape, out.dtype) for out in cell.outputs.values()]
    corners = list(itertools.product(*(range(0, n, b) for n, b in zip(shape, program.box, strict=True))))
    for corner in corners:
        place = tuple(slice(c, min(c + b, n)) for c, b, n in zip(corner, program.box, shape, strict=True))
        sides = [s.stop - s.start for s in place]
        padded = [
            np.pad(value[s], (0, b - side), mode="edge")
            for value, s, side, b in zip(values, place, sides, program.box, strict=True)
        ]
        outputs = jax.device_get(program.executable(*padded))
        for whole, output in zip(data, outputs, strict=True):
            whole[place] = output[tuple(slice(side) for side in sides)]
        bar.advance(math.prod(sides))
    return data
