"""A grid of cells, cut into chunks of fixed shape, each a run of one compiled program.

The point is traced once, to the program of a single cell. `vmap`, one axis after another, makes a box of it, so what
does not depend on an axis is computed once along it: the draws of a seed are shared by all its cells.
"""

import contextlib
import functools
import hashlib
import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import ArrayLike

from resonance_jax import checks
from resonance_jax.engine.axes import Device, Point, check_axes, working_dtype
from resonance_jax.engine.memory import free_memory

MEMORY_SHARE = 0.5  # of what the device has free, for one chunk

Shape = tuple[int, ...]
Place = tuple[slice, ...]  # of a chunk in its grid


# One cell


class Cell(NamedTuple):
    """The traced program of one cell."""

    arguments: tuple[tuple[str, Any], ...]  # name and dtype, in the order of the axes
    program: Callable[..., list[Any]]  # scalars -> outputs
    outputs: dict[str, jax.ShapeDtypeStruct]
    ranges: list[tuple[str, checks.Range]]  # what the point's parts expect of its arguments

    def __hash__(self) -> int:
        return id(self.program)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.program is other.program


@functools.lru_cache(maxsize=64)
def _trace(point: Point, arguments: tuple[tuple[str, Any], ...], precision: Any) -> Cell:
    """Trace the point once, on scalars. Everything later works on the traced program, whatever the shape of the grid.

    The working precision is part of the key: another one is another program.
    """

    def checked(**scalars: Any) -> dict[str, Any]:
        with checks.watching(scalars) as found:
            outputs = point(**scalars)
        ranges.extend(found)
        if not isinstance(outputs, dict) or not outputs:
            raise ValueError(f"point must return a dict of arrays, got {outputs!r}; return e.g. {{'loss': loss}}")
        outputs = {name: each for parts in map(_parts, outputs.items()) for name, each in parts.items()}
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

    return Cell(arguments, program, dict(sorted(outputs.items())), ranges)


def _parts(output: tuple[Any, Any]) -> dict[Any, Any]:
    """A named tuple as one output for each field: the first under the name itself, the others behind it."""
    name, value = output
    fields = getattr(value, "_fields", ())
    return {name if i == 0 else f"{name}_{field}": value[i] for i, field in enumerate(fields)} or {name: value}


@functools.lru_cache(maxsize=64)
def digest(cell: Cell) -> str:
    """SHA-256 of what a cell computes, the same in every process and on every device.

    Of the program as it is lowered for one cell on a CPU: it changes with the point, with all that it calls, and with
    the constants it closes over, and not with a comment.
    """
    scalars = [jax.ShapeDtypeStruct((), dtype) for _, dtype in cell.arguments]
    text = jax.jit(cell.program).trace(*scalars).lower(lowering_platforms=("cpu",)).as_text()
    return hashlib.sha256(text.encode()).hexdigest()


# All cells


class Grid(NamedTuple):
    """A point on the product of its axes, traced and checked, nothing compiled yet."""

    coordinates: dict[str, np.ndarray]  # as the user gave them
    values: list[np.ndarray]  # the same in the working precision
    shape: Shape
    cell: Cell
    dims: dict[str, tuple[str, ...]]  # of each output, the axes first

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def whole(self) -> Place:
        return tuple(slice(0, n) for n in self.shape)


def prepare(point: Point, axes: Mapping[str, ArrayLike]) -> Grid:
    """ValueError unless the axes fit the point and the ranges of its parts, and the point returns a dict of arrays."""
    coordinates = check_axes(point, axes)
    values = {name: working_dtype(value) for name, value in coordinates.items()}
    arguments = tuple((name, value.dtype) for name, value in values.items())
    cell = _trace(point, arguments, jnp.result_type(float))
    for name, expected in cell.ranges:
        expected.check(coordinates[name])
    own = {name: tuple(f"{name}_{i}" for i in range(len(out.shape))) for name, out in cell.outputs.items()}
    clash = (set(cell.outputs) & set(axes)) | ({d for each in own.values() for d in each} & {*axes, *cell.outputs})
    if clash:
        raise ValueError(f"outputs, their dimensions and axes share the names {sorted(clash)}; rename the outputs")
    dims = {name: (*coordinates, *each) for name, each in own.items()}
    return Grid(coordinates, list(values.values()), tuple(len(value) for value in values.values()), cell, dims)


# Chunks


class Program:
    """A compiled chunk: a box of cells on some devices."""

    def __init__(self, executable: Any, box: Shape, seconds: float) -> None:
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


def box_of(shape: Shape, limit: int) -> Shape:
    """Shape of a chunk of at most `limit` cells: last axes whole, one cut into equal parts, the first ones singly."""
    box: list[int] = []
    room = limit
    for n in reversed(shape):
        parts = math.ceil(n / max(1, min(n, room)))
        box.insert(0, math.ceil(n / parts))
        room //= box[0]
    return tuple(box)


