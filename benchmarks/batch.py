"""What a store adds to a sweep: writing, checksums, reading back. Chunks take a second or more, on either device."""

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import resonance_jax as rj
from benchmarks import first_heatmap
from benchmarks._measure import Form, current_platform

NAME = "batch job, three chunks"
NUM_CHUNKS = 3
OUTPUT = "log10_distance"
NUM_STEPS = {"tiny": (1000, 1000), "quick": (40_000, 12_000_000), "paper": (40_000, 12_000_000)}  # on a CPU, on a GPU


def forms(scale: str) -> list[Form]:
    """The heatmap with longer runs: in chunks, in memory and as a job."""
    num_steps = NUM_STEPS[scale][current_platform() == "gpu"]
    axes = first_heatmap.axes("tiny" if scale == "tiny" else "paper")
    chunk = math.ceil(math.prod(map(len, axes.values())) / NUM_CHUNKS)
    point = first_heatmap.oscillated(num_steps)

    def alone() -> Callable[[], Any]:
        return lambda: rj.sweep(point, axes, chunk=chunk)[OUTPUT].values

    def as_job() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            return rj.sweep(point, axes, chunk=chunk, store=Path(folder) / "job.zarr")[OUTPUT].values

    steps = f"{num_steps:,} steps"  # enough for a chunk to take seconds, so the number depends on the device
    return [Form(f"{steps}, chunks alone", alone), Form(f"{steps}, as a job", lambda: as_job)]
