"""Large arrays that a point closes over are arguments of its program: kept, hashed and transferred once."""

import gc
import os
import subprocess
import sys
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import resonance_jax as rj
from resonance_jax.engine import arrays, cell, constants, programs
from resonance_jax.engine.grid import prepare
from resonance_jax.fused import fused

AXES = {"x": np.linspace(0.1, 0.9, 4), "seed": np.arange(3)}
DATA = np.random.default_rng(0).uniform(0.5, 1.5, 3000).astype(np.float32)  # 12 kB


def text_of(one):
    """The program of a cell in words."""
    scalars = [jax.ShapeDtypeStruct((), dtype) for _, dtype in one.arguments]
    return jax.jit(one.program).lower(*(array.like() for array in one.arrays), *scalars).as_text()


def only_cell(point, axes=AXES):
    (one,) = prepare(point, axes).cells.values()
    return one


# Ways to use an array, each a function of the array and a scalar.


def plainly(a, x):
    return jnp.sum(a * x)


def step_by_step(a, x):
    rows = jnp.asarray(a)
    return jax.lax.scan(lambda c, k: (jnp.cos(c) + x * rows[k], None), x, jnp.arange(5))[0]


def row_by_row(a, x):
    return jax.lax.scan(lambda c, row: (jnp.cos(c) + x * row, c), x, jnp.asarray(a))[1][-1]


def in_a_loop(a, x):
    rows = jnp.asarray(a)
    return jax.lax.fori_loop(0, 5, lambda k, c: jnp.cos(c) + rows[k], x)


def in_a_loop_without_an_end(a, x):
    rows = jnp.asarray(a)
    return jax.lax.while_loop(lambda c: c < jnp.sum(rows) / 100, lambda c: c + x * rows[0], x)


def in_a_branch(a, x):
    rows = jnp.asarray(a)
    return jax.lax.cond(x > 0.5, lambda x: x * jnp.sum(rows), lambda x: x - rows[2], x)


def for_each_row(a, x):
    return jnp.mean(jax.vmap(lambda row: jnp.sin(row * x))(jnp.asarray(a)))


def differentiated(a, x):
    return jax.grad(lambda x: jnp.sum(jnp.sin(a * x)))(x)


def compiled(a, x):
    return jax.jit(lambda x: jnp.sum(jnp.sin(a * x)))(x)


def compiled_twice(a, x):
    return jax.jit(lambda x: x + jax.jit(lambda x: jnp.sum(jnp.sin(a * x)))(x))(x) + compiled(a, -x)


def compiled_in_a_scan(a, x):
    mean = jax.jit(lambda c: jnp.mean(a * c))
    end, passed = jax.lax.scan(lambda c, k: (jnp.cos(mean(c)) + k, c * x), x, jnp.arange(5.0), unroll=2)
    return end + jnp.sum(passed)


def compiled_in_a_scan_backwards(a, x):
    mean = jax.jit(lambda c: jnp.mean(a * c))
    return jax.lax.scan(lambda c, k: (mean(c) * k, None), x, jnp.arange(1.0, 5.0), reverse=True)[0]


def compiled_in_a_scan_over_nothing(a, x):
    mean = jax.jit(lambda c: jnp.mean(a * c))
    return jax.lax.scan(lambda c, _: (jnp.cos(mean(c)) * x, None), x, length=4)[0]


def compiled_in_a_loop_without_an_end(a, x):
    mean = jax.jit(lambda c: jnp.mean(a * c))
    return jax.lax.while_loop(lambda c: mean(c) < 5, lambda c: c + mean(c) + x, x)


def compiled_in_a_branch(a, x):
    mean = jax.jit(lambda c: jnp.mean(a * c))
    return jax.lax.cond(x > 0.5, mean, lambda x: -mean(2 * x) + x, x)


def compiled_in_a_switch(a, x):
    mean = jax.jit(lambda c: jnp.mean(a * c))
    return jax.lax.switch((3 * x).astype(jnp.int32), [mean, jnp.sin, lambda c: mean(c) + c], x)


