import functools
import itertools
import math
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import resonance_jax as rj
from resonance_jax.engine import programs, shapes
from resonance_jax.engine.grid import prepare
from resonance_jax.numerics.labelled import Labelled

AXES = dict(seed=np.arange(3), f=np.linspace(0, 0.05, 7), mu=np.linspace(0.95, 0.999, 5))


def point(seed, f, mu, eta=0.01):
    return rj.oscillate(
        jax.random.key(seed),
        shift=rj.shifts.sinusoid(f),
        problem=rj.problems.linear_regression(dim=1, samples=4),
        mu=mu,
        eta=eta,
        num_steps=200,
        tail=200,  # one phase, half the program to compile
    )


@pytest.fixture(scope="module")
def whole():
    return rj.sweep(point, AXES, devices=1)


def test_cells_equal_single_calls(whole):
    single = jax.jit(point)
    for s, i, j in [(0, 0, 0), (2, 6, 4), (1, 3, 2)]:
        cell = single(AXES["seed"][s], np.float32(AXES["f"][i]), np.float32(AXES["mu"][j]))
        for name, value in cell.items():
            assert float(whole[name][s, i, j]) == pytest.approx(float(value), abs=2e-5)


def test_labels_and_provenance(whole):
    assert whole.log10_distance.dims == ("seed", "f", "mu")
    assert all(np.array_equal(whole[name], values) for name, values in AXES.items())
    assert whole.attrs["jax"] == jax.__version__
    assert whole.attrs["resonance_jax"] == rj.__version__
    assert whole.attrs["device"].startswith("1 x cpu")
    assert whole.attrs["point"].endswith("test_sweep.point")
    assert rj.sweep(lambda seed: {"twice": 2 * seed}, dict(seed=[1.0, 2.0])).attrs["compile_seconds"] > 0
    assert whole.attrs["run_seconds"] > 0
    assert whole.attrs["peak_bytes"] > 0


@pytest.mark.parametrize("chunk", [1, 4, 17, 1000])
def test_chunk_size_does_not_matter(whole, chunk):
    xr.testing.assert_allclose(rj.sweep(point, AXES, chunk=chunk, devices=1), whole, rtol=0, atol=2e-5)


@pytest.mark.parametrize("order", [("mu", "f", "seed"), ("f", "seed", "mu")])
def test_order_of_axes_does_not_matter(whole, order):
    turned = rj.sweep(point, {name: AXES[name] for name in order}, devices=1)
    assert turned.log10_distance.dims == order
    xr.testing.assert_allclose(turned.transpose("seed", "f", "mu"), whole, rtol=0, atol=2e-5)


def test_same_chunk_shape_is_bit_equal(whole):
    """A cell does not depend on its neighbours: other values around it, a sub-grid, reverse order, padding."""
    chunked = rj.sweep(point, AXES, chunk=5, devices=1)
    part = dict(seed=AXES["seed"][1:], f=AXES["f"][[2, 5]], mu=AXES["mu"])
    sub = rj.sweep(point, part, chunk=5, devices=1)
    assert sub.attrs["chunk_shape"] == chunked.attrs["chunk_shape"]
    assert np.array_equal(sub.log10_distance, chunked.log10_distance.sel(part))
    backwards = rj.sweep(point, {name: values[::-1] for name, values in AXES.items()}, devices=1)
    assert np.array_equal(backwards.log10_distance[::-1, ::-1, ::-1], whole.log10_distance)


def test_two_devices_give_the_same(whole):
    assert jax.local_device_count() == 2
    two = rj.sweep(point, AXES, devices=2)
    assert two.attrs["chunk_shape"] == [3, 8, 5]  # the longest side is padded to a multiple of the devices
    assert two.attrs["device"].startswith("2 x cpu")
    xr.testing.assert_allclose(two, whole, rtol=0, atol=2e-5)
    even = dict(AXES, f=AXES["f"][:6])
    chosen = [rj.sweep(point, even, devices=devices).log10_distance for devices in (None, jax.local_devices()[::-1])]
    assert np.array_equal(*chosen)
    assert np.array_equal(chosen[0], rj.sweep(point, even, devices=1).log10_distance)


