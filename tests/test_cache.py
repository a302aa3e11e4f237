"""Where compiled programs are stored; the tests themselves store none."""

from pathlib import Path

import jax
import pytest

from resonance_jax.engine.cache import use_compilation_cache


@pytest.fixture
def settings(monkeypatch):
    """The settings that would be made, without making them."""
    found = {}
    monkeypatch.setattr(jax.config, "update", found.__setitem__)
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    return found


def test_the_folder_is_in_the_cache_of_the_user(settings, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert use_compilation_cache() == Path("/cache/resonance_jax")
    assert settings["jax_compilation_cache_dir"] == "/cache/resonance_jax"
    assert settings["jax_persistent_cache_min_compile_time_secs"] == 0.5
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert use_compilation_cache() == Path.home() / ".cache" / "resonance_jax"


def test_a_folder_that_is_named_comes_first(settings, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "/chosen")
    assert use_compilation_cache() == Path("/chosen")
    assert use_compilation_cache("/given") == Path("/given")
