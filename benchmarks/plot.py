"""`python -m benchmarks plot a.json b.json --out FOLDER`: pictures of what machines took, one colour for each."""

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

AXES = {
    "cells": "cells of the grid",
    "steps": "steps of a run",
    "samples": "samples per step",
    "dim": "inputs $d$",
    "seeds": "seeds",
}

Result = dict[str, Any]  # what one JSON file holds


def read(path: Path) -> Result:
    """ValueError unless it is a file that `python -m benchmarks` wrote."""
    try:
        result = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read {path}: {error}") from error
    if not isinstance(result, dict) or not {"machine", "timings", "scaling"} <= set(result):
        raise ValueError(f"{path} is not a result of python -m benchmarks; it needs machine, timings and scaling")
    return result


def distinct_names(results: list[Result]) -> list[str]:
    """Names of the machines, numbered if two files are of the same one."""
    names = [result["machine"]["name"] for result in results]
    return [f"{name} ({i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]


def colour(index: int) -> str:
    return f"C{index}"


def forms(results: list[Result]) -> Figure:
    """The time of every form, workload above workload."""
    timings = [[timing for timing in result["timings"] if timing["seconds"] is not None] for result in results]
    labels: dict[str, list[str]] = {}  # workload -> forms, in the order they were run
    for timing in (timing for machine in timings for timing in machine):
        known = labels.setdefault(timing["workload"], [])
        if timing["form"] not in known:
            known.append(timing["form"])
    heights = [len(names) + 0.6 for names in labels.values()]
    picture, panels = plt.subplots(
        len(labels),
        figsize=(9, 1.6 + 0.34 * sum(heights)),
        height_ratios=heights,
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    for ax, (workload, names) in zip(panels[:, 0], labels.items(), strict=True):
        _dots(ax, workload, names, timings)
    panels[-1, 0].set_xlabel("seconds, median of warm calls")
    handles = [Line2D([], [], marker="o", ls="", color=colour(i)) for i in range(len(results))]
    picture.suptitle(f"one call of each form, scale {results[0]['machine']['scale']}", fontsize=11)
    picture.legend(handles, distinct_names(results), loc="outside lower center", ncols=2, frameon=False)
    return picture


def _dots(ax: Axes, workload: str, names: list[str], timings: list[list[dict[str, Any]]]) -> None:
    """One dot per machine and form with its time: on the left for the fastest of several, otherwise on the right."""
    seconds = [{t["form"]: t["seconds"] for t in machine if t["workload"] == workload} for machine in timings]
    for index, machine in enumerate(seconds):
        for form, value in machine.items():
            others = [each[form] for each in seconds if form in each]
            side = -1 if len(others) > 1 and value == min(others) else 1
            ax.plot(value, names.index(form), "o", color=colour(index))
            ax.annotate(
                _short(value),
                (value, names.index(form)),
                xytext=(6 * side, 0),
                textcoords="offset points",
                va="center",
                ha="left" if side > 0 else "right",
                fontsize=8,
                color=colour(index),
            )
    ax.set_xscale("log")
    ax.margins(x=0.12)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.grid(alpha=0.3, lw=0.6)
    ax.set_title(workload, loc="left", fontsize=10, fontweight="bold")


def _short(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:,.3g} {unit}" if seconds < 1000 else f"{seconds:,.0f} s"
    return f"{seconds * 1e6:.3g} µs"


def scaling(results: list[Result], axis: str) -> Figure:
    """Time on the left, memory on the right, over one axis; dashed: proportional to it."""
    picture, panels = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
    others = "; ".join(dict.fromkeys(_fixed(result, axis) for result in results if result["scaling"]))
    picture.suptitle(f"rj.sweep of rj.oscillate over the {AXES[axis]}\n{others}", fontsize=11)
    for index, (result, name) in enumerate(zip(results, distinct_names(results), strict=True)):
        rows = [row for row in result["scaling"] if row["axis"] == axis]
        if not rows:
            continue
        values = np.array([row["value"] for row in rows], float)
        for ax, key, unit in zip(panels, ("seconds", "peak_bytes"), (1, 2**20), strict=True):
            measured = np.array([row[key] for row in rows]) / unit
            ax.plot(values, measured, "o-", color=colour(index), label=name)
            guide = measured[-1] * values / values[-1]
            ax.plot(values, guide, "--", color=colour(index), alpha=0.4, lw=1)
    ticks = sorted({row["value"] for result in results for row in result["scaling"] if row["axis"] == axis})
    for ax, label in zip(panels, ("seconds, median of warm calls", "memory of one device (MiB)"), strict=True):
        ax.plot([], [], "--", color="grey", lw=1, label="proportional")
        ax.set_xscale("log")
        ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        ax.minorticks_off()
        ax.set_yscale("log")
        ax.set_xlabel(AXES[axis])
        ax.set_ylabel(label)
        ax.grid(alpha=0.3, lw=0.6)
    handles, names = panels[0].get_legend_handles_labels()
    picture.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    return picture


def _fixed(result: Result, axis: str) -> str:
    """The values of the other axes, e.g. '10,000 cells, 20 samples'."""
    base = result["scaling_base"]
    return ", ".join(f"{name} {value:,}" for name, value in base.items() if name != axis)


def write(paths: list[Path], out: Path) -> list[Path]:
    """Draw all figures that the files have numbers for."""
    results = [read(path) for path in paths]
    scales = [result["machine"]["scale"] for result in results]
    if len(set(scales)) > 1:
        raise ValueError(f"the results are of different scales, {', '.join(scales)}; draw those of one")
    figures: dict[str, Figure] = {}
    if any(timing["seconds"] is not None for result in results for timing in result["timings"]):
        figures["forms"] = forms(results)
    for axis in AXES:
        if any(row["axis"] == axis for result in results for row in result["scaling"]):
            figures[f"scaling_{axis}"] = scaling(results, axis)
    if not figures:
        raise ValueError(f"nothing was measured in {', '.join(map(str, paths))}; every form was skipped")
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for name, picture in figures.items():
        picture.savefig(out / f"{name}.png", dpi=150)
        plt.close(picture)
        written.append(out / f"{name}.png")
    return written


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks plot", description=__doc__)
    parser.add_argument("results", nargs="+", type=Path, metavar="JSON", help="what python -m benchmarks --out wrote")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"), help="folder (default: %(default)s)")
    parsed = parser.parse_args(arguments)
    plt.switch_backend("Agg")
    try:
        for path in write(parsed.results, parsed.out):
            print(f"wrote {path}")
    except ValueError as error:
        parser.error(str(error))
