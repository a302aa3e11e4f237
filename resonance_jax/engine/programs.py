"""Chunks of cells as compiled programs of a fixed shape, and running them.

`vmap`, one dimension after another, makes a chunk of a traced cell, so what does not depend on a dimension is computed
once along it: the draws of a seed are shared by all its cells.
"""

import functools
import math
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from resonance_jax.engine.cell import Cell
from resonance_jax.engine.devices import Device
from resonance_jax.engine.executables import compiled
from resonance_jax.engine.grid import Grid
from resonance_jax.engine.memory import free_memory, memory_error
from resonance_jax.engine.shapes import (
    Index,
    Shape,
    chunk_shape,
    chunks_of,
    longest_side,
    padded,
    shape_of,
    shape_that_fits,
)

MEMORY_SHARE = 0.5  # of what the device has free, for one chunk


class Program:
    """A compiled chunk, on some devices; its shape has no static dimensions.

    Args:
        executable: large arrays and numbers -> outputs.
        shape: of the chunk.
        seconds: that compiling took.
        arrays: the large arrays, on the devices already.
    """

    def __init__(
        self, executable: Callable[..., list[Any]], shape: Shape, seconds: float, arrays: Sequence[jax.Array] = ()
    ) -> None:
        self.executable = executable
        self.shape = shape
        self.seconds = seconds
        self.arrays = arrays

    def __call__(self, *numbers: Any) -> list[Any]:
        """Begin to compute the cells of these numbers."""
        return self.executable(*self.arrays, *numbers)

    def take_compile_seconds(self) -> float:
        """What compiling took, to the first who asks: a later sweep with the same program did not compile."""
        seconds, self.seconds = self.seconds, 0.0
        return seconds

    @functools.cached_property
    def peak_bytes(self) -> int:
        """Memory of one run on one device, by the compiler's own account."""
        stats: Any = self.executable.memory_analysis()  # pyright: ignore[reportFunctionMemberAccess]
        return stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes if stats else 0

    @property
    def working_bytes(self) -> int:
        """Memory that a run adds to what its device holds already, the large arrays."""
        return self.peak_bytes - sum(array.nbytes for array in self.arrays)


Programs = dict[tuple[int, ...], Program]  # position along the static dimensions -> the program there


def compile_to_fit(
    grid: Grid, limit: int, devices: tuple[Device, ...], *, may_shrink: bool, at_once: int = 1
) -> tuple[Shape, Programs]:
    """Compile chunks of at most `limit` cells, fewer where the memory for so many chunks at once asks for it.

    Returns:
        The shape of a chunk in the grid, and the programs, whose shape is rounded up to a multiple of the devices.
    """
    programs: dict[Shape, Programs] = {}

    def share(shape: Shape) -> float:
        programs[shape] = {key: compile_chunk(cell, grid.mapped, shape, devices) for key, cell in grid.cells.items()}
        budget = free_memory(devices[0]) * MEMORY_SHARE / at_once
        return max(each.working_bytes for each in programs[shape].values()) / budget if budget > 0 else math.inf

    if may_shrink:
        shape = shape_that_fits(grid.inner(grid.shape), limit, len(devices), share)
    else:
        shape = chunk_shape(grid.inner(grid.shape), limit)
        share(padded(shape, len(devices)))
    return grid.outer(shape), programs[padded(shape, len(devices))]


