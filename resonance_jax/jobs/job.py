"""A sweep as a batch job: it writes chunk after chunk into a store, and can be resumed from there.

Jobs that share a store do not communicate. Chunks are dealt out in turn, first to shards, then within a shard to the
processes of `jax.distributed`. The first job creates the store and fixes the shape of the chunks for all.
"""

import functools
import math
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from resonance_jax import checks
from resonance_jax.engine import programs
from resonance_jax.engine.devices import Device, name_of
from resonance_jax.engine.grid import Grid
from resonance_jax.engine.progress import Bar, Lines
from resonance_jax.engine.shapes import Shape
from resonance_jax.jobs import history
from resonance_jax.jobs.halving import Chunks
from resonance_jax.jobs.identity import check_same, identity, provenance
from resonance_jax.jobs.shards import ALL, Shard
from resonance_jax.jobs.stopping import Guard
from resonance_jax.jobs.store import Store
from resonance_jax.runs.divergence import says_diverged

NUM_CHUNKS = 20  # of a grid, more if the memory is small: a kill loses at most a twentieth of the work

Report = Callable[[int], Bar | Lines]  # number of cells -> what reports progress on them
SILENT = functools.partial(Bar, show=False)


class Outcome(NamedTuple):
    """What a job did."""

    store: Store
    chunks: int  # computed by this job
    kept: int  # chunks of its shard that were already in the store
    cells: int  # computed by this job
    seconds: float  # computing and storing, without compiling
    compile_seconds: float

    @property
    def complete(self) -> bool:
        """Whether all chunks of the store are finished, those of other jobs included."""
        return all(self.store.finished(number) for number in range(self.store.num_chunks))


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
    report: Report = SILENT,
    guard: Guard | None = None,
) -> Outcome:
    """Compute the chunks of a shard that the store does not have yet.

    Args:
        grid: from `engine.grid.prepare`.
        out: the store; created if it does not exist.
        devices: that share each chunk.
        source: text of the point, or of the file it is in, kept in the store.
        facts: further attributes to keep there, such as the scale.
        resume: go on with a store that has chunks of this shard. Finished ones stay, damaged ones are computed again.
        shard: which chunks this job computes.
        chunk: largest number of cells in a chunk, for a new store; None takes about twenty chunks that fit the memory.
        report: shows the progress, chunk by chunk; silent by default.
        guard: ends a script cleanly on a signal or at a deadline, see `stopping`.

    Raises:
        ValueError: the store belongs to another sweep (the message says what differs), another job is writing the same
            chunks, or it has chunks of this shard and `resume` is not given.
        MemoryError: a chunk does not fit into the memory, nor does half of it.
    """
    if chunk is not None:
        checks.at_least_one("chunk", chunk, "it counts cells; leave it out to have it chosen")
    attrs = identity(grid, source, devices) | dict(facts)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        store = Store.open(out)
    else:
        out.parent.mkdir(parents=True, exist_ok=True)  # an unwritable folder fails before compiling
        store = Store.create(out, grid, chosen_shape(grid, chunk, devices), attrs | provenance(devices))
    check_same(store, grid, attrs, chunk)

    mine = shard.chunks(store.num_chunks)
    token = history.new_token()
    with store.locked([*mine, token]) as has_locks:
        if not has_locks:
            print("this file system has no locks: make sure that no two jobs write the same shard", file=sys.stderr)
        if not resume and any(store.begun(number) for number in mine):
            raise ValueError(
                f"{out} has chunks of this sweep already; resume=True goes on with them, or give another store"
            )
        todo = [number for number in mine if store.read_status(number) is None]
        store.remove(todo)
        if not todo:
            return Outcome(store, 0, len(mine), 0, 0.0, 0.0)
        cells = sum(store.cells(number) for number in todo)
        entry = {"host": socket.gethostname(), "device": name_of(devices), "shard": list(shard), "chunks": len(todo)}
        with history.kept(store, token, entry) as ending:
            seconds, compile_seconds = _work_off(todo, store, grid, devices, report(cells), guard or Guard(), ending)
            ending("end", cells=cells, seconds=round(seconds, 3))
        return Outcome(store, len(todo), len(mine) - len(todo), cells, seconds, compile_seconds)


def _work_off(
    todo: list[int],
    store: Store,
    grid: Grid,
    devices: tuple[Device, ...],
    reporter: Bar | Lines,
    guard: Guard,  # one that was not entered does nothing
    ending: history.Ending,
) -> tuple[float, float]:
    """Compute and store chunk after chunk, and report each.

    Returns:
        Seconds of computing and storing, and of compiling.
    """
    chunks = Chunks(grid, store.chunk_shape, devices)
    done = 0
    with reporter:
        guard.farewell = lambda reason: _close(reporter, ending, reason)
        try:
            reporter.say("compiling")
            for number in todo:
                chunks.compile(store.index(number))
            reporter.say("running")
            begin = time.perf_counter()
            for done, number in enumerate(todo):
                guard.stop_unless_time_for((time.perf_counter() - begin) / done if done else 0)
                start = time.perf_counter()
                outputs = chunks.compute(store.index(number))
                with guard.writing:
                    store.write(number, dict(zip(grid.outputs, outputs, strict=True)), says_diverged)
                seconds = round(time.perf_counter() - start, 3)
                reporter.advance(store.cells(number), chunk=number, chunks=f"{done + 1}/{len(todo)}", seconds=seconds)
        except KeyboardInterrupt as error:
            error.add_note(
                f"{done} of {len(todo)} chunks were finished and are kept in {store.path}; the same call with "
                "resume=True goes on with the others."
            )
            raise
        return time.perf_counter() - begin, sum(program.take_compile_seconds() for program in chunks.compiled)


def _close(reporter: Bar | Lines, ending: history.Ending, reason: str) -> None:
    ending("stopped", reason=reason)
    reporter.say(f"stopped: {reason}")
    reporter.__exit__()


def chosen_shape(grid: Grid, chunk: int | None, devices: tuple[Device, ...]) -> Shape:
    """Shape of a chunk in the grid: at most `chunk` cells, or about a twentieth of the grid if that fits the memory."""
    if chunk is not None:
        return grid.chunk_shape(chunk)
    shape, _ = programs.compile_to_fit(grid, math.ceil(grid.size / NUM_CHUNKS), devices, may_shrink=True)
    return shape  # the compiled programs are cached
