"""Timing: forms of one computation, in one run on one machine, synchronised, compilation separately."""

import importlib.util
import shutil
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

import resonance_jax as rj

PLATFORMS = ("cpu", "gpu")

Axes = dict[str, np.ndarray]
Prepare = Callable[[], Callable[[], Any]]  # compile or import what is needed; the call that is timed


class Unavailable(Exception):
    """A form finds, while it is prepared, that it cannot run here; the message says why."""


class Form(NamedTuple):
    """One way to compute a workload."""

    name: str
    prepare: Prepare
    needs: str | None = None  # package or program without which it is skipped
    platforms: tuple[str, ...] = PLATFORMS  # what it is for
    share: float = 1.0  # of the workload that a call computes; its time is scaled to the whole
    note: str = ""  # what the share is


class Timing(NamedTuple):
    """What a form took."""

    workload: str
    form: str
    seconds: float | None  # median of warm calls, scaled to the whole workload; None: skipped
    prepare_seconds: float  # compilation and everything that only the first call does
    note: str
    calls: tuple[float, ...] = ()  # every warm call, scaled


def swept(point: Callable[..., dict[str, Any]], axes: Axes, name: str) -> Prepare:
    """Whole calls of `rj.sweep`, labels and transfers included; one of the outputs."""
    return lambda: lambda: rj.sweep(point, axes)[name]


def current_platform() -> str:
    return "cpu" if jax.default_backend() == "cpu" else "gpu"


def is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None or shutil.which(name) is not None


def why_not(form: Form) -> str | None:
    """Why a form cannot run here; None if it can."""
    if current_platform() not in form.platforms:
        return f"for a {' or '.join(form.platforms).upper()}"
    if form.needs and not is_installed(form.needs):
        return f"{form.needs} is not installed"
    return None


def timed_calls(call: Callable[[], Any], repeats: int) -> list[float]:
    """Seconds of each call. A call returns host arrays, so it is over when it returns."""
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return seconds


def measure(workload: str, form: Form, repeats: int) -> Timing:
    """Prepare a form and call it once, which compiles, then `repeats` times."""
    reason = why_not(form)
    if reason:
        return Timing(workload, form.name, None, 0.0, f"skipped: {reason}")
    begin = time.perf_counter()
    try:
        call = form.prepare()
    except Unavailable as error:
        return Timing(workload, form.name, None, 0.0, f"skipped: {error}")
    result = np.asarray(call())
    prepared = time.perf_counter() - begin
    calls = timed_calls(call, repeats)
    median = statistics.median(calls)
    note = f"{np.isfinite(result).mean():.1%} finite" + (f"; {form.note}, scaled" if form.share < 1 else "")
    scaled = tuple(seconds / form.share for seconds in calls)
    return Timing(workload, form.name, median / form.share, max(0.0, prepared - median), note, scaled)


def duration(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f} ms" if seconds < 1 else f"{seconds:,.2f} s"


def times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}" if ratio >= 1 else f"{ratio:.2f}"


def table(timings: list[Timing]) -> str:
    """Medians, and how many times slower each form is than the first of its workload."""
    rows = ["| workload | form | warm call | against ours | compile | |", "| --- | --- | --- | --- | --- | --- |"]
    ours = {}
    for timing in timings:
        if timing.seconds is None:
            rows.append(f"| {timing.workload} | {timing.form} | | | | {timing.note} |")
            continue
        ratio = timing.seconds / ours.setdefault(timing.workload, timing.seconds)
        compiled = f"{timing.prepare_seconds:.1f} s"
        cells = (timing.workload, timing.form, duration(timing.seconds), times(ratio), compiled, timing.note)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)
