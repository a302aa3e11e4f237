"""What a job would take, before it runs."""

import math
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from resonance_jax.engine import memory
from resonance_jax.engine.devices import Device, name_of
from resonance_jax.engine.grid import Grid
from resonance_jax.engine.shapes import Shape
from resonance_jax.jobs.halving import Chunks
from resonance_jax.jobs.job import chosen_shape
from resonance_jax.jobs.shards import ALL, Shard
from resonance_jax.jobs.store import Store
from resonance_jax.runs.divergence import says_diverged

PROBE_SECONDS = 10.0  # after that a plan starts no further chunk


class Plan(NamedTuple):
    """What a job would take, estimated by running a few of its chunks."""

    cells: int  # of the shard
    chunks: int  # of the shard
    chunk_shape: Shape
    chunk_seconds: float  # computing and storing
    compile_seconds: float
    device: str
    device_bytes: int  # of one chunk on one device, as the compiler reports
    peak_device_bytes: int | None  # measured; None if the device does not report it
    peak_host_bytes: int  # of this process, measured
    disk_bytes: int  # before compression


def plan(grid: Grid, *, devices: tuple[Device, ...], shard: Shard = ALL, chunk: int | None = None) -> Plan:
    """Compile, then run the first, the last and the middle chunk, for about ten seconds; nothing is kept."""
    shape = chosen_shape(grid, chunk, devices)
    chunks = Chunks(grid, shape, devices)
    took: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(Path(folder) / "probe.zarr", grid, shape, {})
        mine = shard.chunks(store.num_chunks)
        if not mine:
            raise ValueError(
                f"shard {shard.number}/{shard.of} has none of the {store.num_chunks} chunks; take fewer shards"
            )
        for number in mine:
            chunks.compile(store.index(number))
        for number in dict.fromkeys((mine[0], mine[-1], mine[len(mine) // 2])):
            begin = time.perf_counter()
            outputs = chunks.compute(store.index(number))
            store.write(number, dict(zip(grid.outputs, outputs, strict=True)), says_diverged)
            took.append(time.perf_counter() - begin)
            if sum(took) > PROBE_SECONDS:
                break
        cells = sum(store.cells(number) for number in mine)
    per_cell = 1 + sum(out.dtype.itemsize * math.prod(out.shape) for out in grid.outputs.values())
    return Plan(
        cells=cells,
        chunks=len(mine),
        chunk_shape=shape,
        chunk_seconds=sum(took) / len(took),
        compile_seconds=sum(program.seconds for program in chunks.compiled),
        device=name_of(devices),
        device_bytes=max(program.peak_bytes for program in chunks.compiled),
        peak_device_bytes=memory.peak_of_device(devices[0]),
        peak_host_bytes=memory.peak_of_process(),
        disk_bytes=cells * per_cell,
    )
