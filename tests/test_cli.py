"""The command line: bad input in this process; signals, shards and clusters in separate processes."""

import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from typer.testing import CliRunner

import resonance_jax as rj
import resonance_jax.jobs.store
from resonance_cli.app import app
from resonance_cli.values import parse_values, with_settings

CHEAP = '''
"""A cheap sweep."""
import jax.numpy as jnp
import numpy as np
from typing import NamedTuple

def point(x, y, factor=1.0):
    return {"z": factor * jnp.sin(x) * y.astype(x.dtype)}

def axes(scale):
    return {"x": np.linspace(0, 1, {"quick": 6, "tiny": 2}[scale]), "y": np.arange(4)}

class Claim(NamedTuple):
    statement: str
    holds: bool

def claims(data):
    return [Claim("z is largest at the end | of x", bool(data.z.argmax("x").isel(y=-1) == data.x.size - 1))]

def figure(data):
    import matplotlib.pyplot as plt
    data.z.plot()
    return plt.gcf()

VARIANTS = {"double": dict(factor=2.0)}
'''


@pytest.fixture
def sweep_file(tmp_path) -> Path:
    file = tmp_path / "cheap.py"
    file.write_text(CHEAP)
    return file


def resonance(*arguments: object, rc: int = 0):
    """A command in this process, which has two devices."""
    words = [str(each) for each in arguments]
    if words[0] in ("run", "plan"):
        words += ["--no-cache", "--devices", "2"] + ([] if "--chunk" in words else ["--chunk", "4"])
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == rc, (result.stdout, result.stderr)
    return result


def test_run_writes_store_figure_and_claims(sweep_file, tmp_path):
    out = tmp_path / "cheap.zarr"
    shown = resonance("run", sweep_file, "--out", out).stderr
    assert "6 chunks computed" in shown
    data = xr.open_zarr(out)
    np.testing.assert_allclose(data.z, np.sin(data.x) * data.y, rtol=1e-6)
    assert data.attrs["source"] == CHEAP
    assert data.attrs["scale"] == "quick"
    assert matplotlib.image.imread(tmp_path / "cheap.png").shape[0] > 100
    rows = (tmp_path / "cheap.claims.md").read_text().splitlines()
    assert rows[0] == "| statement | verdict |"
    assert rows[2] == r"| z is largest at the end \| of x | holds |"
    assert "0 chunks computed, 6 already there" in resonance("run", sweep_file, "--out", out, "--resume").stderr


def test_set_scale_variant_and_dtype(sweep_file, tmp_path):
    out = tmp_path / "a.zarr"
    resonance(
        "run", sweep_file, "--out", out, "--scale", "tiny", "--variant", "double", "--set", "y=0..2", "--set", "x=2"
    )
    data = xr.open_zarr(out)
    np.testing.assert_allclose(data.z, 2 * np.sin([[2.0]]) * np.arange(3.0), rtol=1e-6)
    assert data.y.dtype == np.arange(4).dtype
    assert data.x.dtype == float


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", [1]),
        ("-1.5e-3", [-0.0015]),
        ("0.9,0.95,.99", [0.9, 0.95, 0.99]),
        ("0:1:3", [0, 0.5, 1]),
        ("1:0:2, 5", [1, 0, 5]),
        ("-2..1", [-2, -1, 0, 1]),
        ("1:9:1", [1]),
    ],
)
def test_values(text, expected):
    np.testing.assert_allclose(parse_values(text), expected)
    assert parse_values(text).dtype.kind == (
        "i" if all(isinstance(v, int) for v in expected) and ":" not in text else "f"
    )


NONSENSE = ["", "a", "1,,2", "0:1", "0:1:0", "0:1:2.5", "9..0", "1..2.5", "__import__('os')", "1+1", "nan", "inf"]
NONSENSE += ["0x10", "1_0", "0:1:10:2", "\N{ARABIC-INDIC DIGIT THREE}", "[1]", "1;2"]


