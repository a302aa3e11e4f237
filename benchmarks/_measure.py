"""Timing: forms of one computation, in one run on one machine, synchronised, compilation apart."""

import importlib.util
import os
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np


class Form(NamedTuple):
    """One way to compute a workload."""

    name: str
    prepare: Callable[[], Callable[[], Any]]  # compile or import what is needed; the call that is timed
    needs: str | None = None  # package without which it is skipped


class Timing(NamedTuple):
    """What a form took."""

    workload: str
    form: str
    seconds: float | None  # median of warm calls; None: skipped
    prepare_seconds: float
    note: str


def machine() -> dict[str, Any]:
    device = jax.local_devices()[0]
    return {
        "device": f"{jax.local_device_count()} x {device.device_kind}",
        "platform": device.platform,
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "jax": jax.__version__,
        "numpy": np.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }


def measure(workload: str, form: Form, repeats: int) -> Timing:
    """Prepare a form, call it once to warm up, then so many times; every call returns host arrays, so it is over."""
    if form.needs and importlib.util.find_spec(form.needs) is None:
        return Timing(workload, form.name, None, 0.0, f"skipped: {form.needs} is not installed")
    begin = time.perf_counter()
    call = form.prepare()
    result = np.asarray(call())
    prepared = time.perf_counter() - begin
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    median = statistics.median(seconds)
    return Timing(workload, form.name, median, max(0.0, prepared - median), f"{np.isfinite(result).mean():.1%} finite")


def table(timings: list[Timing]) -> str:
    """Medians, and how many times slower each form is than the first of its workload."""
    rows = ["| workload | form | warm call | against ours | compile | |", "| --- | --- | --- | --- | --- | --- |"]
    ours = {}
    for timing in timings:
        if timing.seconds is None:
            rows.append(f"| {timing.workload} | {timing.form} | | | | {timing.note} |")
            continue
        first = ours.setdefault(timing.workload, timing.seconds)
        warm = f"{timing.seconds * 1e3:,.1f} ms" if timing.seconds < 1 else f"{timing.seconds:,.2f} s"
        compiled = f"{timing.prepare_seconds:.1f} s"
        cells = (timing.workload, timing.form, warm, f"{timing.seconds / first:.1f}", compiled, timing.note)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)