def split_evenly(box: Shape, num_devices: int) -> Shape:
    """The box with its longest side rounded up to a multiple of the devices, which share it."""
    longest = _split_axis(box)
    return tuple(-(-n // num_devices) * num_devices if i == longest else n for i, n in enumerate(box))


def halved(box: Shape) -> Shape:
    """The box with half of its longest side."""
    longest = _split_axis(box)
    return tuple(-(-n // 2) if i == longest else n for i, n in enumerate(box))


def _split_axis(box: Sequence[int]) -> int:
    return max(range(len(box)), key=lambda i: box[i])


def compile_to_fit(grid: Grid, limit: int, devices: tuple[Device, ...], *, may_shrink: bool) -> tuple[Shape, Program]:
    """Compile chunks of at most `limit` cells, fewer where the memory asks for it.

    Returns:
        The shape of a chunk, and the program, whose box is that shape rounded up to a multiple of the devices.
    """
    programs: dict[Shape, Program] = {}

    def share(whole: Shape) -> float:
        programs[whole] = compile_box(grid.cell, whole, devices)
        budget = free_memory(devices[0]) * MEMORY_SHARE
        return programs[whole].peak_bytes / budget if budget > 0 else math.inf

    if may_shrink:
        box = box_that_fits(grid.shape, limit, len(devices), share)
    else:
        box = box_of(grid.shape, limit)
        share(split_evenly(box, len(devices)))
    return box, programs[split_evenly(box, len(devices))]


def box_that_fits(shape: Shape, limit: int, num_devices: int, share: Callable[[Shape], float]) -> Shape:
    """Shape of a chunk of at most `limit` cells that fits into the memory; fewer cells from each trial to the next.

    The smallest chunk has one cell for each device. It is tried even if it takes more than its budget, which is only a
    part of the memory and held against an estimate.

    Args:
        shape: of the grid.
        limit: most cells.
        num_devices: that share a chunk, so that it is rounded up to a multiple of them.
        share: box, rounded up -> the part of the budget that it takes; MemoryError where it cannot even be compiled.

    Raises:
        MemoryError: the smallest chunk cannot be compiled.
    """

    def cells_of(limit: int) -> int:
        return math.prod(split_evenly(box_of(shape, limit), num_devices))

    while True:
        box = box_of(shape, limit)
        cells = cells_of(limit)
        try:
            taken = share(split_evenly(box, num_devices))
            wanted = int(0.8 * cells / taken) if taken > 1 else cells
        except MemoryError as error:  # compilers try kernels out
            if cells <= num_devices:
                raise MemoryError(
                    f"one cell for each of {num_devices} devices does not fit into the memory; take fewer devices, "
                    "smaller arrays in the point, or a device with more memory"
                ) from error
            taken, wanted = math.inf, cells
        if taken <= 1 or cells <= num_devices:
            return box
        limit = max(1, min(cells // 2, wanted))
        while cells_of(limit) >= cells:  # rounded up to what it was
            limit //= 2


@functools.lru_cache(maxsize=64)
def compile_box(cell: Cell, box: Shape, devices: tuple[Device, ...]) -> Program:
    """The only `jit` of the engine: nested `vmap` over the box, split over the devices along its longest side."""
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
    with memory_error(box):
        executable = jax.jit(grid).lower(*arguments).compile()
    return Program(executable, box, time.perf_counter() - begin)


@contextlib.contextmanager
def memory_error(box: Shape) -> Iterator[None]:
    """What a device says when its memory is too small, as Python says it."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error) and "out of memory" not in str(error).lower():
            raise
        raise MemoryError(
            f"{math.prod(box)} cells at a time do not fit into the memory; take smaller chunks"
        ) from error


def places(whole: Place, box: Shape) -> list[Place]:
    """The boxes that cover a place, cut off at its end."""
    sides = (range(s.start, s.stop, b) for s, b in zip(whole, box, strict=True))
    return [
        tuple(slice(c, min(c + b, s.stop)) for c, b, s in zip(corner, box, whole, strict=True))
        for corner in itertools.product(*sides)
    ]


def shape_of(place: Place) -> Shape:
    return tuple(s.stop - s.start for s in place)


def run(
    program: Program,
    grid: Grid,
    whole: Place,
    *,
    finished: Callable[[int], None] = lambda cells: None,
) -> list[np.ndarray]:
    """The outputs of all cells of a place, box after box, the last ones padded.

    `finished` is told the number of cells after each box.
    """
    data = [np.empty(shape_of(whole) + out.shape, out.dtype) for out in grid.cell.outputs.values()]
    for place in places(whole, program.box):
        sides = shape_of(place)
        padded = [
            np.pad(value[s], (0, b - side), mode="edge")
            for value, s, side, b in zip(grid.values, place, sides, program.box, strict=True)
        ]
        with memory_error(program.box):
            outputs = jax.device_get(program.executable(*padded))
        inside = tuple(slice(s.start - w.start, s.stop - w.start) for s, w in zip(place, whole, strict=True))
        for array, output in zip(data, outputs, strict=True):
            array[inside] = output[tuple(slice(side) for side in sides)]
        finished(math.prod(sides))
    return data
