"""Running sweep files: one after another, or several at once in separate processes."""

import importlib.util
import multiprocessing
import pkgutil
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.figure import Figure

import resonance_jax as rj
import sweeps
from resonance_jax.engine.cache import use_compilation_cache
from resonance_jax.engine.devices import configure_devices
from resonance_jax.jobs import sweepfile
from resonance_jax.jobs.claims import table
from resonance_jax.jobs.sweepfile import SweepFile
from sweeps import _entries

configure_devices(share_gpu=True)  # several processes may run at once, see --jobs


def names() -> list[str]:
    """The sweep files; files whose names begin with an underscore are shared parts."""
    return [module.name for module in pkgutil.iter_modules(sweeps.__path__) if not module.name.startswith("_")]


def load(name: str) -> SweepFile:
    """A sweep file, or one of its variants; ValueError if there is none."""
    file, _, variant = name.partition(":")
    if file not in names():
        like = [name for name in names() if name.startswith(file)]
        meant = f"did you mean {' or '.join(like)}?" if like else f"choose all, or any of {', '.join(names())}"
        raise ValueError(f"unknown sweep {file!r}; {meant}")
    return sweepfile.load(Path(sweeps.__path__[0]) / f"{file}.py", variant or None)


def missing(name: str) -> list[str]:
    """Packages of the extra `examples` that a sweep file needs, by its `NEEDS`, and that are not installed."""
    needs = getattr(importlib.import_module(f"sweeps.{name}"), "NEEDS", ())
    return [package for package in needs if importlib.util.find_spec(package) is None]


def in_order() -> list[str]:
    """What `all` runs: experiments, then appendix; variants follow their default reading.

    Files whose packages are not installed are left out.
    """
    files = {name: load(name) for name in names() if not missing(name)}
    chosen = []
    for name in sorted(files, key=lambda name: (not name.startswith("exp"), files[name].text)):
        readings = [f"{name}:{variant}" for variant in files[name].variants]
        chosen += [name, *(reading for reading in readings if reading in _entries.READINGS)]
    return chosen


def run(name: str, scale: str, out: Path, progress: bool) -> _entries.Entry:
    """Run one sweep file, or one of its variants, and write its dataset, picture and claims."""
    begin = time.perf_counter()
    plt.switch_backend("Agg")
    swept = load(name)
    if swept.figure is None or swept.claims is None:
        raise ValueError(f"{swept.path} lacks `figure` or `claims`; the report needs both")
    file, _, variant = name.partition(":")
    with jax.enable_x64(swept.dtype == "float64"):
        axes = swept.axes(scale)
        data = rj.sweep(swept.point, axes, progress=progress)
    data.attrs |= {"scale": scale, "variant": variant, "point": f"sweeps.{file}.point"}
    stem = name.replace(":", "-")
    out.mkdir(parents=True, exist_ok=True)
    data.to_netcdf(out / f"{stem}.nc", engine="scipy")
    picture = draw(swept, data)
    picture.savefig(out / f"{stem}.png", dpi=150)
    plt.close(picture)
    claims = swept.claims(data)
    (out / f"{stem}.claims.md").write_text(table(claims))
    grid = " x ".join(f"{len(values)} {name}" for name, values in axes.items())
    return _entries.Entry(name, swept.text, grid, claims, data.attrs, time.perf_counter() - begin)


def draw(swept: SweepFile, data: xr.Dataset) -> Figure:
    """The figure of a sweep file; its title names the reading."""
    assert swept.figure is not None
    picture = swept.figure(data)
    variant = data.attrs["variant"]
    if variant:
        picture.suptitle(f"{picture.get_suptitle()}\nreading: {variant}", fontsize=11)
    return picture


def run_all(chosen: list[str], scale: str, out: Path, jobs: int, *, cache: bool) -> Iterator[_entries.Entry]:
    """One after another with a progress bar, or several at once in separate processes."""
    if jobs == 1:
        use_compilation_cache(cache)
        # A bar needs several chunks, and a GPU is faster with one.
        yield from (run(name, scale, out, progress=jax.default_backend() == "cpu") for name in chosen)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), use_compilation_cache, (cache,)) as pool:
        for future in [pool.submit(run, name, scale, out, False) for name in chosen]:
            yield future.result()
