"""A sweep as a batch job: chunk after chunk into a store, from where it can be taken up again.

Jobs that share a store do not talk to each other. Chunks are dealt out in turn, to shards and within a shard to the
processes of `jax.distributed`; whoever comes first makes the store, and its chunks are those of all.
"""

import math
import socket
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from resonance_jax import checks
from resonance_jax.engine import chunks, memory
from resonance_jax.engine.axes import Device
from resonance_jax.engine.chunks import Grid, Program, Shape
from resonance_jax.engine.progress import Bar, Lines
from resonance_jax.jobs.identity import check_same, identity, name_of, now, provenance
from resonance_jax.jobs.stopping import Guard
from resonance_jax.jobs.store import Store

NUM_CHUNKS = 20  # of a grid, unless the memory asks for more: a kill costs a twentieth at most
PROBE_SECONDS = 10.0  # a plan starts no further chunk after that


class Shard(NamedTuple):
    """The part of one job, counted from 1."""

    number: int = 1
    of: int = 1

    def units(self, num_units: int) -> list[int]:
        """Every so many-th unit, so that costly regions are shared out; of these the part of this process."""
        return list(range(self.number - 1, num_units, self.of))[jax.process_index() :: jax.process_count()]


ALL = Shard()


class Outcome(NamedTuple):
    """What a job did."""

    store: Store
    chunks: int  # computed by this job
    kept: int  # of its chunks that were there already
    cells: int  # computed by this job
    seconds: float  # computing and storing, without compiling

    @property
    def complete(self) -> bool:
        """Whether the whole store is there, other jobs' parts included."""
        return all(self.store.finished(unit) for unit in range(self.store.num_units))


def run(
    grid: Grid,
    out: Path,
    *,
    devices: tuple[Device, ...],
    source: str = "",
    facts: Mapping[str, Any] = {},
    resume: bool = False,
    shard: Shard = ALL,
    chunk: int | None = None,
    guard: Guard | None = None,
) -> Outcome:
    """Compute the chunks of a shard that the store does not have yet.

    Args:
        grid: from `chunks.prepare`.
        out: the store; made if it is not there.
        devices: that share each chunk.
        source: text of the sweep file, kept in the store.
        facts: more to keep there, such as the scale.
        resume: go on with a store that has chunks of this shard. Whole ones stay, damaged ones are computed again.
        shard: the part of this job.
        chunk: largest number of cells in a chunk, for a new store; None takes about twenty chunks that fit the memory.
        guard: of a script that is to end in good order, see `stopping`.

    Raises:
        ValueError: a store of another sweep, with what differs; one that is being written, or has chunks of this shard
            and `resume` is not given; a chunk that does not fit into the memory even by halves.
    """
    if chunk is not None:
        checks.at_least_one("chunk", chunk, "it counts cells; leave it out to have it chosen")
    attrs = identity(grid, source, devices) | dict(facts)
    program = None
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        store = Store.open(out)
    else:
        out.parent.mkdir(parents=True, exist_ok=True)  # what cannot be written is found before compiling
        box, program = _box(grid, chunk, devices)
        store = Store.create(out, grid, box, attrs | provenance(devices))
    check_same(store, grid, attrs, chunk)

    mine = shard.units(store.num_units)
    with store.locked(mine) as has_locks:
        if not has_locks:
            print("this file system has no locks: see to it that no two jobs write the same shard", file=sys.stderr)
        if not resume and any(store.begun(unit) for unit in mine):
            raise ValueError(f"{out} has chunks of this sweep already; add --resume to go on, or give another --out")
        todo = [unit for unit in mine if store.read_status(unit) is None]
        store.remove(todo)
        return _work_off(todo, len(mine) - len(todo), store, program, grid, devices, shard, guard)


def _work_off(
    todo: list[int],
    kept: int,
    store: Store,
    program: Program | None,
    grid: Grid,
    devices: tuple[Device, ...],
    shard: Shard,
    guard: Guard | None,
) -> Outcome:
    """Compute and store chunk after chunk, and tell of it."""
    cells = sum(store.cells(unit) for unit in todo)
    entry = {"host": socket.gethostname(), "device": name_of(devices), "shard": list(shard), "chunks": len(todo)}
    if not todo:
        return Outcome(store, 0, kept, 0, 0.0)
    guard = guard or Guard()  # one that nobody entered watches nothing
    with _reporter(cells) as reporter:
        guard.farewell = lambda reason: _close(reporter, reason)
        store.log({"event": "start", "time": now(), **entry})
        reporter.say("compiling")
        box = chunks.split_evenly(store.box, len(devices))
        if program is None or program.box != box:
            program = _compile(grid, box, devices)
        reporter.say("running")
        begin = time.perf_counter()
        for done, unit in enumerate(todo):
            guard.stop_unless_time_for((time.perf_counter() - begin) / done if done else 0)
            start = time.perf_counter()
            program, outputs = _compute(program, grid, box, store.place(unit), devices)
            with guard.writing:
                store.write(unit, dict(zip(grid.cell.outputs, outputs, strict=True)))
            seconds = round(time.perf_counter() - start, 3)
            reporter.advance(store.cells(unit), chunk=unit, chunks=f"{done + 1}/{len(todo)}", seconds=seconds)
        seconds = time.perf_counter() - begin
        store.log({"event": "end", "time": now(), **entry, "cells": cells, "seconds": round(seconds, 3)})
        return Outcome(store, len(todo), kept, cells, seconds)