@pytest.mark.parametrize("text", NONSENSE)
def test_values_that_do_not_parse(text):
    with pytest.raises(
        ValueError, match=r"cannot read .* as values of mu; write numbers \(0.9,0.99\), a range with its"
    ):
        parse_values(text, "mu")


def test_too_many_values_and_broken_whole_numbers():
    with pytest.raises(ValueError, match=r"'0..99999999999' are 100000000000 values of mu, at most 10000000 are taken"):
        parse_values("0..99999999999", "mu")
    with pytest.raises(ValueError, match=r"axis 'seed' holds whole numbers, got '0.5'; write e.g. seed=0..9"):
        with_settings({"seed": [0, 1]}, ["seed=0.5"])
    for setting in ("mu", "=1", "a b=1"):
        with pytest.raises(ValueError, match=r"--set needs name=values, got .*; write e.g. --set mu=0.9:0.99:10"):
            with_settings({}, [setting])


@pytest.mark.parametrize(
    ("source", "arguments", "message"),
    [
        ("axes = {'x': [1.0]}", (), "cheap.py does not define `point`; a sweep file needs"),
        ("def point(x): return {'y': x}", (), "cheap.py does not define `axes`"),
        ("def point(x:\n    pass", (), "cheap.py, line 1: syntax error:"),
        ("import nonsense_module", (), "cheap.py, line 1: ModuleNotFoundError: No module named 'nonsense_module'"),
        (CHEAP.replace("jnp.sin", "jnp.nonsense"), (), "cheap.py, line 8: AttributeError:"),
        (CHEAP, ("--set", "x=one"), "cannot read 'one' as values of x"),
        (CHEAP, ("--set", "nope=1"), "axis 'nope' is not a parameter of point"),
        (CHEAP, ("--scale", "huge"), "cheap.py, line 11: KeyError: 'huge'"),
        (CHEAP, ("--variant", "triple"), "has no variant 'triple'; it has double"),
        (CHEAP, ("--shard", "3/2"), "--shard must be i/n with i from 1 to n, got '3/2'"),
        (CHEAP, ("--shard", "0/2"), "--shard must be i/n with i from 1 to n, got '0/2'"),
        (CHEAP, ("--shard", "one"), "--shard must be i/n with i from 1 to n, got 'one'"),
        (CHEAP, ("--coordinator", "localhost:1"), "--coordinator, --num-processes and --process-id belong together"),
        (CHEAP, ("--chunk", "0"), "--chunk"),
        (CHEAP, ("--dtype", "float16"), "--dtype"),
    ],
)
def test_bad_input_is_one_line(sweep_file, tmp_path, source, arguments, message):
    sweep_file.write_text(source)
    result = resonance("run", sweep_file, "--out", tmp_path / "a.zarr", *arguments, rc=2)
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "a.zarr").exists()
    if result.stderr.startswith("error:"):
        assert len(result.stderr.splitlines()) == 1


def test_no_file_no_store_and_a_store_of_another_sweep(sweep_file, tmp_path):
    assert "no sweep file" in resonance("run", tmp_path / "none.py", "--out", tmp_path / "a.zarr", rc=2).stderr
    for command in ("status", "plot"):
        assert "no store at" in resonance(command, tmp_path / "none.zarr", rc=2).stderr
    out = tmp_path / "a.zarr"
    resonance("run", sweep_file, "--out", out, "--shard", "1/2")
    sweep_file.write_text(CHEAP.replace("y.astype(x.dtype)", "(y + 1).astype(x.dtype)"))
    shown = resonance("run", sweep_file, "--out", out, "--resume", rc=2).stderr
    assert (
        'the point computes something else; first change of the file: \'return {"z": factor * jnp.sin(x) * (y + 1).as'
        in shown
    )
    assert len(shown.splitlines()) == 1
    sweep_file.write_text(CHEAP + "# a remark")
    resonance("run", sweep_file, "--out", out, "--resume")
    (tmp_path / "b.zarr").mkdir()
    (tmp_path / "b.zarr" / "notes.txt").write_text("not a store")
    assert "no store at" in resonance("run", sweep_file, "--out", tmp_path / "b.zarr", rc=2).stderr
    assert (tmp_path / "b.zarr" / "notes.txt").exists()