def compiled_and_differentiated(a, x):
    return jax.grad(lambda x: jnp.sin(compiled_in_a_scan(a, x)))(x)


def with_a_rule_of_its_own(a, x):
    @jax.custom_jvp
    def total(x):
        return jax.jit(lambda x: jnp.sum(jnp.sin(a * x)))(x)

    total.defjvp(lambda primals, tangents: (total(*primals), tangents[0]))
    return total(x)


def with_a_backward_rule_of_its_own(a, x):
    @jax.custom_vjp
    def total(x):
        return jax.jit(lambda x: jnp.sum(jnp.sin(a * x)))(x)

    total.defvjp(lambda x: (total(x), None), lambda _, g: (g,))
    return total(x)


def computed_again(a, x):
    small = jnp.arange(3.0)
    mean = jax.jit(lambda c: jnp.mean(a * c) + jnp.sum(small))
    return jax.grad(jax.checkpoint(lambda x: jnp.sin(mean(jnp.exp(x))) * mean(x)))(x)


def in_a_kernel(a, x):
    rows = jnp.asarray(a)
    return fused(lambda x: jax.lax.fori_loop(0, 5, lambda k, c: jnp.cos(c) + rows[k], x))(x)


def compiled_in_a_kernel(a, x):
    mean = jax.jit(lambda c: jnp.mean(a * c))
    return fused(lambda x, y: jax.lax.fori_loop(0, 5, lambda k, c: jnp.cos(mean(c)) + y, x))(x, x + 1)


USES = [
    plainly, step_by_step, row_by_row, in_a_loop, in_a_loop_without_an_end, in_a_branch, for_each_row, differentiated,
    compiled, compiled_twice, compiled_in_a_scan, compiled_in_a_scan_backwards, compiled_in_a_scan_over_nothing,
    compiled_in_a_loop_without_an_end, compiled_in_a_branch, compiled_in_a_switch, compiled_and_differentiated,
    with_a_rule_of_its_own, with_a_backward_rule_of_its_own, computed_again, in_a_kernel, compiled_in_a_kernel,
]  # fmt: skip


@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray])
@pytest.mark.parametrize("use", USES)
def test_wherever_it_is_used_an_array_is_an_argument(use, kind, monkeypatch):
    array = kind(DATA)

    def point(x):
        return {"y": use(array, x)}

    one = only_cell(point, {"x": AXES["x"]})
    assert [each.value.shape for each in one.arrays] == [DATA.shape]
    assert 'dense<"0x' not in text_of(one)
    swept = rj.sweep(point, {"x": AXES["x"]}, devices=2)

    monkeypatch.setattr(constants, "LEAST_BYTES", 10**9)
    cell._trace.cache_clear()
    assert not only_cell(point, {"x": AXES["x"]}).arrays
    np.testing.assert_allclose(swept.y, rj.sweep(point, {"x": AXES["x"]}, devices=2).y, rtol=2e-5, atol=1e-6)


def test_a_kernel_does_not_read_a_large_array_entry_by_entry():
    """Written out, that would be a load for each entry in each thread, and minutes of compiling."""
    array = jnp.asarray(np.tile(DATA, 20))

    def point(x):
        return {"y": fused(lambda x: jax.lax.fori_loop(0, 5, lambda k, c: 0.5 * c + array[7], x))(x)}

    one = only_cell(point, {"x": AXES["x"]})
    traced = jax.jit(one.program).trace(one.arrays[0].like(), jax.ShapeDtypeStruct((), jnp.float32))
    assert len(traced.lower(lowering_platforms=("cuda",)).as_text()) < 20_000