def _compile(grid: Grid, box: Shape, devices: tuple[Device, ...]) -> Program:
    """The program of a chunk, or of half of one where that does not fit into the memory."""
    try:
        return chunks.compile_box(grid.cell, box, devices)
    except MemoryError:
        return _compile_half(grid, box, devices)


def _compute(
    program: Program, grid: Grid, box: Shape, place: chunks.Place, devices: tuple[Device, ...]
) -> tuple[Program, list[np.ndarray]]:
    """The outputs of a chunk. Where it does not fit into the memory, it is tried once more in halves.

    Returns:
        The program that fits, for the next chunk, and the outputs.
    """
    try:
        return program, chunks.run(program, grid, place)
    except MemoryError:
        if program.box != box:  # a half already
            raise _too_large(box, devices) from None
    half = _compile_half(grid, box, devices)
    try:
        return half, chunks.run(half, grid, place)
    except MemoryError:
        raise _too_large(box, devices) from None


def _compile_half(grid: Grid, box: Shape, devices: tuple[Device, ...]) -> Program:
    try:
        return chunks.compile_box(grid.cell, chunks.split_evenly(chunks.halved(box), len(devices)), devices)
    except MemoryError:
        raise _too_large(box, devices) from None


def _too_large(box: Shape, devices: tuple[Device, ...]) -> ValueError:
    return ValueError(
        f"a chunk of {math.prod(box)} cells does not fit into the memory of {name_of(devices)}, nor does half of one; "
        f"start a new store with --chunk {max(1, math.prod(box) // 8)}"
    )


def _box(grid: Grid, chunk: int | None, devices: tuple[Device, ...]) -> tuple[Shape, Program | None]:
    """Shape of a chunk, and its program where the choice took compiling it."""
    if chunk is not None:
        return chunks.box_of(grid.shape, chunk), None
    return chunks.compile_to_fit(grid, math.ceil(grid.size / NUM_CHUNKS), devices, may_shrink=True)


def _reporter(cells: int) -> Bar | Lines:
    return Bar(cells, True) if sys.stdout.isatty() else Lines(cells)


def _close(reporter: Bar | Lines, reason: str) -> None:
    reporter.say(f"stopped: {reason}")
    reporter.__exit__()


# Before a job


class Plan(NamedTuple):
    """What a job would take, from a probe of a few of its chunks."""

    cells: int  # of the shard
    chunks: int  # of the shard
    chunk_shape: Shape
    chunk_seconds: float  # computing and storing
    compile_seconds: float
    device: str
    device_bytes: int  # of one chunk on one device, by the compiler's account
    peak_device_bytes: int | None  # measured, where the device keeps an account
    peak_host_bytes: int  # of this process, measured
    disk_bytes: int  # before compression


def plan(grid: Grid, *, devices: tuple[Device, ...], shard: Shard = ALL, chunk: int | None = None) -> Plan:
    """Compile, then run the first, the last and the middle chunk, as far as ten seconds go; nothing is kept."""
    box, program = _box(grid, chunk, devices)
    program = program or _compile(grid, chunks.split_evenly(box, len(devices)), devices)
    took: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(Path(folder) / "probe.zarr", grid, box, {})
        mine = shard.units(store.num_units)
        if not mine:
            raise ValueError(
                f"shard {shard.number}/{shard.of} has none of the {store.num_units} chunks; take fewer shards"
            )
        for unit in dict.fromkeys((mine[0], mine[-1], mine[len(mine) // 2])):
            begin = time.perf_counter()
            outputs = chunks.run(program, grid, store.place(unit))
            store.write(unit, dict(zip(grid.cell.outputs, outputs, strict=True)))
            took.append(time.perf_counter() - begin)
            if sum(took) > PROBE_SECONDS:
                break
        cells = sum(store.cells(unit) for unit in mine)
    per_cell = 1 + sum(out.dtype.itemsize * math.prod(out.shape) for out in grid.cell.outputs.values())
    return Plan(
        cells=cells,
        chunks=len(mine),
        chunk_shape=box,
        chunk_seconds=sum(took) / len(took),
        compile_seconds=program.seconds,
        device=name_of(devices),
        device_bytes=program.peak_bytes,
        peak_device_bytes=memory.peak_of_device(devices[0]),
        peak_host_bytes=memory.peak_of_process(),
        disk_bytes=cells * per_cell,
    )