def test_a_full_disk_loses_nothing(sweep_file, tmp_path, monkeypatch):
    out = tmp_path / "a.zarr"
    write = resonance_jax.jobs.store.Store.write
    written = []

    def until_full(self, number, outputs, says_diverged):
        if len(written) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        written.append(number)
        write(self, number, outputs, says_diverged)

    monkeypatch.setattr(resonance_jax.jobs.store.Store, "write", until_full)
    shown = resonance("run", sweep_file, "--out", out, rc=2).stderr
    assert shown == (
        f"error: cannot write {out}: No space left on device; finished chunks are kept, fix the problem and rerun with "
        "--resume\n"
    )
    monkeypatch.undo()
    assert "3 chunks computed, 3 already there" in resonance("run", sweep_file, "--out", out, "--resume").stderr


def test_a_file_too_large_and_a_folder_that_cannot_be_written(sweep_file, tmp_path):
    script = (
        "import resource, sys; from resonance_cli.app import main; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000)); main()"
    )
    big = [
        sys.executable,
        "-c",
        script,
        "run",
        sweep_file,
        "--out",
        tmp_path / "a.zarr",
        "--set",
        "x=0:1:5000",
        "--no-cache",
    ]
    result = subprocess.run([*big, "--chunk", "20000"], capture_output=True, text=True, check=False)
    assert result.returncode == 2, result
    assert "File too large; finished chunks are kept" in result.stderr
    assert "Traceback" not in result.stderr
    shown = resonance("run", sweep_file, "--out", sweep_file / "a.zarr", rc=2).stderr
    assert "File exists" in shown
    if os.geteuid() != 0:  # root may write everywhere
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o500)
        assert "Permission denied" in resonance("run", sweep_file, "--out", closed / "a.zarr", rc=2).stderr


def test_status_export_plot(sweep_file, tmp_path):
    out = tmp_path / "a.zarr"
    resonance("run", sweep_file, "--out", out, "--shard", "1/2")
    (out / "z" / "c" / "0" / "0").write_bytes(b"")
    found = json.loads(resonance("status", out, "--json").stdout)
    counts = {"chunks": 6, "whole": 2, "missing": 16, "damaged": 1, "ok": 8, "diverged": 0, "nonfinite": 0}
    assert found.items() >= counts.items()
    assert [job["state"] for job in found["jobs"]] == ["finished"]
    assert found["seconds_left"] is None
    assert "2 of 6 whole, 3 missing, 1 damaged" in resonance("status", out).stdout
    assert "1 chunks of" in resonance("export", out, tmp_path / "a.nc", rc=2).stderr
    resonance("run", sweep_file, "--out", out, "--resume")
    resonance("export", out, tmp_path / "a.nc")
    exported = xr.load_dataset(tmp_path / "a.nc", engine="scipy")
    np.testing.assert_array_equal(exported.z, xr.open_zarr(out).z)
    assert exported.attrs["source"] == CHEAP
    assert "state   complete" in re.sub(" +", "   ", resonance("status", out).stdout)
    resonance("export", out, tmp_path / "a.csv")
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "a.csv", dtype={"z": np.float32}).z, exported.z.values.ravel())
    assert "one of the endings .nc, .csv, .parquet" in resonance("export", out, tmp_path / "a.txt", rc=2).stderr
    for arguments in (("--output", "z"), ("--file", sweep_file)):
        resonance("plot", out, "--out", tmp_path / "plot.png", *arguments)
        assert matplotlib.image.imread(tmp_path / "plot.png").std() > 0
    assert "have no output 'y'; they have z" in resonance("plot", out, "--output", "y", rc=2).stderr