def test_a_large_array_is_not_part_of_the_program():
    """Of 2 * 10^7 numbers; compiling takes as long as with 2 * 10^3, which no clock needs to tell."""
    lengths = {}
    for size in (2 * 10**3, 2 * 10**7):
        array = np.full(size, 0.5, np.float32)

        def point(x, array=array):
            return {"y": x * jnp.sum(jax.lax.dynamic_slice(jnp.asarray(array), (jnp.int32(3),), (1000,)))}

        grid = prepare(point, {"x": [1.0, 2.0]})
        _, compiled = programs.compile_to_fit(grid, 2, tuple(jax.local_devices()[:1]), may_shrink=True)
        program = compiled[()]
        executable: Any = program.executable
        lengths[size] = len(text_of(grid.cells[()])), len(executable.as_text())
        assert program.arrays[0].nbytes == 4 * size
        assert 4 * size <= executable.memory_analysis().argument_size_in_bytes <= 4 * size + 64
        assert program.working_bytes < 10**5
        assert np.allclose(rj.sweep(point, {"x": [1.0, 2.0]}, devices=1).y, [500, 1000])
    short, long = lengths.values()
    assert max(short) < 20_000
    assert all(abs(a - b) < 500 for a, b in zip(short, long, strict=True))


def test_small_arrays_and_keys_stay_constants():
    small, keys = jnp.arange(1000.0), jax.random.split(jax.random.key(0), 2000)

    def point(seed):
        return {"y": jax.random.uniform(keys[seed]) + small[seed]}

    assert only_cell(point, {"seed": [0, 1]}).arrays == ()
    assert rj.sweep(point, {"seed": [0, 1]}).y[1] == pytest.approx(float(1 + jax.random.uniform(keys[1])))


def test_one_transfer_for_all_chunks_shapes_and_calls(monkeypatch):
    puts = []
    put = jax.device_put
    monkeypatch.setattr(arrays.jax, "device_put", lambda *args, **named: puts.append(args[0]) or put(*args, **named))
    array = jnp.asarray(DATA)

    def point(x, seed):
        return {"y": x * jnp.sum(array) + jnp.asarray(seed, x.dtype)}

    for _ in range(3):
        rj.sweep(point, AXES, devices=1)
        rj.sweep(point, AXES, devices=1, chunk=2)
    assert [each is array for each in puts] == [True]
    rj.sweep(point, AXES, devices=2)
    rj.sweep(point, AXES, devices=2, chunk=4)
    assert len(puts) == 2
    (shared,) = only_cell(point).arrays
    compiled = [
        programs.compile_chunk(only_cell(point), (0, 1), shape, tuple(jax.local_devices()))
        for shape in ((4, 3), (2, 2))
    ]
    assert all(program.arrays[0] is compiled[0].arrays[0] for program in compiled)
    assert [shard.data.shape for shard in compiled[0].arrays[0].addressable_shards] == [DATA.shape] * 2
    assert shared.value is array


def test_points_that_close_over_the_same_array_share_it():
    """Static values, too: each is a program of its own."""
    recorded = DATA.astype(np.float64)  # JAX makes a float32 copy for each point

    def make():
        return lambda x, f: {"y": f(x * jnp.sum(jnp.asarray(recorded, jnp.float32)))}

    axes = {"x": [1.0, 2.0], "f": [jnp.sin, jnp.cos]}
    cells = [one for _ in range(2) for one in prepare(make(), axes).cells.values()]
    assert len({id(array) for one in cells for array in one.arrays}) == 1
    array = jnp.asarray(DATA)
    others = [only_cell(lambda x, i=i: {"y": i * x * jnp.sum(array)}, {"x": [1.0]}) for i in range(2)]
    assert others[0].arrays[0] is others[1].arrays[0] is not cells[0].arrays[0]


def test_an_array_used_twice_is_one_argument():
    recorded = DATA + 1

    def point(x):
        again = jax.jit(lambda x: jnp.max(recorded) * x)(x)
        return {"y": again + jnp.sum(recorded * x) + jax.lax.fori_loop(0, 2, lambda k, c: compiled(recorded, c), x)}

    assert len(only_cell(point, {"x": [1.0]}).arrays) == 1


