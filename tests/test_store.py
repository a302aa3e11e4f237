"""The store: how xarray reads it, how damage is handled, and what is refused."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from resonance_jax.engine.grid import prepare
from resonance_jax.jobs import job
from resonance_jax.jobs.identity import identity
from resonance_jax.jobs.layout import DIVERGED, MISSING, NONFINITE, OK
from resonance_jax.jobs.shards import Shard
from resonance_jax.jobs.store import Store, load, status_of
from resonance_jax.runs.divergence import says_diverged

AXES = {"x": np.linspace(0.0, 1.0, 5), "seed": np.arange(4)}


def point(x, seed):
    return {
        "z": x * jnp.asarray(seed, x.dtype),
        "n": seed + 1,
        "large": x > 0.5,
        "curve": jnp.stack([x, -x, x * x]),
    }


def expected() -> dict[str, np.ndarray]:
    x, seed = AXES["x"].astype(np.float32)[:, None], AXES["seed"][None, :]
    same = np.ones((5, 4), np.float32)
    return {
        "z": x * seed.astype(np.float32),
        "n": seed + 1 + np.zeros((5, 4), int),
        "large": (x > 0.5) & (same > 0),
        "curve": np.stack([x * same, -x * same, x * x * same], axis=-1),
    }


@pytest.fixture(scope="module")
def grid():
    return prepare(point, AXES)


@pytest.fixture(scope="module")
def finished(grid, tmp_path_factory):
    """A finished store of 3 x 2 chunks, the last ones cut off, to be copied."""
    out = tmp_path_factory.mktemp("store") / "finished.zarr"
    store = Store.create(out, grid, (2, 3), identity(grid, "x = 1\ny = 1", jax.local_devices()[:1]))
    job.run(grid, out, devices=tuple(jax.local_devices()[:1]))
    assert store.num_chunks == 6
    return out


@pytest.fixture
def out(finished, tmp_path):
    return Path(shutil.copytree(finished, tmp_path / "copy.zarr"))


def run(grid, out, **named):
    return job.run(grid, out, devices=tuple(jax.local_devices()[:1]), **named)


def data_files(out: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(out)): file.read_bytes()
        for file in sorted(out.rglob("*"))
        if file.is_file() and "/c/" in file.as_posix()
    }


def test_any_xarray_user_can_open_it(out):
    data = xr.open_zarr(out)
    assert data.z.dims == ("x", "seed")
    assert data.curve.dims == ("x", "seed", "curve_0")
    np.testing.assert_array_equal(data.x, AXES["x"])
    for name, values in expected().items():
        np.testing.assert_array_equal(data[name], values)
    assert (data.status == OK).all()
    assert data.status.attrs["flag_meanings"] == "missing ok diverged nonfinite"
    assert {"program", "source", "resonance_jax", "jax", "dtype", "backend"} <= set(data.attrs)
    assert json.loads((out / "z" / "zarr.json").read_text())["zarr_format"] == 3


def test_load_gives_whole_numbers_and_booleans_back(out):
    data = load(out)
    assert data.n.dtype == np.int32
    assert data.large.dtype == bool
    for name, values in expected().items():
        np.testing.assert_array_equal(data[name], values)


def test_what_is_not_computed_is_nan(grid, tmp_path):
    out = tmp_path / "part.zarr"
    run(grid, out, chunk=4, shard=Shard(2, 5))
    data = xr.open_zarr(out)
    assert np.isfinite(data.z.isel(x=1)).all()
    for name in ("z", "n", "large", "curve"):
        assert np.isnan(data[name].isel(x=[0, 2, 3, 4])).all()
    np.testing.assert_array_equal(data.status == MISSING, np.isnan(data.z))
    assert load(out).n.dtype.kind == "f"


def test_status_of_cells():
    outputs = {
        "log10_distance": np.array([[-1.0, 2.0, np.nan, -1.0, 2.0]]),  # an output like any other
        "diverged_at": np.array([[-1, -1, -1, 7, -1]]),
        "diverged": np.array([[False, True, False, False, False]]),
        "curve": np.array([[[0.0, np.inf], [0.0, 0.0], [0.0, 0.0], [np.nan, 0.0], [0.0, 0.0]]]),
    }
    assert status_of(outputs, 2, says_diverged).tolist() == [[NONFINITE, DIVERGED, NONFINITE, DIVERGED, OK]]
    assert status_of({"n": np.array([1, 2])}, 1, says_diverged).tolist() == [OK, OK]


def test_a_result_of_nan_is_a_result(tmp_path):
    grid = prepare(lambda x: {"y": x * jnp.nan}, {"x": [1.0, 2.0]})
    assert run(grid, tmp_path / "nan.zarr", chunk=1).chunks == 2
    assert run(grid, tmp_path / "nan.zarr", resume=True).chunks == 0
    assert (xr.open_zarr(tmp_path / "nan.zarr").status == NONFINITE).all()


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def flip_a_bit(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 16
    file.write_bytes(data)


def empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("damage", [truncate, flip_a_bit, empty, Path.unlink])
@pytest.mark.parametrize("name", ["z/c/0/0", "curve/c/2/1/0", "status/c/1/0"])
def test_damaged_chunks_alone_are_computed_again(grid, out, damage, name):
    before = data_files(out)
    times = {file: (out / file).stat().st_mtime_ns for file in before}
    damage(out / name)
    outcome = run(grid, out, resume=True)
    assert (outcome.chunks, outcome.kept) == (1, 5)
    assert data_files(out) == before
    chunk = "/".join(name.split("/")[2:4])
    touched = {file for file in before if (out / file).stat().st_mtime_ns != times[file]}
    assert touched == {f"{each}/c/{chunk}" for each in ("z", "n", "large", "status")} | {f"curve/c/{chunk}/0"}


def test_a_damaged_coordinate_or_description_is_refused(grid, out):
    flip_a_bit(out / "x" / "c" / "0")
    with pytest.raises(ValueError, match=r"axis x of .*copy.zarr is damaged; give another store"):
        run(grid, out, resume=True)
    (out / "z" / "zarr.json").write_text("{")
    with pytest.raises(ValueError, match=r"is not a store of a sweep, or is damaged"):
        Store.open(out)


def test_another_sweep_is_refused(grid, out):
    other = prepare(point, AXES | {"x": np.linspace(0.0, 2.0, 5)})
    with pytest.raises(ValueError, match=r"holds another sweep: axis x is 5 values from 0 to 2 \(float64\), in"):
        run(other, out, resume=True)
    fewer = prepare(lambda x, seed: {"z": x}, {"seed": [1, 2], "x": [1.0]})
    with pytest.raises(ValueError, match=r"axes seed, x, in the store x, seed"):
        run(fewer, out, resume=True)

    def changed(x, seed):
        return point(x, seed) | {"z": x * jnp.asarray(seed, x.dtype) * 1.5}

    with pytest.raises(ValueError, match=r"the point computes something else; first change of the file: 'y = 2', in "):
        run(prepare(changed, AXES), out, source="x = 1\ny = 2", resume=True)
    with pytest.raises(ValueError, match=r"chunks of 1 x 1 cells, in the store 2 x 3"):
        run(grid, out, resume=True, chunk=1)
    with jax.enable_x64(True), pytest.raises(ValueError, match=r"dtype is float64, in the store float32"):
        run(prepare(point, AXES), out, resume=True)


def test_the_same_sweep_in_another_file_goes_on(grid, out):
    assert run(grid, out, source="# a comment", resume=True).chunks == 0


def test_who_comes_second_takes_the_store_of_the_first(grid, tmp_path):
    first = Store.create(tmp_path / "race.zarr", grid, (2, 3), {"who": "first"})
    second = Store.create(tmp_path / "race.zarr", grid, (5, 4), {"who": "second"})
    assert second.attrs["who"] == "first"
    assert second.chunk_shape == first.chunk_shape == (2, 3)
    assert [file.name for file in tmp_path.iterdir()] == ["race.zarr"]


def test_a_locked_chunk_is_refused_and_a_free_one_is_not(grid, tmp_path):
    out = tmp_path / "locked.zarr"
    Store.create(out, grid, (2, 3), identity(grid, "", jax.local_devices()[:1]))
    holder = "import fcntl, sys; f = open(sys.argv[1], 'ab'); fcntl.lockf(f, fcntl.LOCK_EX, 1, 3); print(); input()"
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(out / "status" / ".lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        with pytest.raises(ValueError, match=r"is being written by another job that works on the same chunks; wait"):
            run(grid, out)
        with pytest.raises(ValueError, match=r"is being written by another job"):
            run(grid, out, shard=Shard(2, 2))
        assert run(grid, out, shard=Shard(1, 2)).chunks == 3
        process.stdin.close()
    assert run(grid, out, resume=True).chunks == 3


@pytest.mark.parametrize("name", ["../evil", "a/b", "status", ".z", ""])
def test_names_that_lead_out_of_the_store_are_refused(tmp_path, name):
    grid = prepare(lambda x: {name: x}, {"x": [1.0]})
    with pytest.raises(ValueError, match=r"cannot be the name of an array in a store; use letters, digits and _"):
        run(grid, tmp_path / "evil.zarr")
    assert list(tmp_path.iterdir()) == []


def test_links_and_codecs_of_strangers_are_refused(grid, out, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    shutil.move(out / "z" / "c", elsewhere)
    os.symlink(elsewhere, out / "z" / "c")
    with pytest.raises(ValueError, match=r"leads out of the store"):
        run(grid, out, resume=True)
    (out / "z" / "c").unlink()
    metadata = json.loads((out / "z" / "zarr.json").read_text())
    metadata["codecs"].insert(0, {"name": "numcodecs.pickle"})
    (out / "z" / "zarr.json").write_text(json.dumps(metadata))
    with pytest.raises(ValueError, match=r"array 'z' has codecs \['numcodecs.pickle'\] that are not used here"):
        Store.open(out)


def test_no_store(tmp_path):
    with pytest.raises(ValueError, match=r"no store at .*; give the folder that a sweep was stored in"):
        Store.open(tmp_path / "none.zarr")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"no store at"):
        Store.open(tmp_path / "file")