def test_plot_takes_axes_and_values(tmp_path, monkeypatch):
    file = tmp_path / "wide.py"
    file.write_text(WIDE)
    out = tmp_path / "wide.zarr"
    resonance("run", file, "--out", out)
    drawn = []
    overview = rj.plotting.overview
    monkeypatch.setattr(
        rj.plotting, "overview", lambda *args, **named: drawn.append(overview(*args, **named)) or drawn[-1]
    )
    resonance("plot", out, "--x", "x", "--y", "kind", "--col", "w", "--sel", "y=2.1")
    assert drawn[0].get_suptitle() == "z; y = 2"
    assert [ax.get_title() for ax in drawn[0].axes[:2]] == ["w = 1", "w = 2"]
    np.testing.assert_allclose(drawn[0].axes[1].collections[0].get_array(), [[4, 8, 12], [5, 6, 7]])
    resonance("plot", out, "--sel", "kind=sum", "--sel", "y=1,3")
    assert drawn[1].axes[0].collections[0].get_array().shape == (2, 2)
    assert (
        "--sel needs name=value, got 'mu'; write e.g. --sel mu=0.95"
        in resonance("plot", out, "--sel", "mu", rc=2).stderr
    )
    message = "--x, --y, --col, --row and --sel are for plain pictures; leave them or --file out"
    assert message in resonance("plot", out, "--x", "x", "--file", file, rc=2).stderr


WIDE = """
import matplotlib.pyplot as plt

def point(x, y, w, kind):
    return {"z": x * y * w if kind == "product" else x + y + w}

axes = dict(x=[1.0, 2.0, 3.0], y=[1.0, 2.0, 3.0], w=[1.0, 2.0], kind=["product", "sum"])

def figure(data):
    return plt.figure()
"""


DIVERGING = """
import jax.numpy as jnp
import numpy as np

def point(seed, T):
    at = jnp.where(T > 10 * seed.astype(T.dtype), 7, -1)
    return {"loss": jnp.where(at < 0, 0.1 * T, 1e21), "diverged_at": at}

axes = {"seed": np.arange(4), "T": [5.0, 15.0, 25.0]}
"""


def test_plot_shows_what_diverged(tmp_path, monkeypatch):
    file = tmp_path / "diverging.py"
    file.write_text(DIVERGING)
    out = tmp_path / "d.zarr"
    resonance("run", file, "--out", out, "--chunk", "3", "--shard", "1/2")  # seeds 0 and 2
    drawn = []
    overview = rj.plotting.overview
    monkeypatch.setattr(
        rj.plotting, "overview", lambda *args, **named: drawn.append(overview(*args, **named)) or drawn[-1]
    )
    resonance("plot", out, "--out", tmp_path / "d.png")
    assert drawn[0].get_suptitle() == "loss; mean over seed; 66.7% of the runs diverged"
    (strip,) = drawn[0].axes[0].child_axes
    assert strip.lines[0].get_ydata().tolist() == [50, 50, 100]
    assert json.loads(resonance("status", out, "--json").stdout)["diverged"] == 4


STATIC = """
import jax.numpy as jnp
import xarray as xr

def point(x, y, kind):
    return {"z": x * y if kind == "product" else x + y}

pair = dict(x=xr.DataArray([1.0, 2.0, 3.0], dims="run"), y=xr.DataArray([1.0, 2.0, 4.0], dims="run"))
axes = dict(kind=["product", "sum", None], **pair)
"""