def test_cells_that_vary_do_not_copy_the_array():
    array = jnp.asarray(np.tile(DATA, 100))

    def point(x, seed):
        row = jax.random.randint(jax.random.key(seed), (), 0, array.size)
        return {"y": x * array[row]}

    data = rj.sweep(point, {"x": np.linspace(0, 1, 16), "seed": np.arange(32)}, devices=1)
    assert array.nbytes <= data.attrs["peak_bytes"] < 1.5 * array.nbytes
    rows = [int(jax.random.randint(jax.random.key(seed), (), 0, array.size)) for seed in range(32)]
    expected = np.linspace(0, 1, 16)[:, None] * np.asarray(array)[rows]
    np.testing.assert_allclose(data.y, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int32, np.uint8, np.bool_, np.complex128])
def test_every_dtype(dtype, x64):
    values: Any = np.random.default_rng(1).uniform(0, 9, 6000).astype(dtype)

    def point(n):
        return {"y": jnp.asarray(values)[n].real.astype(float), "sum": jnp.sum(jnp.asarray(values).real.astype(float))}

    (array,) = only_cell(point, {"n": [0, 5, 5999]}).arrays
    assert array.value.dtype == dtype
    data = rj.sweep(point, {"n": [0, 5, 5999]})
    assert data.y.dtype == np.float64
    assert np.array_equal(data.y, values[[0, 5, 5999]].real)
    assert data["sum"][0] == pytest.approx(values.real.sum(dtype=np.float64), rel=1e-12)


def digest_of(array):
    return prepare(lambda x: {"y": x * jnp.sum(array).astype(x.dtype)}, {"x": [1.0]}).digest()


def test_digest_tells_arrays_apart_by_their_values():
    other = DATA.copy()
    other[-7] += 1
    zeros = np.zeros(3000, np.float32)
    different = [DATA, other, zeros, -zeros, zeros.astype(np.int32), DATA[:-1], DATA[::-1]]
    assert len({digest_of(array) for array in different}) == len(different)
    assert digest_of(DATA) == digest_of(DATA.copy()) == digest_of(jnp.asarray(DATA)) == digest_of(DATA[::-1][::-1])


def test_an_array_is_hashed_once(monkeypatch):
    hashed = []
    sha256 = arrays.hashlib.sha256
    monkeypatch.setattr(arrays.hashlib, "sha256", lambda data=b"": hashed.append(data) or sha256(data))
    array = jnp.asarray(DATA)
    assert len({digest_of(array) for _ in range(3)}) == 1
    assert len([data for data in hashed if data.startswith(b"float32 (3000,)")]) == 1


def test_digest_tells_small_arrays_and_keys_apart():
    keys = [jax.random.split(jax.random.key(i), 3) for i in range(2)]
    points = [lambda seed, each=each: {"y": jax.random.uniform(each[seed])} for each in keys]
    assert len({prepare(point, {"seed": [0]}).digest() for point in points}) == 2
    assert digest_of(DATA[:20]) != digest_of(DATA[1:21])
    assert digest_of(DATA[:20]) == digest_of(jnp.asarray(DATA[:20]))


SIMPLIFIED = """
import numpy as np, jax, jax.numpy as jnp, resonance_jax as rj
from resonance_jax.engine.grid import prepare
def make(array):
    total = jax.jit(lambda c: jnp.sum(array * c))
    return lambda x: {"y": jax.lax.fori_loop(0, 2, lambda k, c: jnp.sin(total(c)), x) + jnp.max(array)}
for size in 20, 3000:
    points = [make(kind(np.arange(size, dtype=np.float32) + i)) for kind in (np.asarray, jnp.asarray) for i in (0, 1)]
    grids = [prepare(point, {"x": [0.1, 0.2]}) for point in points]
    assert [len(grid.cells[()].arrays) for grid in grids] == [int(size > 1000)] * 4
    digests = [grid.digest() for grid in grids]
    assert len(set(digests)) == 2 and digests[:2] == digests[2:]
    for point in points:
        assert np.allclose(rj.sweep(point, {"x": [0.1]}).y[0], point(jnp.float32(0.1))["y"], atol=1e-3)
"""


