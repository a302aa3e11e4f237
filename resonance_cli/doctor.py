"""`resonance doctor`: does this machine compute, store and resume correctly?"""

import contextlib
import io
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import xarray as xr

import resonance_jax as rj
from resonance_cli.printing import say, size, table
from resonance_jax.engine.memory import free_memory

AXES = {"f": np.array([0.0, 1 / 22]), "seed": np.arange(4)}


def examine() -> bool:
    """Versions and devices, then checks of everything a job needs; whether all passed."""
    import flax
    import optax
    import zarr

    begin = time.perf_counter()
    modules = {"jax": jax, "numpy": np, "xarray": xr, "zarr": zarr, "optax": optax, "flax": flax}
    devices = jax.local_devices()
    table(
        [
            ("resonance_jax", f"{rj.__version__}, Python {sys.version.split()[0]}"),
            ("packages", ", ".join(f"{name} {module.__version__}" for name, module in modules.items())),
            ("devices", ", ".join(f"{each.device_kind} ({each.platform})" for each in devices)),
            ("memory", f"{size(free_memory(devices[0]))} free on the first"),
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        checks = (_theory_is_exact, _jobs_resonate, _jobs_resume)
        passed = [_check(check, Path(folder) / "doctor.zarr") for check in checks]
    say(f"{sum(passed)} of {len(passed)} checks passed in {time.perf_counter() - begin:.1f} s")
    return all(passed)


def _check(check: Callable[[Path], str | None], out: Path) -> bool:
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # lines about chunks
            found = check(out)
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    print(f"{'FAILED' if found else 'ok':>8}  {check.__doc__}{f': {found}' if found else ''}")
    return not found


def _theory_is_exact(out: Path) -> str | None:
    """the determinant of the monodromy matrix is mu^(n N)"""
    M = rj.theory.monodromy(rj.shifts.sinusoid(1 / 22), mu=0.98, eta=0.01, discrete=True)
    found, expected = float(np.linalg.det(np.asarray(M, np.float64))), 0.98**44
    return None if abs(found / expected - 1) < 1e-3 else f"{found} instead of {expected}"


def _jobs_resonate(out: Path) -> str | None:
    """runs diverge inside the first tongue, converge without drift, and stay finite"""
    data = rj.sweep(_doctors_point, AXES, store=out, chunk=4)
    converged, diverged = data.growth_rate.isel(f=0) < 0, data.growth_rate.isel(f=1) > 0
    as_expected = bool((converged & diverged & np.isfinite(data.log10_distance)).all())
    return None if as_expected else str(data.growth_rate.values)


def _jobs_resume(out: Path) -> str | None:
    """a damaged chunk is found, and only this chunk is computed again, to the same bits"""
    before = rj.sweep(_doctors_point, AXES, store=out, resume=True)
    folder = out / "growth_rate" / "c"
    times = {file: file.stat().st_mtime_ns for file in folder.rglob("0") if file.is_file()}
    damaged = next(iter(times))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    same = before.equals(rj.sweep(_doctors_point, AXES, store=out, resume=True))
    written = [file for file, then in times.items() if file.stat().st_mtime_ns != then]
    return None if written == [damaged] and same else f"{len(written)} chunks computed, same bits: {same}"


def _doctors_point(f, seed):
    return rj.oscillate(
        jax.random.key(seed),
        shift=rj.shifts.sinusoid(f),
        problem=rj.problems.linear_regression(dim=1, samples=20),
        mu=0.99,
        eta=0.01,
        num_steps=1000,
        tail=100,
    )
