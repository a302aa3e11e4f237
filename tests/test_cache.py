"""Compiled programs are found again by what they compute, in memory and on disk; direct calls are programs, too."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import resonance_jax as rj
from resonance_jax.engine import cache, executables
from resonance_jax.engine.calls import as_program


@pytest.fixture
def plain_jax(monkeypatch):
    """As if JAX had no cache of its own, which the tests have given it."""
    monkeypatch.setattr(cache, "jax", SimpleNamespace(config=SimpleNamespace(jax_compilation_cache_dir=None)))
    yield
    rj.use_compilation_cache()


@pytest.fixture
def compiles(monkeypatch):
    """What was compiled, by name: neither in memory nor on disk."""
    found = []
    in_silence = executables._told_if_slow

    def told(what):
        found.append(what)
        return in_silence(what)

    monkeypatch.setattr(executables, "_told_if_slow", told)
    executables._in_memory.clear()
    return found


def swept(factor=1.0):
    """A sweep of a function that is defined anew at every call."""

    def point(x):
        return {"y": factor * jnp.sin(x)}

    return rj.sweep(point, {"x": np.linspace(0, 1, 5)}).y.values


def test_a_function_that_is_defined_again_is_not_compiled_again(compiles):
    first, again = swept(), swept()
    assert len(compiles) == 1
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(swept(2.0), 2 * first, rtol=1e-6)  # another program
    assert len(compiles) == 2


LATER = """
import sys
import jax.numpy as jnp, numpy as np, resonance_jax as rj
from resonance_jax.engine import cache, executables

cache.LEAST_SECONDS = 0.0
folder = rj.use_compilation_cache(sys.argv[1])

def swept(must_compile):
    def point(x):
        return {"y": jnp.sin(x)}

    compiled = []
    executables._told_if_slow, told = lambda what: compiled.append(what) or told(what), executables._told_if_slow
    executables._in_memory.clear()  # as in a later process
    found = rj.sweep(point, {"x": np.linspace(0, 1, 5)}).y.values
    executables._told_if_slow = told
    np.testing.assert_allclose(found, np.sin(np.linspace(0, 1, 5)), rtol=1e-6)
    assert len(compiled) == must_compile, compiled

