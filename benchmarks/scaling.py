"""How time and memory of `rj.sweep` of `rj.oscillate` grow with cells, steps, samples, inputs and seeds."""

import math
import statistics
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import resonance_jax as rj
from benchmarks._measure import duration, timed_calls
from benchmarks.first_heatmap import oscillated

TAIL = 100


class Size(NamedTuple):
    """One sweep; `cells` are those of one seed, a square number of them."""

    cells: int
    steps: int
    samples: int
    dim: int
    seeds: int


class Row(NamedTuple):
    """What a sweep took along one axis of its size."""

    axis: str
    value: int
    cells: int  # all, seeds included
    seconds: float  # median of warm calls
    compile_seconds: float
    peak_bytes: float  # on one device, as the compiler reports
    cells_per_second: float
    chunks: int  # more than one if the whole grid did not fit into the memory


BASE = {
    "tiny": Size(cells=16, steps=200, samples=2, dim=1, seeds=1),
    "quick": Size(cells=1_024, steps=1_000, samples=20, dim=1, seeds=1),
    "paper": Size(cells=10_000, steps=10_000, samples=20, dim=1, seeds=1),
}
CURVES = {
    "tiny": dict(cells=(16, 64), steps=(200, 400), samples=(1, 2), dim=(1, 2), seeds=(1, 2)),
    "quick": dict(
        cells=(64, 256, 1_024, 4_096, 16_384),
        steps=(1_000, 2_000, 5_000, 10_000),
        samples=(1, 5, 20, 100),
        dim=(1, 2, 3, 5, 9),
        seeds=(1, 3, 10, 30),
    ),
    "paper": dict(  # for an H200
        cells=(100, 1_024, 10_000, 102_400, 1_000_000),
        steps=(1_000, 3_000, 10_000, 30_000, 100_000),
        samples=(1, 3, 10, 30, 100),
        dim=(1, 2, 3, 5, 9),
        seeds=(1, 3, 10, 30, 100),
    ),
}


def rows(scale: str, repeats: int) -> Iterator[Row]:
    """One axis after another, the others at their base."""
    measured: dict[Size, Row] = {}  # the base lies on every curve and is measured once
    for axis, values in CURVES[scale].items():
        for value in values:
            size = BASE[scale]._replace(**{axis: value})
            if size not in measured:
                measured[size] = measure(size, repeats)
            yield measured[size]._replace(axis=axis, value=value)


def measure(size: Size, repeats: int) -> Row:
    """A sweep of one size; the axis is left open."""
    side = math.isqrt(size.cells)
    axes = {"f": np.linspace(0, 0.05, side), "seed": np.arange(size.seeds), "mu": np.linspace(0.95, 0.999, side)}
    point = oscillated(size.steps, samples=size.samples, dim=size.dim, tail=TAIL)
    ran = rj.sweep(point, axes).attrs
    seconds = statistics.median(timed_calls(lambda: rj.sweep(point, axes), repeats))
    cells = side * side * size.seeds
    return Row(
        axis="",
        value=0,
        cells=cells,
        seconds=seconds,
        compile_seconds=ran["compile_seconds"],
        peak_bytes=ran["peak_bytes"],
        cells_per_second=cells / seconds,
        chunks=ran["num_chunks"],
    )


def table(rows: list[Row]) -> str:
    lines = [
        "| | value | cells | warm call | cells per second | memory | compile |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        memory = f"{row.peak_bytes / 2**20:,.1f} MiB"
        measured = (duration(row.seconds), f"{row.cells_per_second:,.0f}", memory, f"{row.compile_seconds:.1f} s")
        lines.append(f"| {row.axis} | {row.value:,} | {row.cells:,} | {' | '.join(measured)} |")
    return "\n".join(lines)