def test_traced_once_and_never_compiled_again():
    traces, compilations = [], []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: compilations.append(event) if "backend_compile" in event else None
    )

    def counted(x, y):
        traces.append(1)
        return {"sum": x + jnp.sin(y)}

    first = rj.sweep(counted, dict(x=[1.0, 2.0, 3.0], y=[1.0, 2.0]))
    assert len(traces) == 1
    assert len(compilations) == 1
    again = rj.sweep(counted, dict(x=[4.0, 5.0, 6.0], y=[3.0, 4.0]))
    assert len(traces) == 1
    assert len(compilations) == 1
    assert again.attrs["compile_seconds"] == 0 < first.attrs["compile_seconds"]
    assert np.allclose(again["sum"], np.array([4, 5, 6])[:, None] + np.sin([3, 4]), rtol=1e-6)
    rj.sweep(counted, dict(x=[4.0, 5.0, 6.0], y=[3.0, 4.0]), chunk=2)
    assert len(traces) == 1  # another shape compiles, but does not trace


def test_grid_too_large_for_the_memory_is_cut(monkeypatch):
    def wide(x, y):
        return {"norm": jnp.linalg.norm(jnp.cumsum(jnp.sort(jnp.sin(jnp.arange(2000.0) * x + y))))}

    axes = dict(x=np.linspace(0, 1, 11), y=np.linspace(0, 1, 13))
    plenty = rj.sweep(wide, axes, devices=1)
    assert plenty.attrs["num_chunks"] == 1
    monkeypatch.setattr(programs, "free_memory", lambda device: 0.4 * plenty.attrs["peak_bytes"])
    cut = rj.sweep(wide, axes, devices=1)
    assert cut.attrs["num_chunks"] > 4
    assert cut.attrs["peak_bytes"] <= 0.2 * plenty.attrs["peak_bytes"]
    xr.testing.assert_allclose(cut, plenty, rtol=1e-5)
    monkeypatch.setattr(
        programs, "free_memory", lambda device: 0
    )  # nothing fits: one cell per device, and the search ends
    assert rj.sweep(wide, dict(x=[0.0, 1.0, 2.0], y=[1.0]), devices=2).attrs["chunk_shape"] == [2, 1]


def test_memory_does_not_grow_with_the_number_of_steps():
    def run(num_steps):
        def longer(seed, mu):
            problem = rj.problems.linear_regression(dim=1, samples=20)
            return rj.oscillate(
                jax.random.key(seed), shift=rj.shifts.sinusoid(0.04), problem=problem, mu=mu, eta=0.01,
                num_steps=num_steps, tail=200,
            )  # fmt: skip

        return rj.sweep(longer, dict(seed=np.arange(5), mu=np.linspace(0.9, 1, 40))).attrs["peak_bytes"]

    assert run(1450) == run(5200)  # both draw 625 steps at a time


def test_outputs_of_every_kind():
    def several(x, n):
        return {"scalar": 2 * x, "whole": n + 1, "flag": x > 0.5, "table": x * jnp.ones((2, 3)), "constant": 1.5}

    data = rj.sweep(several, dict(x=[0.0, 1.0], n=[1, 2, 3]))
    assert data.table.dims == ("x", "n", "table_0", "table_1")
    assert data.table.sizes == {"x": 2, "n": 3, "table_0": 2, "table_1": 3}
    assert data.whole.dtype == np.int32
    assert data.flag.dtype == bool
    assert data.constant.values.tolist() == [[1.5] * 3] * 2
    assert data.whole.values.tolist() == [[2, 3, 4]] * 2


def test_labelled_outputs_in_memory_and_in_a_store(tmp_path):
    def point(x, n=3):
        steps = tuple(range(10, 10 * n + 1, 10))
        table = Labelled(x * jnp.ones((2, n)), ("side", "step"), ((0.5, 1.5), steps))
        return {"curve": Labelled(x * jnp.arange(float(n)), ("step",), (steps,)), "table": table, "end": x}

    data = rj.sweep(point, {"x": [1.0, 2.0]})
    assert (data.curve.dims, data.table.dims, data.end.dims) == (("x", "step"), ("x", "side", "step"), ("x",))
    assert float(data.curve.sel(x=2.0, step=30)) == 4
    assert data.step.attrs == {"long_name": "steps done", "units": "steps"}
    stored = rj.sweep(point, {"x": [1.0, 2.0]}, store=tmp_path / "a.zarr", chunk=1)
    xr.testing.assert_equal(stored.drop_vars("status"), data)
    again = rj.sweep(point, {"x": [1.0, 2.0]}, store=tmp_path / "a.zarr", resume=True)
    xr.testing.assert_equal(again, stored)
    batched = jax.jit(jax.vmap(lambda x: point(x)["curve"]))(jnp.ones(4))
    assert np.asarray(batched).shape == (4, 3)
    with pytest.raises(ValueError, match=r"holds another sweep: axis step is 4 values from 10 to 40 .* 3 values"):
        rj.sweep(functools.partial(point, n=4), {"x": [1.0, 2.0]}, store=tmp_path / "a.zarr", resume=True)
    with pytest.raises(
        ValueError, match=r"along step \(3 values from 10 to 30\) under 'curve' for flag=True and float32"
    ):
        rj.sweep(
            lambda x, flag: {"curve": point(x)["curve"] if flag else jnp.ones(3)}, {"x": [1.0], "flag": [True, False]}
        )


def test_defaults_keywords_and_partials():
    assert rj.sweep(lambda x, scale=3.0: {"y": scale * x}, dict(x=[1.0])).y.item() == 3
    assert rj.sweep(functools.partial(lambda scale, x: {"y": scale * x}, 4.0), dict(x=[1.0])).y.item() == 4
    assert rj.sweep(lambda **values: {"y": values["a"] - values["b"]}, dict(b=[1.0], a=[5.0])).y.item() == 4


def test_float64(x64):
    data = rj.sweep(lambda x: {"y": x / 3}, dict(x=[1.0]))
    assert data.y.dtype == np.float64
    assert data.attrs["dtype"] == "float64"


def test_progress_bar(capsys):
    data = rj.sweep(lambda x: {"y": x}, dict(x=np.arange(40.0)), progress=True)
    assert data.attrs["num_chunks"] >= 10
    assert "40/40 cells" in capsys.readouterr().out


def test_the_search_for_a_chunk_ends_and_keeps_to_the_budget():
    """All small grids, devices and budgets, with a memory of as many bytes as a device has cells; nothing compiles."""
    sides = [shape for rank in (1, 2, 3) for shape in itertools.product(range(1, 5), repeat=rank)]
    for shape, devices, budget, most in itertools.product(sides, range(1, 9), (0, 0.3, 1, 2, 3.3, 9, 64), (5, 10**9)):
        tried = []

        def share(trial, devices=devices, budget=budget, most=most, tried=tried):
            tried.append(math.prod(trial))
            cells = math.prod(trial) / devices
            if cells > most:
                raise MemoryError
            return cells / budget if budget else math.inf

        found = shapes.padded(shapes.shape_that_fits(shape, math.prod(shape), devices, share), devices)
        assert all(more > less for more, less in itertools.pairwise(tried)), (shape, devices, budget)
        assert math.prod(found) <= devices * budget or math.prod(found) == devices  # one cell on each is always tried

    def never(shape):
        raise MemoryError

    with pytest.raises(MemoryError, match=r"one cell for each of 4 devices does not fit into the memory; take fewer"):
        shapes.shape_that_fits((2, 2, 2), 8, 4, never)


def test_a_chunk_rounded_up_to_four_devices_is_not_compiled_for_ever(monkeypatch):
    """Eight cells become sixteen on four devices, half of that eight again; a cell takes 0.3 of a device's budget."""
    compiled = []

    def compile_chunk(cell, mapped, shape, devices):
        compiled.append(shape)
        assert len(compiled) < 10
        program = programs.Program(None, shape, 0.0)
        program.peak_bytes = 0.3 * math.prod(shape) / len(devices)
        return program

    monkeypatch.setattr(programs, "compile_chunk", compile_chunk)
    monkeypatch.setattr(programs, "free_memory", lambda device: 1 / programs.MEMORY_SHARE)
    grid = prepare(lambda x, y, z: {"sum": x + y + z}, {name: [1.0, 2.0] for name in "xyz"})
    shape, compiled_programs = programs.compile_to_fit(grid, grid.size, ("a", "b", "c", "d"), may_shrink=True)
    assert compiled == [(4, 2, 2), (1, 4, 2)]
    assert (shape, compiled_programs[()].shape) == ((1, 2, 2), (1, 4, 2))


@pytest.mark.parametrize("shape", [(10, 100, 100), (3, 7, 5), (1,), (13, 1, 17)])
@pytest.mark.parametrize("limit", [1, 2, 6, 50, 1000, 10**9])
@pytest.mark.parametrize("devices", [1, 2, 3])
def test_shape_of_a_chunk(shape, limit, devices):
    shared = shapes.padded(shapes.chunk_shape(shape, limit), devices)
    assert np.prod(shapes.chunk_shape(shape, limit)) <= max(limit, 1)
    assert max(shared) % devices == 0
    assert all(b <= n + devices - 1 for b, n in zip(shared, shape, strict=True))
    half = shapes.halved(shared, devices)
    if half is None:
        assert np.prod(shared) == devices
    else:
        assert np.prod(half) < np.prod(shared)
        assert max(half) % devices == 0


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({}, r"axes must be a dict of at least one name and its values, got \{\}; name an argument of point"),
        (dict(x=[], y=[1.0]), r"axis 'x' must have at least one value, got none; remove it or give it values"),
        (dict(x=[[1.0]], y=[1.0]), r"axis 'x' must be 1-D, got shape \(1, 1\); wrap a single value as \[value\]"),
        (dict(x=2.0, y=[1.0]), r"axis 'x' must be 1-D, got shape \(\)"),
        (dict(x=[1.0, np.inf], y=[1.0]), r"axis 'x' must be finite in float32, got inf; drop that value"),
        (dict(x=[1e300], y=[1.0]), r"axis 'x' must be finite in float32, got 1e\+300; drop that value"),
        (dict(x=[-(2**63)], y=[1.0]), r"axis 'x' must fit into int32, got -9223372036854775808; use float values"),
        (dict(x=[np.nan], y=[1.0]), r"axis 'x' must be finite in float32, got nan"),
        (dict(x=[2**31], y=[1.0]), r"axis 'x' must fit into int32, got 2147483648; use float values"),
        (
            dict(x=[1j], y=[1.0]),
            r"axis 'x' must hold real numbers, or hashable values such as strings, got dtype",
        ),
        (
            dict(x=[1.0], z=[1.0]),
            r"axis 'z' is not a parameter of point, which has \['x', 'y'\]; rename or remove the axis",
        ),
        (dict(x=[1.0]), r"parameter 'y' of point has no axis and no default; add an axis or a default for it"),
    ],
)
def test_bad_axes(axes, message):
    with pytest.raises(ValueError, match=message):
        rj.sweep(lambda x, y: {"sum": x + y}, axes)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (1.0, r"point must return a dict of arrays, got 1.0; return e.g. \{'loss': loss\}"),
        ({}, r"point must return a dict of arrays, got \{\}"),
        (
            {"a": "text"},
            r"point must return a dict of arrays, got str under 'a'; return scalars or arrays of fixed shape",
        ),
        ({"a": None}, r"point must return a dict of arrays, got NoneType under 'a'"),
        ({1: 2.0}, r"point must return a dict of arrays, got float under 1; return scalars or arrays of fixed shape"),
        ({"x": 1.0}, r"outputs, their dimensions and axes share the names \['x'\]; rename the outputs"),
        (
            {"a": Labelled(jnp.ones(2), ("k",), ((1, 2),)), "b": Labelled(jnp.ones(2), ("k",), ((1, 3),))},
            r"outputs 'a' and 'b' share the dimension 'k' and must have the same coordinate, got 2 values from 1 to 2 "
            r"and 2 values from 1 to 3; give one of the dimensions another name",
        ),
        (
            {"a": Labelled(jnp.ones(2), ("x",), ((1, 2),))},
            r"outputs, their dimensions and axes share the names \['x'\]",
        ),
        (
            {"a": Labelled(jnp.ones(2), ("k",), ((1, 2, 3),))},
            r"the Labelled output 'a' must have a name and a coordinate for each axis of its values, of shape \(2,\), "
            r"got \('k',\) with coordinates of the lengths \(3,\); give as many numbers as the axis has entries",
        ),
        ({"a": jnp.ones(2), "a_0": 1.0}, r"outputs, their dimensions and axes share the names \['a_0'\]"),
    ],
)
def test_bad_outputs(output, message):
    with pytest.raises(ValueError, match=message):
        rj.sweep(lambda x: output, dict(x=[1.0]))


def test_other_bad_input():
    with pytest.raises(ValueError, match=r"point must be a function of named scalars, got 3; pass the function"):
        rj.sweep(3, dict(x=[1.0]))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"chunk must be a whole number of at least 1, got 0; it counts cells"):
        rj.sweep(lambda x: {"y": x}, dict(x=[1.0]), chunk=0)
    message = r"devices must be between 1 and 2, got 3; this process sees .* By default a CPU is one device: "
    with pytest.raises(ValueError, match=message + r'jax.config.update\("jax_num_cpu_devices", 3\) .*XLA_FLAGS=--xla'):
        rj.sweep(lambda x: {"y": x}, dict(x=[1.0]), devices=3)
    for devices in ([], "cpu", jax.devices()[0], [jax.devices()[0]] * 2, True):
        with pytest.raises(
            ValueError, match=r"devices must be a number or a list of different devices, got .*; leave it"
        ):
            rj.sweep(lambda x: {"y": x}, dict(x=[1.0]), devices=devices)

    class Unhashable:
        __hash__ = None

        def __call__(self, x):
            return {"y": x}

    with pytest.raises(ValueError, match=r"point must be hashable, got .*; wrap it in a function"):
        rj.sweep(Unhashable(), dict(x=[1.0]))


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (dict(T=[0, 10, -5]), r"T must lie in \[0, inf\), got -5; give the steps between two switches"),
        (dict(T=[5], v=[0.1, -0.1]), r"variance must lie in \[0, inf\), got -0.1; give a variance"),
        (dict(T=[5], dim=[1, 4]), r"dim must lie in \[1, 3\], got 4; max_dim is the largest value"),
        (dict(T=[5], mu=[0.9, 1.5]), r"mu must lie in \[0, 1\], got 1.5; momentum is the share"),
    ],
)
def test_values_on_axes_are_checked_before_anything_compiles(axes, message, monkeypatch):
    def point(T, v=0.1, dim=2, mu=0.9):
        shift = rj.shifts.switching(T, dim=dim, variance=v, max_dim=3)
        problem = rj.problems.linear_regression(dim=dim, samples=1, max_dim=3)
        return rj.oscillate(jax.random.key(0), shift=shift, problem=problem, mu=mu, eta=0.01, num_steps=20, tail=20)

    monkeypatch.setattr(programs, "compile_chunk", lambda *_: pytest.fail("compiled"))
    with pytest.raises(ValueError, match=message):
        rj.sweep(point, axes)


ALONE = """
import time
import jax, jax.numpy as jnp, numpy as np, resonance_jax as rj
from resonance_jax.engine import devices, programs

def point(x, y, kind):
    if kind == "bad":
        raise ValueError("no such kind")
    return {"z": jax.lax.fori_loop(0, 50, lambda _, z: jnp.sin(z + y), x)}

axes = dict(x=np.linspace(0, 1, 7), y=np.linspace(0, 1, 5), kind=["a", "b"])
assert len(jax.devices()) == 1
one = rj.sweep(point, axes, devices=1)
devices.MOST_CPU_DEVICES, devices.os.sched_getaffinity = 3, lambda _: set(range(64))
several = rj.sweep(point, axes)
assert one.attrs["num_chunks"] == 2 and several.attrs["num_chunks"] > 2, several.attrs
np.testing.assert_array_equal(one.z, several.z)
with jax.enable_x64(True):
    wide = rj.sweep(point, axes)
assert wide.z.dtype == np.float64 and wide.attrs["num_chunks"] > 2
np.testing.assert_allclose(wide.z, one.z, rtol=1e-5)
shown = rj.sweep(point, axes, progress=True)
np.testing.assert_array_equal(one.z, shown.z)
assert rj.sweep(point, dict(x=[0.5], y=[0.5], kind=["a"])).attrs["num_chunks"] == 1
begun = []
devices.MOST_CPU_DEVICES = 1 + 1
real = programs.start
def broken(program, grid, index):
    begun.append(index)
    time.sleep(0.3)  # two at once: the others wait
    raise MemoryError("too much")
programs.start = broken
try:
    rj.sweep(point, axes, progress=True)  # some twenty chunks
except MemoryError:
    pass
assert len(begun) < 12, "chunks were begun after an error"
programs.start = real
try:
    rj.sweep(point, axes | dict(kind=["a", "bad"]))
except ValueError as error:
    assert "no such kind" in str(error)
"""


def test_a_cpu_that_is_one_device_computes_a_chunk_on_each_core(tmp_path):
    """In a process of its own: the others have two devices. The same bits as one chunk after another."""
    script = tmp_path / "alone.py"
    script.write_text(ALONE)
    subprocess.run([sys.executable, script], check=True, timeout=120)
