"""`resonance status`: what a store has, which jobs wrote it, and how long the rest will take."""

import json
from collections import Counter
from pathlib import Path

import numpy as np

from resonance_cli.printing import duration, table
from resonance_jax.jobs import history
from resonance_jax.jobs.layout import MEANINGS
from resonance_jax.jobs.store import Store

JOBS = 10  # of the history, the last ones


def status(path: Path, as_json: bool) -> None:
    store = Store.open(path)
    cells: Counter[int] = Counter()
    whole = damaged = 0
    for number in range(store.num_chunks):
        found = store.read_status(number)
        if found is None:
            damaged += store.finished(number)
            cells[0] += store.cells(number)
        else:
            whole += 1
            cells.update({int(value): int(n) for value, n in zip(*np.unique(found, return_counts=True), strict=True)})
    counts = {name: cells[value] for value, name in enumerate(MEANINGS)}
    chunks = {"whole": whole, "missing": store.num_chunks - whole - damaged, "damaged": damaged}
    jobs = history.jobs(store)
    running = [job for job in jobs if job.state == "running"]
    left = history.seconds_left(store, running)
    if as_json:
        states = {"jobs": [job._asdict() for job in jobs], "seconds_left": left}
        print(json.dumps({"chunks": store.num_chunks} | chunks | counts | states))
        return
    attrs = store.attrs
    rows = [
        ("sweep", f"{attrs.get('point')}, scale {attrs.get('scale')}, {attrs.get('dtype')} on {attrs.get('device')}"),
        ("made", f"{attrs.get('created')} by resonance_jax {attrs.get('resonance_jax')}, jax {attrs.get('jax')}"),
        ("grid", " x ".join(f"{n} {name}" for name, n in zip(store.dims, store.shape, strict=True))),
        ("chunks", f"{whole} of {store.num_chunks} whole, {chunks['missing']} missing, {damaged} damaged"),
        ("cells", ", ".join(f"{n:,} {name}" for name, n in counts.items())),
        ("state", _state(whole == store.num_chunks, jobs, running, left)),
    ]
    table(rows + [(job.began, _line(job)) for job in jobs[-JOBS:]])


def _state(complete: bool, jobs: list[history.Job], running: list[history.Job], left: float | None) -> str:
    if complete:
        return "complete"
    if running:
        pace = "no chunk finished yet" if left is None else f"about {duration(left)} left at their pace"
        return f"{len(running)} {'job' if len(running) == 1 else 'jobs'} running, {pace}"
    last = f"; the last job {_ended(jobs[-1])}" if jobs else ""
    return f"no job running{last}; `resonance run` with --resume goes on"


def _ended(job: history.Job) -> str:
    said = {"killed": "was killed", "running": "is running"}.get(job.state, job.state)
    return f"{said} ({job.reason})" if job.reason else said


def _line(job: history.Job) -> str:
    seconds = "" if job.seconds is None else f" in {duration(job.seconds)}"
    shard = f"shard {job.shard.number}/{job.shard.of}"
    return f"{_ended(job)}{seconds}: {job.chunks} chunks, {shard} on {job.device} of {job.host}"
