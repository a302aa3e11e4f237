"""What a batch job adds to its chunks: storing, checksums, progress. Chunks take a second or more, on either device."""

import contextlib
import math
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks import first_heatmap
from benchmarks._measure import Form, current_platform
from resonance_jax.engine import chunks
from resonance_jax.jobs import job
from resonance_jax.jobs.store import load

NAME = "batch job, three chunks"
NUM_CHUNKS = 3
NUM_STEPS = {"tiny": (1000, 1000), "quick": (40_000, 12_000_000), "paper": (40_000, 12_000_000)}  # on a CPU, on a GPU


def forms(scale: str) -> list[Form]:
    """The heatmap with longer runs: its chunks one after another, and as a job."""
    num_steps = NUM_STEPS[scale][current_platform() == "gpu"]
    axes = first_heatmap.axes("tiny" if scale == "tiny" else "paper")
    devices = tuple(jax.local_devices())
    point = first_heatmap.oscillated(num_steps)

    def prepare() -> tuple[chunks.Grid, chunks.Shape, chunks.Program]:
        grid = chunks.prepare(point, axes)
        return grid, *chunks.compile_to_fit(grid, math.ceil(grid.size / NUM_CHUNKS), devices, may_shrink=False)

    def alone() -> Callable[[], Any]:
        grid, box, program = prepare()
        return lambda: np.concatenate(
            [chunks.run(program, grid, place)[0].ravel() for place in chunks.places(grid.whole, box)]
        )

    def as_job() -> Callable[[], Any]:
        grid, *_ = prepare()
        return lambda: _job(grid, devices)

    steps = f"{num_steps:,} steps"  # so many that a chunk takes seconds: other work on another device
    return [Form(f"{steps}, chunks alone", alone), Form(f"{steps}, as a job", as_job)]


def _job(grid: chunks.Grid, devices: tuple[Any, ...]) -> Any:
    with tempfile.TemporaryDirectory() as folder, _quiet():
        out = Path(folder) / "job.zarr"
        job.run(grid, out, devices=devices, chunk=math.ceil(grid.size / NUM_CHUNKS))
        return load(out)[next(iter(grid.cell.outputs))].values


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield
