"""Batch jobs in this process: shards, memory, progress, plans. Tests that need other processes are in test_cli.py."""

import json
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import resonance_jax as rj
from resonance_jax.engine import memory, programs
from resonance_jax.engine.grid import prepare
from resonance_jax.engine.progress import Lines
from resonance_jax.jobs import job
from resonance_jax.jobs.plan import plan
from resonance_jax.jobs.shards import Shard
from resonance_jax.jobs.store import load

AXES = {"x": np.linspace(0.0, 1.0, 7), "y": np.linspace(1.0, 2.0, 10)}


def point(x, y):
    return {"z": jnp.sin(x) * y}


@pytest.fixture(scope="module")
def grid():
    return prepare(point, AXES)


def run(grid, out, devices=1, **named):
    return job.run(grid, out, devices=tuple(jax.local_devices()[:devices]), **named)


def test_shards_fill_one_store_with_what_one_job_computes(grid, tmp_path):
    for number in (3, 1, 2):
        outcome = run(grid, tmp_path / "shards.zarr", shard=Shard(number, 3), chunk=10)
        assert outcome.complete == (number == 2)
    assert run(grid, tmp_path / "one.zarr", chunk=10).chunks == 7
    xr.testing.assert_identical(load(tmp_path / "shards.zarr").drop_attrs(), load(tmp_path / "one.zarr").drop_attrs())
    np.testing.assert_array_equal(load(tmp_path / "one.zarr").z, rj.sweep(point, AXES, devices=1, chunk=10).z)


def test_a_sweep_with_a_store_is_the_job(grid, tmp_path):
    first = rj.sweep(point, AXES, store=tmp_path / "a.zarr", chunk=10, shard=(2, 3), devices=1)
    assert int(np.isfinite(first.z).sum()) == int((first.status == 1).sum()) == 20
    assert np.isnan(first.z[0]).all()
    data = rj.sweep(point, AXES, store=str(tmp_path / "a.zarr"), resume=True, devices=1)
    xr.testing.assert_equal(data.z, rj.sweep(point, AXES, devices=1, chunk=10).z)
    assert data.attrs["point"].endswith("test_job.point")
    assert data.attrs["source"].startswith("def point(x, y):")
    assert (data.attrs["chunk_shape"], data.attrs["num_chunks"]) == ([1, 10], 7)
    assert data.attrs["run_seconds"] > 0
    data.to_netcdf(tmp_path / "a.nc", engine="scipy")
    assert run(grid, tmp_path / "a.zarr", resume=True).kept == 7  # the command line finds the same sweep


def test_shards_and_stores_that_make_no_sense(tmp_path):
    for named in (dict(resume=True), dict(shard=(1, 2))):
        (name,) = named
        with pytest.raises(ValueError, match=rf"{name} needs a store to keep finished chunks in; give store='name"):
            rj.sweep(point, AXES, **named)
    for shard in ("3/2", "0/2", "one", (0, 2), (1, 2, 3), 1, (True, 2), (1.0, 2)):
        with pytest.raises(ValueError, match=r"shard must be i/n with i from 1 to n, got .*; of three jobs the first"):
            rj.sweep(point, AXES, store=tmp_path / "a.zarr", shard=shard)
    assert not (tmp_path / "a.zarr").exists()


def interrupt_after(number, monkeypatch):
    """A user who presses Ctrl-C after some chunks are finished."""
    compiled = programs.compile_chunk

    def compile_chunk(*arguments):
        program = compiled(*arguments)
        calls = []

        def executable(*values):
            calls.append(1)
            if len(calls) > number:
                raise KeyboardInterrupt
            return program.executable(*values)

        executable.memory_analysis = lambda: None
        return programs.Program(executable, program.shape, 0.0)

    monkeypatch.setattr(programs, "compile_chunk", compile_chunk)


def test_ctrl_c_keeps_finished_chunks(tmp_path, monkeypatch):
    out = tmp_path / "a.zarr"
    interrupt_after(3, monkeypatch)
    with pytest.raises(KeyboardInterrupt) as caught:
        rj.sweep(point, AXES, store=out, chunk=10, devices=1)
    monkeypatch.undo()
    (note,) = caught.value.__notes__
    assert note == (
        f"3 of 7 chunks were finished and are kept in {out}; the same call with resume=True goes on with the others."
    )
    assert int((load(out).status == 1).sum()) == 30
    data = rj.sweep(point, AXES, store=out, resume=True, devices=1)
    np.testing.assert_array_equal(data.z, rj.sweep(point, AXES, devices=1, chunk=10).z)


def test_ctrl_c_without_a_store_says_what_is_lost(monkeypatch):
    interrupt_after(3, monkeypatch)
    with pytest.raises(KeyboardInterrupt) as caught:
        rj.sweep(point, AXES, chunk=10, devices=1)
    (note,) = caught.value.__notes__
    assert note == (
        "30 of 70 cells were finished and are lost; store='name.zarr' keeps finished chunks, and resume=True goes on "
        "with them."
    )


def test_every_chunk_belongs_to_one_shard():
    for count in (1, 2, 3, 7, 20):
        parts = [Shard(i, count).chunks(17) for i in range(1, count + 1)]
        assert sorted(number for part in parts for number in part) == list(range(17))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_started_store_needs_resume(grid, tmp_path):
    run(grid, tmp_path / "a.zarr", chunk=10, shard=Shard(1, 2))
    with pytest.raises(ValueError, match=r"has chunks of this sweep already; resume=True goes on with them, or"):
        run(grid, tmp_path / "a.zarr")
    assert run(grid, tmp_path / "a.zarr", shard=Shard(2, 2)).chunks == 3  # the store has no chunk of this shard yet
    assert run(grid, tmp_path / "new.zarr", chunk=10, resume=True).chunks == 7  # as a preempted job is restarted


def test_another_number_of_devices_goes_on_with_the_same_chunks(grid, tmp_path):
    run(grid, tmp_path / "a.zarr", chunk=35, shard=Shard(1, 2))
    outcome = run(grid, tmp_path / "a.zarr", devices=2, resume=True)
    assert outcome.chunks == 1
    np.testing.assert_array_equal(load(tmp_path / "a.zarr").z, rj.sweep(point, AXES, devices=1).z)


BIT_EQUAL = """
import jax, sys
jax.config.update("jax_num_cpu_devices", 4)
import numpy as np, resonance_jax as rj
from pathlib import Path
def point(seed, f):
    return rj.oscillate(jax.random.key(seed), shift=rj.shifts.sinusoid(f), mu=0.98, eta=0.01, num_steps=50, tail=50,
                        problem=rj.problems.linear_regression(dim=1, samples=3))
for n in (1, 2, 4):
    axes = {"seed": np.arange(3), "f": np.linspace(0, 0.05, 9)}
    rj.sweep(point, axes, store=Path(sys.argv[1]) / f"{n}.zarr", devices=n, chunk=14)
"""


def test_one_two_and_four_devices_are_bit_equal(tmp_path):
    subprocess.run([sys.executable, "-c", BIT_EQUAL, tmp_path], check=True, stdout=subprocess.DEVNULL)
    one, two, four = (load(tmp_path / f"{n}.zarr") for n in (1, 2, 4))
    assert one.log10_distance.size == 27
    for other in (two, four):
        for name in one.data_vars:
            np.testing.assert_array_equal(one[name], other[name])


class Exhausted:
    """An executable with memory for a limited number of cells."""

    def __init__(self, most: int, most_to_compile: int = 10**9) -> None:
        self.most, self.most_to_compile = most, most_to_compile
        self.asked: list[int] = []

    def compile(self, cell, mapped, shape, devices):
        if np.prod(shape) > self.most_to_compile:
            raise MemoryError("the compiler tried its kernels out")
        program = COMPILE(cell, mapped, shape, devices)

        def executable(*values):
            self.asked.append(int(np.prod(shape)))
            if np.prod(shape) > self.most:
                raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 7 bytes.")
            return program.executable(*values)

        executable.memory_analysis = lambda: None
        return programs.Program(executable, shape, 0.0)


COMPILE = programs.compile_chunk


def test_a_chunk_that_does_not_fit_is_halved_once(grid, tmp_path, monkeypatch):
    device = Exhausted(most=20)
    monkeypatch.setattr(programs, "compile_chunk", device.compile)
    outcome = run(grid, tmp_path / "a.zarr", chunk=35)
    assert outcome.chunks == 3
    assert device.asked == [30] + [15] * 6  # tried whole once; the next chunks begin with halves
    monkeypatch.undo()
    np.testing.assert_array_equal(load(tmp_path / "a.zarr").z, rj.sweep(point, AXES, devices=1).z)


def test_a_chunk_that_does_not_fit_by_halves_is_reported(grid, tmp_path, monkeypatch):
    device = Exhausted(most=10)
    monkeypatch.setattr(programs, "compile_chunk", device.compile)
    message = r"a chunk of 40 cells does not fit into the memory of 1 x cpu \(cpu\), nor does half of one; start a new"
    with pytest.raises(MemoryError, match=message + r" store with chunk=5"):
        run(grid, tmp_path / "a.zarr", chunk=40)
    assert device.asked == [40, 20]


def test_a_chunk_that_cannot_even_be_compiled(grid, tmp_path, monkeypatch):
    device = Exhausted(most=70, most_to_compile=15)
    monkeypatch.setattr(programs, "compile_chunk", device.compile)
    assert run(grid, tmp_path / "halves.zarr", chunk=30).chunks == 3
    assert set(device.asked) == {15}
    with pytest.raises(MemoryError, match=r"a chunk of 40 cells does not fit into the memory .* chunk=5"):
        run(grid, tmp_path / "none.zarr", chunk=40)
    assert run(grid, tmp_path / "chosen.zarr").store.chunk_shape == (1, 4)  # about twenty chunks
    with pytest.raises(MemoryError, match=r"a chunk of 70 cells does not fit"):
        plan(grid, devices=tuple(jax.local_devices()[:1]), chunk=70)
    device.most_to_compile = 2
    assert run(grid, tmp_path / "smaller.zarr").store.chunk_shape == (1, 2)


