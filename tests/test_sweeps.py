"""The paper's experiments: each file at a tiny size, the first heatmap at the size of the paper."""

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import jax
import matplotlib.figure
import numpy as np
import pytest
import xarray as xr

import resonance_jax as rj
import sweeps
from sweeps._claims import SCALES, Claim, table

NAMES = [module.name for module in pkgutil.iter_modules(sweeps.__path__) if not module.name.startswith("_")]


@pytest.mark.parametrize("name", NAMES)
def test_tiny(name):
    module = importlib.import_module(f"sweeps.{name}")
    with jax.enable_x64(getattr(module, "DTYPE", "float32") == "float64"):
        data = rj.sweep(module.point, module.axes("tiny"))
    assert all(np.isfinite(data[variable]).all() for variable in data)
    assert isinstance(module.figure(data), matplotlib.figure.Figure)
    claims = module.claims(data)
    assert claims
    assert all(isinstance(claim, Claim) and claim.measured and claim.where for claim in claims)


@pytest.mark.parametrize("name", NAMES)
def test_scales(name):
    module = importlib.import_module(f"sweeps.{name}")
    cells = [np.prod([len(values) for values in module.axes(scale).values()]) for scale in SCALES]
    assert cells == sorted(cells)
    with pytest.raises(ValueError, match=r"scale must be one of tiny, quick, paper, got 'huge'; pick one of them"):
        module.axes("huge")


RUN = """
import resource, runpy, sys
from pathlib import Path
sys.argv = ["sweeps", *sys.argv[1:]]
try:
    runpy.run_module("sweeps", run_name="__main__")
except SystemExit as end:
    assert not end.code, end.code
status = Path("/proc/self/status")  # the peak of this program alone; getrusage counts the parent's before exec
lines = status.read_text().splitlines() if status.exists() else []
peak = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
print("peak KiB", *(peak or [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024]))
"""


@pytest.fixture(scope="module")
def first_heatmap(tmp_path_factory):
    """W1 through the command line, in a process of its own: 100 f x 100 mu x 10 seeds, 10,000 steps, 20 samples."""
    out = tmp_path_factory.mktemp("results")
    command = [sys.executable, "-c", RUN, "exp1_sinusoid", "--scale", "paper", "--out", str(out)]
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}  # as a user runs it
    done = subprocess.run(
        command, cwd=Path(__file__).parents[1], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return out, done.stdout


def test_first_heatmap_is_finite_and_agrees_with_theory(first_heatmap):
    out, _ = first_heatmap
    data = xr.load_dataset(out / "exp1_sinusoid.nc", engine="scipy")
    assert dict(data.sizes) == {"f": 100, "seed": 10, "mu": 100}
    assert all(np.isfinite(data[name]).all() for name in data)
    assert data.log10_distance.max() > 60
    assert data.log10_distance.min() < -100
    agreement = float(((data.log10_distance.median("seed") > 0) == (data.predicted_rate.isel(seed=0) > 0)).mean())
    assert agreement >= 0.98


def test_first_heatmap_writes_dataset_picture_and_claims(first_heatmap):
    out, printed = first_heatmap
    assert (out / "exp1_sinusoid.png").read_bytes().startswith(b"\x89PNG")
    claims = (out / "exp1_sinusoid.claims.md").read_text()
    assert claims.count("| holds |") == 5
    assert "does not hold" not in claims
    assert "holds" in printed


def test_first_heatmap_fits_into_two_gibibytes(first_heatmap):
    _, printed = first_heatmap
    assert 1e5 < int(printed.split("peak KiB")[1]) < 2 * 2**20


def test_table_of_claims():
    text = table([Claim("a", "b", "|c|", "d", None), Claim("a", "b", "c", "d", False)])
    assert text.splitlines()[2:] == [r"| a | b | \|c\| | d | ambiguous |", "| a | b | c | d | does not hold |"]


def test_unknown_name_lists_the_known_ones():
    command = [sys.executable, "-m", "sweeps", "exp0"]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "exp1_sinusoid" in done.stderr