def test_constants_in_equations():
    """As newer versions of JAX may have them."""
    environment = os.environ | {"JAX_USE_SIMPLIFIED_JAXPR_CONSTANTS": "1"}
    subprocess.run([sys.executable, "-c", SIMPLIFIED], check=True, env=environment)


DIGEST = """
import numpy as np, jax.numpy as jnp
from resonance_jax.engine.grid import prepare
array = np.random.default_rng(0).uniform(0.5, 1.5, 3000).astype(np.float32)
print(prepare(lambda x: {"y": x * jnp.sum(array).astype(x.dtype)}, {"x": [1.0]}).digest())
"""


def test_digest_is_the_same_in_another_process():
    done = subprocess.run([sys.executable, "-c", DIGEST], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == digest_of(DATA)


def test_a_store_of_another_array_is_refused(tmp_path):
    def make(array):
        return lambda x, seed: {"y": x * array[seed]}

    first, other = jnp.asarray(DATA), jnp.asarray(DATA).at[2999].add(1)
    out = tmp_path / "a.zarr"
    data = rj.sweep(make(first), AXES, store=out, chunk=4)
    np.testing.assert_allclose(data.y, AXES["x"].astype(np.float32)[:, None] * DATA[:3], rtol=1e-6)
    with pytest.raises(ValueError, match=r"a.zarr holds another sweep: the point computes something else"):
        rj.sweep(make(other), AXES, store=out, resume=True)
    rj.sweep(make(jnp.asarray(DATA.copy())), AXES, store=out, resume=True)


def test_a_numpy_array_that_changes_later():
    """A traced point keeps what it read; a new one sees the change."""
    array = DATA.copy()

    def make():
        return lambda x: {"y": x * array[:2000].sum() + x * jnp.asarray(array)[7]}

    point = make()
    before = rj.sweep(point, {"x": [1.0, 2.0]}).y
    array *= 2
    assert np.array_equal(rj.sweep(point, {"x": [1.0, 2.0]}, chunk=1, devices=1).y, before)
    np.testing.assert_allclose(rj.sweep(make(), {"x": [1.0, 2.0]}).y, 2 * before, rtol=1e-6)


def test_arrays_go_with_the_points_that_use_them():
    def make():
        array = jnp.asarray(np.arange(5000.0, dtype=np.float32))
        return lambda x: {"y": x * jnp.sum(array)}

    point = make()
    rj.sweep(point, {"x": [1.0]})
    alive = weakref.ref(only_cell(point, {"x": [1.0]}).arrays[0])
    assert alive() is not None
    for cached in (cell._trace, cell.digest, programs.compile_chunk):
        cached.cache_clear()
    del point
    jax.clear_caches()
    gc.collect()
    assert alive() is None


def test_what_is_on_the_device_already_does_not_make_chunks_smaller(monkeypatch):
    array = jnp.asarray(np.tile(DATA, 100))  # 1.2 MB

    def point(x, seed):
        return {"y": x * array[seed]}

    monkeypatch.setattr(programs, "free_memory", lambda device: 10**5)
    data = rj.sweep(point, {"x": np.linspace(0, 1, 16), "seed": np.arange(32)}, devices=1)
    assert data.attrs["num_chunks"] == 1
    assert data.attrs["peak_bytes"] > 10**6


@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray])
def test_an_array_too_large_for_the_memory(kind, monkeypatch):
    array = kind(DATA + 3)

    def exhausted(*_, **__):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 7 bytes.")

    monkeypatch.setattr(arrays.jax, "device_put", exhausted)
    message = (
        r"an array of 1.12e-05 GiB that the point closes over does not fit into the memory of each device; take fewer "
        r"of its rows, a smaller dtype, or a device with more memory"
    )
    with pytest.raises(MemoryError, match=message):
        rj.sweep(lambda x: {"y": x * jnp.sum(array)}, {"x": [1.0, 2.0]}, chunk=1, devices=1)
