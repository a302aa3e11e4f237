"""`resonance diagnose`: what it reads, prints, writes and refuses. The diagnosis itself is computed once."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from typer.testing import CliRunner

import resonance_cli.diagnose
import resonance_jax as rj
from resonance_cli.app import app
from resonance_jax.streams.conclude import recorded_of
from resonance_jax.streams.diagnose import check_stream
from resonance_jax.theory.recorded.verdicts import NAMES

WRITTEN = ["diagnosis.nc", "diagnosis.png", "diagnosis.txt", "table.csv"]


def table(rows: int = 400) -> pd.DataFrame:
    k, rng = np.arange(rows), np.random.default_rng(0)
    a = np.sqrt(2) * np.sin(2 * np.pi * k / 12) + 0.1 * rng.normal(size=rows)
    return pd.DataFrame({"day": "Monday", "a": a, "b": 5 + 1000 * rng.normal(size=rows), "c": 1, "y": 2 * a})


def resonance(*arguments: object, rc: int = 0):
    words = ["diagnose", *map(str, arguments), "--no-cache"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == rc, (result.stdout, result.stderr)
    return result


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "data.csv"
    table().to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """One run from end to end: the diagnosis, what was printed, and the folder."""
    folder = tmp_path_factory.mktemp("whole")
    table().to_csv(folder / "data.csv", index=False)
    setting = ("--samples", 1, "--mu", 0.98, "--eta", 0.3)
    plane = ("--mus", "0.9,0.5", "--etas", "0.001:0.01:2", "--no-model")
    found, diagnose = [], rj.diagnose
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rj, "diagnose", lambda *args, **named: found.append(diagnose(*args, **named)) or found[0])
        columns = ("--features", "a", "--target", "y")
        shown = resonance(folder / "data.csv", *columns, *setting, *plane, "--out", folder / "out")
    return found[0], shown, folder / "out"


@pytest.fixture
def seen(whole, monkeypatch):
    """What the library is asked; it answers with the diagnosis at hand."""
    asked = []

    def diagnose(inputs, targets=None, **options):
        asked.append((inputs, targets, options))
        return whole[0]

    def diagnose_parts(parts, **options):
        asked.append((list(parts), None, options))
        return whole[0]

    monkeypatch.setattr(rj, "diagnose", diagnose)
    monkeypatch.setattr(resonance_cli.diagnose, "diagnose_parts", diagnose_parts)
    return asked


def test_it_prints_and_writes_the_diagnosis(whole):
    found, shown, out = whole
    assert shown.stdout == f"{found}\n"
    assert found.verdict == "noise"
    assert "At momentum 0.98 and step size 0.3" in shown.stdout
    assert "data.csv: input a; target y\n" in shown.stderr
    assert sorted(each.name for each in out.iterdir()) == WRITTEN
    assert (out / "diagnosis.txt").read_text().endswith(f"data.csv: input a; target y\n{found}\n")
    assert matplotlib.image.imread(out / "diagnosis.png").std() > 0


def test_the_dataset_comes_back(whole):
    found, _, out = whole
    data = xr.load_dataset(out / "diagnosis.nc", engine="scipy")
    assert set(data.variables) == set(found.data.variables)
    for name, values in found.data.variables.items():
        np.testing.assert_array_equal(data[name], values)
        assert data[name].dims == values.dims
        assert data[name].attrs.get("long_name") == values.attrs.get("long_name")
    assert data.verdict.attrs["flag_meanings"] == found.data.verdict.attrs["flag_meanings"]
    assert (data.attrs["mu"], data.attrs["eta"], data.attrs["own_setting"]) == (0.98, 0.3, 1)
    assert data.attrs["verdict"] == found.verdict
    assert data.attrs["samples"] == 1
    assert data.attrs["file"] == "data.csv"
    assert {name for name in data.attrs if name.startswith("remedy_")} == {
        f"remedy_{each.name.replace(' ', '_')}" for each in found.remedies
    }


def test_the_table_has_a_line_for_each_cell(whole):
    found, _, out = whole
    lines = pd.read_csv(out / "table.csv")
    assert len(lines) == found.data.verdict.size == 9
    for _, line in lines.iterrows():
        cell = found.data.sel(mu=line.mu, eta=line.eta, method="nearest")
        assert line.verdict == NAMES[int(cell.verdict)]
        for name in ("growth_rate", "growth_rate_standard_error", "shuffled_rate", "shuffled_rate_standard_error"):
            np.testing.assert_allclose(line[name], cell[name], rtol=1e-8)


def test_columns_and_options_are_passed_on(file, tmp_path, seen):
    shown = resonance(file, "--target", "y", "--samples", 8, "--out", tmp_path / "a", "--eta", 0.1, "--mus", "0.9,0.5")
    assert "inputs a, b, c; target y; left out, without numbers: day" in shown.stderr
    resonance(file, "--features", " b, a", "--samples", 1, "--out", tmp_path / "b", "--no-model")
    (inputs, targets, options), (two, none, others) = seen
    assert list(inputs.columns) == ["a", "b", "c"]
    np.testing.assert_allclose(targets, table().y, rtol=1e-5)
    assert (options["samples"], options["mu"], options["eta"], options["model"]) == (8, None, 0.1, True)
    assert options["mus"].tolist() == [0.5, 0.9]
    assert options["etas"] is None
    np.testing.assert_allclose(two, table()[["b", "a"]], rtol=1e-5)
    assert none is None
    assert not others["model"]


def test_standardised_columns(file, tmp_path, seen):
    resonance(file, "--features", "a,b", "--samples", 1, "--standardise", "--out", tmp_path / "a")
    np.testing.assert_allclose(seen[0][0].mean(), 0, atol=1e-5)
    np.testing.assert_allclose(seen[0][0].std(ddof=0), 1, rtol=1e-5)
    shown = resonance(file, "--features", "a,c", "--samples", 1, "--standardise", "--out", tmp_path / "b", rc=2).stderr
    assert "error: column 'c' is constant and cannot be standardised; leave it out of --features\n" in shown


def test_long_files_go_in_parts(file, tmp_path, seen):
    options = ("--features", "a,b", "--samples", 3, "--max-rows", 121)
    shown = resonance(file, *options, "--out", tmp_path / "a").stderr
    assert f"{file} has more than 120 rows: it is diagnosed in parts of 120; see --max-rows.\n" in shown
    resonance(file, *options, "--standardise", "--out", tmp_path / "b")
    resonance(file, "--features", "a,b", "--samples", 3, "--standardise", "--out", tmp_path / "c")
    as_they_are, scaled, at_once = (each[0] for each in seen)
    assert [len(each) for each in as_they_are] == [len(each) for each in scaled] == [120, 120, 120, 40]
    np.testing.assert_allclose(pd.concat(as_they_are), table()[["a", "b"]], rtol=1e-5)
    np.testing.assert_allclose(pd.concat(scaled), at_once, atol=1e-5)
    resonance(file, "--features", "a", "--samples", 1, "--max-rows", 400, "--out", tmp_path / "d")
    assert isinstance(seen[-1][0], pd.DataFrame)


def test_uneven_columns_are_warned_of_in_one_line(file, tmp_path, seen, monkeypatch, whole):
    def diagnose(inputs, targets, *, samples, **_):
        check_stream(recorded_of(rj.problems.recorded(inputs, samples=samples))[1], True, None, None, 1)
        return whole[0]

    monkeypatch.setattr(rj, "diagnose", diagnose)
    shown = resonance(file, "--features", "a,b", "--samples", 1, "--out", tmp_path / "a").stderr
    (line,) = [line for line in shown.splitlines() if line.startswith("warning: ")]
    assert line.startswith("warning: columns have deviations from ")
    assert line.endswith("one step size does not suit all of them; add --standardise")


def test_a_folder_that_is_not_empty(file, tmp_path, seen):
    out = tmp_path / "a"
    out.mkdir()
    options = (file, "--features", "a", "--samples", 1, "--out", out)
    resonance(*options)
    shown = resonance(*options, rc=2).stderr
    assert shown == f"error: {out} is not empty; --force overwrites an earlier diagnosis in it, or give another --out\n"
    (out / "table.csv").write_text("old")
    (out / "notes.txt").write_text("mine")
    resonance(*options, "--force")
    assert (out / "table.csv").read_text() != "old"
    assert sorted(each.name for each in out.iterdir()) == sorted([*WRITTEN, "notes.txt"])


def test_without_a_setting(file, tmp_path, seen, whole, monkeypatch):
    found = whole[0]._replace(mu=None, eta=None, own=False, verdict="", remedies=(), returns_at=None)
    monkeypatch.setattr(rj, "diagnose", lambda *_, **__: found)
    shown = resonance(file, "--samples", 1, "--out", tmp_path / "a").stdout
    assert "No setting of the plane diverges because of the order." in shown
    attrs = xr.load_dataset(tmp_path / "a" / "diagnosis.nc", engine="scipy").attrs
    assert "mu" not in attrs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--features", "a,z"), "no column 'z' in "),
        (("--features", "a,a"), "--features must differ, got 'a' twice; name it once"),
        (("--features", "a,y", "--target", "y"), "target 'y' is also one of the columns"),
        (("--features", "day"), "expected a number, got 'Monday'"),
        (("--mus", "0.5,1.5"), "--mus must lie in [0, 1], got 1.5; momentum is the share of the velocity"),
        (("--etas", "0,0.1"), "--etas must lie in (0, inf), got 0.0; give positive step sizes"),
        (("--etas", "small"), "cannot read 'small' as values of --etas"),
        (("--features", "a", "--mu", "2"), "mu must lie in [0, 1], got 2.0"),
        (("--features", "a", "--samples", "20"), "a diagnosis needs at least 40 steps a pass, got 20 of 20 rows"),
        (("--features", "a,y"), "the columns 'a', 'y' are linearly dependent"),
        (
            ("--features", "a", "--samples", "4", "--max-rows", "100"),
            "--max-rows must hold 40 steps of 4 rows, got 100; give at least 160",
        ),
    ],
)
def test_errors_are_one_line(file, tmp_path, options, message):
    words = options if "--samples" in options else (*options, "--samples", "1")
    shown = resonance(file, *words, "--out", tmp_path / "a", rc=2)
    assert shown.stdout == ""
    assert [message in line for line in shown.stderr.splitlines() if line.startswith("error: ")] == [True]
    assert not any((tmp_path / "a").glob("*"))


def test_files_that_cannot_be_read_or_written(file, tmp_path, seen, monkeypatch):
    shown = resonance(tmp_path / "b.csv", "--samples", 1, "--out", tmp_path / "a", rc=2).stderr
    assert shown == f"error: no file {tmp_path / 'b.csv'}; check its name and folder\n"
    shown = resonance(file, "--samples", 1, "--out", file, rc=2).stderr
    assert shown == f"error: --out must be a folder, {file} is a file; give another --out\n"
    shown = resonance(file, "--samples", 1, "--out", file / "a", rc=2).stderr
    assert f"error: cannot write {file / 'a'}: Not a directory; make room or give another --out\n" in shown

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(xr.Dataset, "to_netcdf", full)
    shown = resonance(file, "--samples", 1, "--out", tmp_path / "a", rc=2).stderr
    assert "diagnosis.nc: No space left on device; make room or give another --out\n" in shown


def test_help_is_quick_and_shows_examples():
    shown = CliRunner().invoke(app, ["diagnose", "--help"]).stdout
    assert "resonance diagnose data.csv --target y --samples 16 --mu 0.99 --eta 0.01" in shown
    script = "import sys; from resonance_cli.app import main\ntry: main()\nfinally: assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", script, "diagnose", "--help"], check=True, stdout=subprocess.DEVNULL)