swept(True)
swept(False)
(file,) = folder.iterdir()
file.write_bytes(file.read_bytes()[:-100])  # a damaged file
swept(True)
rj.use_compilation_cache(False)
swept(True)
file.unlink()
rj.use_compilation_cache(__file__)  # no folder: costs only time
swept(True)
"""


def test_a_later_process_finds_it_on_disk(tmp_path):
    """In a process of its own, without the cache of JAX: what that one loads cannot be stored again."""
    script = tmp_path / "later.py"
    script.write_text(LATER)
    subprocess.run([sys.executable, script, tmp_path / "programs"], check=True, timeout=120)


def test_the_cache_of_jax_comes_first(tmp_path):
    assert jax.config.jax_compilation_cache_dir
    assert rj.use_compilation_cache(tmp_path) is None
    rj.use_compilation_cache()


def test_where_the_folder_is(monkeypatch, plain_jax):
    monkeypatch.setenv("RESONANCE_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert rj.use_compilation_cache() == Path("/cache/resonance_jax")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert rj.use_compilation_cache() == Path.home() / ".cache" / "resonance_jax"
    monkeypatch.setenv("RESONANCE_CACHE", "/chosen")
    assert rj.use_compilation_cache() == Path("/chosen")
    assert rj.use_compilation_cache("/given") == Path("/given")
    monkeypatch.setenv("RESONANCE_CACHE", "off")
    assert rj.use_compilation_cache() is None


def test_the_least_recently_used_go_first(tmp_path):
    for age, name in enumerate(("newest.program", "middle.program", "oldest.7.partial")):
        file = tmp_path / name
        file.write_bytes(b"x" * 100)
        os.utime(file, (1e9 - age, 1e9 - age))
    cache.make_room(tmp_path, most=250)
    assert sorted(file.stem for file in tmp_path.iterdir()) == ["middle", "newest"]
    (tmp_path / "notes.txt").write_text("x" * 1000)  # not ours
    cache.make_room(tmp_path, most=0)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_a_user_without_a_home(monkeypatch, plain_jax):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setenv("RESONANCE_CACHE", "")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert rj.use_compilation_cache() is None


def test_calls_back_to_python_are_not_mistaken_for_each_other():
    """Their programs read the same, whichever function they call."""

    def called(function):
        def point(x):
            return {"y": jax.pure_callback(function, jax.ShapeDtypeStruct((), x.dtype), x, vmap_method="sequential")}

        return rj.sweep(point, {"x": [1.0, 2.0]}, devices=1).y.values.tolist()

    assert called(lambda x: x + np.float32(1)) == [2, 3]
    assert called(lambda x: x * np.float32(10)) == [10, 20]


# Direct calls


def oscillated(mu=0.99, seed=0, **settings):
    problem = rj.problems.linear_regression(dim=1, samples=5)
    settings = dict(num_steps=50, tail=10) | settings
    shift = rj.shifts.sinusoid(1 / 22)
    return rj.oscillate(jax.random.key(seed), shift=shift, problem=problem, mu=mu, eta=0.01, **settings)


def test_a_run_is_compiled_once_for_all_seeds_and_momenta(compiles):
    runs = [oscillated(), oscillated(), oscillated(mu=0.9), oscillated(seed=1)]
    assert compiles == ["oscillate"]
    rates = [float(run["growth_rate"]) for run in runs]
    assert rates[0] == rates[1]
    assert len(set(rates)) == 3
    within = jax.jit(lambda mu: oscillated(mu)["growth_rate"])(0.99)
    np.testing.assert_allclose(rates[0], within, rtol=1e-5)


def test_training_too(compiles):
    def trained():
        problem = rj.problems.linear_regression(dim=1, samples=5)
        return rj.train(jax.random.key(0), problem=problem, optimizer=optax.sgd(0.01), num_steps=50, tail=10)

    first, again = trained(), trained()
    assert compiles == ["train"]
    assert float(first["distance"]) == float(again["distance"])


def test_curves_keep_their_names():
    curve = oscillated(record=5)["log10_distance_curve"]
    assert curve.dims == ("step",)
    np.testing.assert_array_equal(curve.coords[0], [10, 20, 30, 40, 50])


def test_values_out_of_range_are_refused_as_ever():
    with pytest.raises(ValueError, match=r"mu must lie in \[0, 1\], got 1.5; momentum is the share") as refused:
        oscillated(mu=1.5)
    assert not getattr(refused.value, "__notes__", [])


def test_transformations_go_through():
    """As without `as_program`: what a function closes over may belong to the transformation around it."""

    @as_program("x")
    def cubed(x, power=3):
        return {"y": x**power, "label": "cube"}

    assert cubed(2.0)["label"] == "cube"
    assert float(cubed(2.0)["y"]) == 8
    assert jax.vmap(lambda x: cubed(x)["y"])(jnp.arange(3.0)).tolist() == [0, 1, 8]
    assert jax.vmap(lambda p: cubed(2.0, power=p)["y"])(jnp.arange(3.0)).tolist() == [1, 2, 4]
    assert float(jax.grad(lambda x: cubed(x)["y"])(2.0)) == 12
    with jax.disable_jit():
        assert float(cubed(2.0)["y"]) == 8


def test_a_person_who_waits_is_told(monkeypatch, capsys):
    monkeypatch.setattr(executables, "PATIENCE", 0.0)
    monkeypatch.setattr(executables.sys.stderr, "isatty", lambda: True, raising=False)
    with executables._told_if_slow("a heatmap"):
        for _ in range(100):
            if "compiling a heatmap" in capsys.readouterr().err:
                return
            executables.time.sleep(0.01)
    raise AssertionError("nobody was told")
