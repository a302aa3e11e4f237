"""The implementation of the commands, on top of the package."""

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax

import resonance_jax as rj
from resonance_cli.printing import duration, say, size, table
from resonance_cli.values import parse_selection, with_settings
from resonance_jax.engine.devices import Device, check_devices, configure_devices
from resonance_jax.engine.grid import Grid, prepare
from resonance_jax.engine.progress import Bar, Lines
from resonance_jax.jobs import job, sweepfile
from resonance_jax.jobs.claims import table as claims_table
from resonance_jax.jobs.layout import MISSING
from resonance_jax.jobs.plan import plan as plan_job
from resonance_jax.jobs.shards import Shard
from resonance_jax.jobs.stopping import Guard
from resonance_jax.jobs.store import Store, load

if TYPE_CHECKING:
    import xarray as xr

os.environ["MPLBACKEND"] = "Agg"  # no window on a cluster


class Cluster(NamedTuple):
    """How the processes of a job find each other."""

    detect: bool = False
    coordinator: str | None = None
    num_processes: int | None = None
    process_id: int | None = None

    def join(self) -> None:
        given = (self.coordinator, self.num_processes, self.process_id)
        if any(each is not None for each in given):
            if any(each is None for each in given):
                raise ValueError("--coordinator, --num-processes and --process-id belong together; give all three")
            jax.distributed.initialize(*given)
        elif self.detect:
            try:
                jax.distributed.initialize()
            except (ValueError, RuntimeError) as error:
                raise ValueError(
                    f"--distributed found no cluster ({str(error).splitlines()[0]}); start it with srun or mpirun, or "
                    "give --coordinator, --num-processes and --process-id"
                ) from None


def run(
    file: Path,
    out: Path,
    *,
    scale: str,
    settings: Sequence[str],
    variant: str | None,
    resume: bool,
    shard: str,
    devices: int | None,
    chunk: int | None,
    max_minutes: float | None,
    dtype: str | None,
    cache: bool,
    cluster: Cluster,
) -> None:
    part = Shard.parse(shard)
    _set_up(devices, cache)
    cluster.join()
    remedy = "the same command with --resume goes on."
    with Guard(max_minutes, remedy=remedy) as guard:  # after jax.distributed, which sets its own handlers
        swept, grid, chosen = _prepare(file, scale, settings, variant, devices, dtype)
        facts = {"scale": scale, "variant": variant or "", "point": f"{file.name}:point"}
        outcome = job.run(
            grid,
            out,
            devices=chosen,
            source=swept.source,
            facts=facts,
            resume=resume,
            shard=part,
            chunk=chunk,
            report=_reporter,
            guard=guard,
        )
        kept = f", {outcome.kept} already there" if outcome.kept else ""
        rate = f", {outcome.cells / outcome.seconds:,.0f} cells/s" if outcome.cells else ""
        say(f"{out}: {outcome.chunks} chunks computed{kept}, {outcome.seconds:.1f} s{rate}")
        if outcome.complete:
            _draw(swept, out)


def _set_up(devices: int | None, cache: bool) -> None:
    configure_devices(devices)
    rj.use_compilation_cache(cache)


def _reporter(cells: int) -> Bar | Lines:
    return Bar(cells, show=True) if sys.stdout.isatty() else Lines(cells)


def _prepare(
    file: Path, scale: str, settings: Sequence[str], variant: str | None, devices: int | None, dtype: str | None
) -> tuple[sweepfile.SweepFile, Grid, tuple[Device, ...]]:
    """The sweep of a file, traced and checked, and the devices to run it on."""
    swept = sweepfile.load(file, variant)
    jax.config.update("jax_enable_x64", (dtype or swept.dtype) == "float64")
    axes = with_settings(swept.axes(scale), settings)
    return swept, sweepfile.within(file, prepare, swept.point, axes), check_devices(devices)


