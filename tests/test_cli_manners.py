"""What a newcomer meets on the command line: version, completion, a first sweep file, empty stores, the paper."""

import jax
import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import resonance_jax as rj
from resonance_cli.app import app
from resonance_cli.export import of_cells
from resonance_jax.engine.grid import prepare
from resonance_jax.jobs import history, identity, sweepfile
from resonance_jax.jobs.store import Store


def resonance(*arguments: object, rc: int = 0):
    result = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    assert result.exit_code == rc, (result.stdout, result.stderr)
    return result


@pytest.fixture
def empty(tmp_path):
    """A store of four chunks, none of them finished."""
    grid = prepare(lambda x: {"y": x}, {"x": np.arange(4.0)})
    return Store.create(tmp_path / "a.zarr", grid, (1,), identity.identity(grid, "", jax.devices()[:1]))


def test_version():
    assert resonance("--version").stdout == f"resonance_jax {rj.__version__}\n"


def test_completion_is_offered():
    assert "--install-completion" in resonance("--help").stdout


def test_init_writes_a_sweep_that_runs(tmp_path):
    file = tmp_path / "mine.py"
    resonance("init", file)
    assert "exists; give another name, or --force" in resonance("init", file, rc=2).stderr
    resonance("init", file, "--force")
    swept = sweepfile.load(file)
    data = rj.sweep(swept.point, swept.axes("tiny"))
    assert data.sizes == {"f": 4, "seed": 3, "mu": 4, "step": 50}
    assert swept.figure is not None
    assert swept.figure(data).axes


def test_nothing_to_plot_or_export_yet(empty, tmp_path):
    for arguments in (("plot", empty.path), ("export", empty.path, tmp_path / "a.nc")):
        assert "has no finished chunk yet" in resonance(*arguments, rc=2).stderr


def test_a_table_leaves_curves_out():
    cells = xr.Dataset(
        {"status": ("mu", [1, 1]), "loss": ("mu", [0.1, 0.2]), "curve": (("mu", "step"), np.ones((2, 3)))}
    )
    assert set(of_cells(cells)) == {"status", "loss"}


def test_a_job_that_left_no_word_was_killed(empty):
    with empty.locked([history.new_token()]):
        empty.log({"event": "start", "time": identity.now(), "token": history.new_token(), "chunks": 4})
    assert [job.state for job in history.jobs(empty)] == ["killed"]
    assert "the last job was killed; `resonance run` with --resume" in resonance("status", empty.path).stdout


@pytest.mark.parametrize(("error", "state"), [(KeyboardInterrupt, "stopped"), (OSError, "failed")])
def test_how_a_job_ended(empty, error, state):
    with pytest.raises(error), history.kept(empty, history.new_token(), {"chunks": 4}):
        raise error
    (job,) = history.jobs(empty)
    assert (job.state, job.reason) == (state, error.__name__)


def test_time_left_is_the_pace_of_the_running_jobs(empty, monkeypatch):
    """Two of four chunks took twenty seconds: another twenty are left."""
    job = history.Job("running", "2026-01-01T00:00:00+00:00", "", "", history.Shard(), 4, None, "")
    began = 1767225600.0  # the same moment
    monkeypatch.setattr(Store, "finished_at", lambda self, number: {0: began + 9, 1: began + 19}.get(number))
    monkeypatch.setattr(history.time, "time", lambda: began + 20)
    assert history.seconds_left(empty, [job]) == 20
    monkeypatch.setattr(Store, "finished_at", lambda self, number: began - 1 if number == 0 else None)
    assert history.seconds_left(empty, [job]) is None


def test_the_paper_as_a_command(monkeypatch):
    seen = []
    monkeypatch.setattr("sweeps.__main__.main", lambda given, prog: seen.append((given, prog)) or 0)
    resonance("paper", "exp1_sinusoid", "--scale", "tiny")
    assert seen == [(["exp1_sinusoid", "--scale", "tiny"], "resonance paper")]