def test_a_file_with_static_and_zipped_axes(tmp_path):
    file, out = tmp_path / "static.py", tmp_path / "s.zarr"
    file.write_text(STATIC)
    assert "3 kind x 3 run" in resonance("plan", file).stdout
    resonance("run", file, "--out", out, "--set", "kind=sum, product")
    data = xr.open_zarr(out)
    assert data.z.sel(kind="product").values.tolist() == [1, 4, 12]
    assert data.z.sel(kind="sum").values.tolist() == [2, 4, 7]
    assert "2 kind x 3 run" in resonance("status", out).stdout
    resonance("export", out, tmp_path / "s.nc")
    assert xr.load_dataset(tmp_path / "s.nc", engine="scipy").x.dims == ("run",)
    resonance("plot", out, "--out", tmp_path / "s.png")
    for setting, message in {
        "kind=sum,ratio": "axis 'kind' has no value 'ratio'; choose any of product, sum, None",
        "x=1,2": "axis 'x' shares the dimension 'run' with others; change it in the sweep file",
    }.items():
        assert message in resonance("run", file, "--out", tmp_path / "t.zarr", "--set", setting, rc=2).stderr
    shown = resonance("run", file, "--out", out, "--resume", rc=2).stderr
    assert "axis kind is product, sum, None, in the store sum, product. Give another --out" in shown
    shown = resonance("run", file, "--out", out, "--set", "kind=sum, product", rc=2).stderr
    assert "has chunks of this sweep already; --resume goes on with them, or give another --out" in shown


def test_plan_and_chart(sweep_file, tmp_path):
    shown = resonance("plan", sweep_file, "--shard", "1/2").stdout
    assert "12 in 3 chunks of 1 x 4" in shown
    resonance("chart", "--f", "0.03,0.045", "--mu", "0.95:0.99:3", "--out", tmp_path / "c.nc")
    rate = xr.load_dataset(tmp_path / "c.nc", engine="scipy").growth_rate
    assert rate.dims == ("f", "mu")
    assert float(rate.sel(f=0.045, mu=0.97)) > 0 > float(rate.sel(f=0.03, mu=0.95))
    resonance("chart", "--f", "0.045", "--mu", "0.97", "--nesterov", "--out", tmp_path / "n.nc")
    assert float(xr.load_dataset(tmp_path / "n.nc", engine="scipy").growth_rate.max()) < 0
    assert "--out must end in" in resonance("chart", "--out", tmp_path / "c.gif", rc=2).stderr


def test_help_is_quick_and_shows_examples():
    script = "import sys; from resonance_cli.app import main\ntry: main()\nfinally: assert 'jax' not in sys.modules"
    for command in ("run", "plan", "status", "export", "plot", "chart"):
        shown = resonance(command, "--help").stdout
        assert f"resonance {command} " in shown.split("Options:")[0].split("Usage:")[1].partition("\n")[2]
    subprocess.run([sys.executable, "-c", script, "run", "--help"], check=True, stdout=subprocess.DEVNULL)


# Separate processes