def _draw(swept: sweepfile.SweepFile, out: Path) -> None:
    """The picture and the claims of a finished sweep, beside its store."""
    if swept.figure is None and swept.claims is None:
        return
    data = load(out)
    if swept.figure is not None:
        picture = out.with_suffix(".png")
        sweepfile.within(swept.path, swept.figure, data).savefig(picture, dpi=150)
        say(f"{picture}: the figure")
    if swept.claims is not None:
        claims = out.with_suffix(".claims.md")
        found = sweepfile.within(swept.path, swept.claims, data)
        claims.write_text(claims_table(found), encoding="utf-8")
        say(f"{claims}: the claims")


def plan(
    file: Path,
    *,
    scale: str,
    settings: Sequence[str],
    variant: str | None,
    shard: str,
    devices: int | None,
    chunk: int | None,
    dtype: str | None,
    cache: bool,
    as_json: bool,
    began: float,
) -> None:
    part = Shard.parse(shard)
    _set_up(devices, cache)
    _, grid, chosen = _prepare(file, scale, settings, variant, devices, dtype)
    start = time.perf_counter() - began
    found = plan_job(grid, devices=chosen, shard=part, chunk=chunk)
    seconds = start + found.compile_seconds + found.chunks * found.chunk_seconds
    if as_json:
        print(json.dumps(found._asdict() | {"seconds": seconds}))
        return
    parts = {"to start": start, "to compile": found.compile_seconds, "for each chunk": found.chunk_seconds}
    device_memory = f"{size(found.device_bytes)} a chunk on each device"
    if found.peak_device_bytes is not None:
        device_memory += f", {size(found.peak_device_bytes)} at the peak"
    rows = [
        ("device", found.device),
        ("grid", " x ".join(f"{n} {name}" for name, n in zip(grid.dims, grid.shape, strict=True))),
        ("cells", f"{found.cells:,} in {found.chunks} chunks of {' x '.join(map(str, found.chunk_shape))}"),
        ("time", f"{duration(seconds)}: {', '.join(f'{duration(each)} {what}' for what, each in parts.items())}"),
        ("memory", f"{size(found.peak_host_bytes)} of the host, {device_memory}"),
        ("disk", f"{size(found.disk_bytes)} at most"),
    ]
    if found.chunk_seconds > 300:
        cells = max(1, int(60 * found.cells / found.chunks / found.chunk_seconds))
        rows.append(("hint", f"a kill loses up to {duration(found.chunk_seconds)}; --chunk {cells} makes it a minute"))
    table(rows)


def plot(
    path: Path,
    out: Path | None,
    file: Path | None,
    output: str | None,
    roles: Mapping[str, Any],
    sel: Sequence[str],
) -> None:
    data = load_whole(path)
    if file is not None:
        swept = sweepfile.load(file)
        if swept.figure is None:
            raise ValueError(f"{file} does not define `figure`; leave --file out for a plain picture")
        if sel or any(roles.values()):
            raise ValueError("--x, --y, --col, --row and --sel are for plain pictures; leave them or --file out")
        picture = sweepfile.within(file, swept.figure, data)
    else:
        picture = rj.plotting.overview(data, output=output, sel=parse_selection(sel), **roles)
    out = out or path.with_suffix(".png")
    picture.savefig(out, dpi=150)
    say(f"{out}: {int((data.status > 0).sum())} of {data.status.size} cells")


def load_whole(path: Path) -> "xr.Dataset":
    """The finished part of a store; ValueError if a chunk is damaged, or none is finished."""
    store = Store.open(path)
    damaged = [n for n in range(store.num_chunks) if store.finished(n) and store.read_status(n) is None]
    if damaged:
        raise ValueError(f"{len(damaged)} chunks of {path} are damaged; `resonance run --resume` computes them again")
    data = load(path)
    if not (data.status != MISSING).any():
        raise ValueError(f"{path} has no finished chunk yet; `resonance status {path}` shows whether a job is at work")
    return data