@functools.lru_cache(maxsize=256)
def compile_chunk(cell: Cell, mapped: tuple[int | None, ...], shape: Shape, devices: tuple[Device, ...]) -> Program:
    """The only `jit` of the engine: nested `vmap` over the shape, split over the devices along its longest side.

    Args:
        cell: the traced point.
        mapped: for each of its arguments the dimension it varies along; None for one number for the whole chunk.
        shape: of the chunk, its longest side a multiple of the devices.
        devices: that share it.
    """
    num_arrays = len(cell.arrays)
    chunk = cell.program
    for i in reversed(range(len(shape))):
        chunk = jax.vmap(chunk, in_axes=(None,) * num_arrays + tuple(0 if dim == i else None for dim in mapped))

    # An explicit split: each device runs its part with no word to the others, where automatic sharding may choose else.
    split = longest_side(shape)
    mesh = Mesh(np.array(devices if shape else devices[:1]), ("devices",))
    in_specs = tuple(PartitionSpec("devices") if dim == split else PartitionSpec() for dim in mapped)
    out_spec = PartitionSpec(*("devices" if i == split else None for i in range(len(shape))))
    whole = PartitionSpec()  # large arrays are not split: each device has a copy
    if mesh.size > 1:
        specs = (whole,) * num_arrays + in_specs
        chunk = jax.shard_map(chunk, mesh=mesh, in_specs=specs, out_specs=out_spec, check_vma=False)

    numbers = [
        jax.ShapeDtypeStruct(() if dim is None else (shape[dim],), dtype, sharding=NamedSharding(mesh, spec))
        for dim, (_, dtype), spec in zip(mapped, cell.arguments, in_specs, strict=True)
    ]
    begin = time.perf_counter()
    # First the arrays, then the compiler, and then the measure of what memory is left.
    arrays = [array.on(NamedSharding(mesh, whole)) for array in cell.arrays]
    with memory_error(_too_many(shape)):
        # Said of the outputs as well, for a point that has static arguments alone.
        jitted = jax.jit(chunk, out_shardings=NamedSharding(mesh, out_spec))
        lowered = jitted.lower(*arrays, *numbers)
        what = f"{math.prod(shape)} cells of a sweep" if shape else "a sweep"
        executable, _ = compiled(lowered, constants=cell.constants, devices=mesh.devices.ravel().tolist(), what=what)
    return Program(executable, shape, time.perf_counter() - begin, arrays)


def _too_many(shape: Shape) -> str:
    return f"{math.prod(shape)} cells at a time do not fit into the memory; take smaller chunks"


def start(program: Program, grid: Grid, index: Index) -> list[Any]:
    """Begin to compute the cells of an index that lie within one program, padded to its shape."""
    arguments = []
    for values, dim, mapped in grid.numbers:
        part = values[index[dim]]
        short = 0 if mapped is None else program.shape[mapped] - len(part)
        arguments.append(part[0] if mapped is None else np.pad(part, (0, short), mode="edge") if short else part)
    with memory_error(_too_many(program.shape)):
        return program(*arguments)


def finish(program: Program, grid: Grid, index: Index, started: list[Any]) -> list[np.ndarray]:
    """Wait for what was begun; the outputs in the shape of the index, without the padding."""
    with memory_error(_too_many(program.shape)):
        outputs = jax.device_get(started)
    inside = tuple(slice(side) for side in shape_of(grid.inner(index)))
    return [output[inside].reshape(shape_of(index) + output.shape[len(inside) :]) for output in outputs]


def launch(
    compiled: Programs, grid: Grid, chunks: Sequence[Index], at_once: int
) -> Generator[Callable[[], list[np.ndarray]], None, None]:
    """Begin to compute chunk after chunk, some of them at once, each by a thread.

    Yields:
        For each chunk, in order, a function that waits for its outputs.
    """
    if at_once == 1:
        for index in chunks:
            program = compiled[grid.key(index)]
            yield functools.partial(finish, program, grid, index, start(program, grid, index))
        return
    precision = bool(jax.config.jax_enable_x64)  # pyright: ignore[reportAttributeAccessIssue]  of this thread

    def compute(index: Index) -> list[np.ndarray]:
        program = compiled[grid.key(index)]
        with jax.enable_x64(precision):
            return finish(program, grid, index, start(program, grid, index))

    with ThreadPoolExecutor(at_once) as pool:
        futures = [pool.submit(compute, index) for index in chunks]
        try:
            for future in futures:
                yield future.result
        finally:
            pool.shutdown(cancel_futures=True)


def run(program: Program, grid: Grid, index: Index) -> list[np.ndarray]:
    """The outputs of all cells of an index with one position along the static dimensions, part after part."""
    parts = chunks_of(index, grid.outer(program.shape))
    if len(parts) == 1:
        return finish(program, grid, index, start(program, grid, index))
    data = empty(grid, index)
    for part in parts:
        inside = tuple(slice(p.start - s.start, p.stop - s.start) for p, s in zip(part, index, strict=True))
        for array, output in zip(data, finish(program, grid, part, start(program, grid, part)), strict=True):
            array[inside] = output
    return data


def empty(grid: Grid, index: Index) -> list[np.ndarray]:
    """Room for the outputs of an index."""
    return [np.empty(shape_of(index) + out.shape, out.dtype) for out in grid.outputs.values()]