SLOW = """
import jax, jax.numpy as jnp, numpy as np

def point(x, y):
    return {"z": jax.lax.fori_loop(0, 20_000, lambda _, z: jnp.sin(z + y), x)}

axes = {"x": np.linspace(0, 1, 40), "y": np.linspace(0, 1, 1000)}
"""


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "resonance_cli", *map(str, arguments), "--no-cache", "--devices", "1"]


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_chunk(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert any('"event": "chunk"' in line for line in process.stdout), "it ended before its first chunk"


@pytest.fixture
def slow_file(tmp_path) -> Path:
    file = tmp_path / "slow.py"
    file.write_text(SLOW)
    return file


def test_sigterm_and_time_limit_end_cleanly(slow_file, tmp_path):
    out = tmp_path / "a.zarr"
    process = start("run", slow_file, "--out", out, "--chunk", 1000)
    wait_for_chunk(process)
    process.send_signal(signal.SIGTERM)
    shown, errors = process.communicate(timeout=20)
    assert process.returncode == 75, errors
    assert "stopped: SIGTERM. Finished chunks are kept; the same command with --resume goes on." in errors
    assert json.loads(shown.splitlines()[-1])["event"] == "stopped: SIGTERM"
    before = json.loads(resonance("status", out, "--json").stdout)
    assert 1 <= before["whole"] < 40
    assert before["damaged"] == 0
    assert [(job["state"], job["reason"]) for job in before["jobs"]] == [("stopped", "SIGTERM")]
    assert "no job running; the last job stopped (SIGTERM)" in resonance("status", out).stdout

    begin = time.monotonic()
    process = start("run", slow_file, "--out", out, "--resume", "--max-minutes", 0.02)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 75, errors
    assert "the limit of 0.02 minutes" in errors
    assert time.monotonic() - begin < 30
    assert json.loads(resonance("status", out, "--json").stdout)["whole"] >= before["whole"]


def test_two_shards_at_once_and_a_third_job_is_refused(slow_file, tmp_path):
    out = tmp_path / "both.zarr"
    settings = ("--chunk", 1000, "--set", "x=0:1:12")
    first = start("run", slow_file, "--out", out, *settings, "--shard", "1/2")
    second = start("run", slow_file, "--out", out, *settings, "--shard", "2/2")
    wait_for_chunk(first)
    os.kill(first.pid, signal.SIGSTOP)  # it holds its chunks, and takes no time from the others
    refused = subprocess.run(
        command("run", slow_file, "--out", out, *settings, "--shard", "1/2", "--resume"),
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(resonance("status", out, "--json").stdout)
    assert [job["state"] for job in found["jobs"] if job["shard"] == [1, 2]] == ["running"]
    assert found["seconds_left"] > 0
    os.kill(first.pid, signal.SIGCONT)
    assert refused.returncode == 2
    assert "is being written by another job" in refused.stderr
    for process in (first, second):
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    resonance("run", slow_file, "--out", tmp_path / "one.zarr", *settings)
    np.testing.assert_array_equal(xr.open_zarr(out).z, xr.open_zarr(tmp_path / "one.zarr").z)


def test_two_processes_under_jax_distributed(sweep_file, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    out = tmp_path / "cluster.zarr"
    processes = [
        start(
            "run",
            sweep_file,
            "--out",
            out,
            "--coordinator",
            f"127.0.0.1:{port}",
            "--num-processes",
            2,
            "--process-id",
            i,
            "--chunk",
            4,
        )
        for i in range(2)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert "3 chunks computed" in errors
    resonance("run", sweep_file, "--out", tmp_path / "one.zarr")
    np.testing.assert_array_equal(xr.open_zarr(out).z, xr.open_zarr(tmp_path / "one.zarr").z)


MEASURED = """
import resource, subprocess, sys, time
bare = subprocess.run([sys.executable, "-c", "import resonance_jax"], check=True)
bare = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
begin = time.monotonic()
done = subprocess.run(sys.argv[1:], check=True, stdout=subprocess.PIPE, text=True)
seconds = time.monotonic() - begin
print(bare, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, done.stdout.count('"event": "chunk"'), seconds)
"""


def test_a_million_cells_in_bounded_memory_as_planned(sweep_file, tmp_path):
    grid = ("--set", "x=0:1:1000", "--set", "y=0..999")
    plan = subprocess.run([*command("plan", sweep_file, *grid), "--json"], capture_output=True, text=True, check=True)
    planned = json.loads(plan.stdout)
    assert planned["cells"] == 10**6
    sweep_file.write_text(CHEAP.partition("class Claim")[0])
    run = subprocess.run(
        [sys.executable, "-c", MEASURED, *command("run", sweep_file, "--out", tmp_path / "million.zarr", *grid)],
        capture_output=True,
        text=True,
        check=True,
    )
    bare, peak, lines, seconds = map(float, run.stdout.split())
    assert lines == planned["chunks"] == 20
    assert peak - bare < 2**20  # KiB
    assert abs(planned["peak_host_bytes"] / (1024 * peak) - 1) < 0.15
    assert 1 / 3 < planned["seconds"] / seconds < 3  # a factor of two on an idle machine
    assert int((xr.open_zarr(tmp_path / "million.zarr").status == 1).sum()) == 10**6


def test_kill_and_resume():
    script = Path(__file__).parent / "kill_and_resume.py"
    done = subprocess.run([sys.executable, script, "--kills", "8"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "bit-identical" in done.stdout