def test_half_a_chunk_is_a_smaller_one_on_several_devices(grid, tmp_path, monkeypatch):
    """Half of 2 x 3 cells along its first side, rounded up for two devices, would be 2 x 3 again."""
    device = Exhausted(most=1)
    monkeypatch.setattr(programs, "compile_chunk", device.compile)
    with pytest.raises(MemoryError, match=r"one cell for each of 2 devices does not fit into the memory; take fewer"):
        run(prepare(point, {"x": [0.0, 1.0], "y": [1.0]}), tmp_path / "a.zarr", devices=2, chunk=2)
    assert device.asked == [2]  # and not the same again
    device.most, device.asked = 4, []
    assert run(prepare(point, {"x": [0.0, 1.0], "y": [1.0, 2.0, 3.0]}), tmp_path / "b.zarr", 2, chunk=6).chunks == 1
    assert device.asked == [8, 4, 4]


def test_memory_errors_of_a_sweep_say_what_to_do(grid, monkeypatch):
    monkeypatch.setattr(programs, "compile_chunk", Exhausted(most=10).compile)
    for chunk in (40, 70):  # in chunks, and whole
        with pytest.raises(MemoryError, match=rf"{chunk} cells at a time do not fit into the memory; take smaller"):
            rj.sweep(point, AXES, chunk=chunk, devices=1)


def test_other_errors_of_a_device_are_not_hidden(grid, tmp_path, monkeypatch):
    def broken(cell, mapped, shape, devices):
        def executable(*values):
            raise jax.errors.JaxRuntimeError("INTERNAL: a cable is loose")

        return programs.Program(executable, shape, 0.0)

    monkeypatch.setattr(programs, "compile_chunk", broken)
    with pytest.raises(jax.errors.JaxRuntimeError, match="a cable is loose"):
        run(grid, tmp_path / "a.zarr", chunk=40)


def test_one_line_of_json_for_each_chunk(grid, tmp_path, capsys):
    run(grid, tmp_path / "a.zarr", chunk=10, report=Lines)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["event"] for line in lines] == ["compiling", "running"] + ["chunk"] * 7
    assert [line["cells"] for line in lines[2:]] == list(range(10, 71, 10))
    assert lines[-1]["of"] == 70
    assert lines[-1]["seconds_left"] == 0
    assert all(line["cells_per_second"] > 0 for line in lines[2:])


def test_a_bar_or_nothing(tmp_path, capsys):
    rj.sweep(point, AXES, store=tmp_path / "a.zarr", chunk=35)
    assert capsys.readouterr().out == ""
    rj.sweep(point, AXES, store=tmp_path / "b.zarr", chunk=35, progress=True)
    assert "70/70 cells" in capsys.readouterr().out


def test_plan(grid):
    found = plan(grid, devices=tuple(jax.local_devices()[:1]), shard=Shard(2, 2), chunk=10)
    assert (found.cells, found.chunks, found.chunk_shape) == (30, 3, (1, 10))
    assert found.chunk_seconds > 0
    assert 2**26 < found.peak_host_bytes <= memory.peak_of_process()
    assert found.disk_bytes == 30 * 5
    with pytest.raises(ValueError, match=r"shard 9/9 has none of the 7 chunks; take fewer shards"):
        plan(grid, devices=tuple(jax.local_devices()[:1]), shard=Shard(9, 9), chunk=10)


def test_memory_that_a_control_group_leaves(tmp_path, monkeypatch):
    inner = tmp_path / "job" / "step"
    inner.mkdir(parents=True)
    (tmp_path / "job" / "memory.max").write_text("1000\n")
    (tmp_path / "job" / "memory.current").write_text("400\n")
    (inner / "memory.max").write_text("max\n")
    (inner / "memory.current").write_text("300\n")
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    read = Path.read_text
    groups = "12:cpu:/elsewhere\n0::/job/step\n"
    monkeypatch.setattr(Path, "read_text", lambda self: groups if self == Path("/proc/self/cgroup") else read(self))
    assert memory.free_memory(jax.local_devices()[0]) == 600 / 2  # two devices share it


def test_a_million_steps_of_divergence_stay_finite(tmp_path):
    def diverging(mu, eta):
        return rj.oscillate(
            jax.random.key(0),
            shift=rj.shifts.sinusoid(1 / 22),
            problem=rj.problems.linear_regression(dim=1, samples=1),
            mu=mu,
            eta=eta,
            num_steps=1_000_000,
            tail=1000,
        )

    axes = {"mu": [0.5, 0.999], "eta": [0.001, 0.1, 10.0]}
    data = rj.sweep(diverging, axes, store=tmp_path / "long.zarr", chunk=6, devices=1)
    assert np.isfinite(data.log10_distance).all()
    assert np.isfinite(data.growth_rate).all()
    assert float(data.log10_distance.max()) > 1e6  # a number of a million digits
    assert float(data.log10_distance.min()) < -100
    assert data.status.sel(mu=0.5).values.tolist() == [1, 1, 2]
