"""Strict JAX for every test: no silent promotion of dtypes or ranks. Warnings are errors (pyproject.toml)."""

import atexit
import gc
import importlib.metadata
import os
import shutil
import tempfile

# The tests mostly compile. Without LLVM's optimisation that takes half the time, and with the older of the two code
# generators of jaxlib 0.10 half of the rest; later versions no longer have it. What the tests ask does not change.
os.environ["RESONANCE_CACHE"] = "off"  # nothing is left behind, nothing of an earlier session is used
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0"
if importlib.metadata.version("jaxlib").startswith("0.10."):
    os.environ["XLA_FLAGS"] += " --xla_cpu_use_fusion_emitters=false"

import jax
import matplotlib
import pytest

jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
matplotlib.use("Agg")
# Many tests build the same program from functions of their own; each is compiled once a session, whichever worker of
# pytest-xdist meets it first. Only this process and its workers use the folder, not the programs that tests start.
if "RESONANCE_TEST_PROGRAMS" not in os.environ:
    os.environ["RESONANCE_TEST_PROGRAMS"] = tempfile.mkdtemp(prefix="resonance-test-programs-")
    atexit.register(shutil.rmtree, os.environ["RESONANCE_TEST_PROGRAMS"], ignore_errors=True)
jax.config.update("jax_compilation_cache_dir", os.environ["RESONANCE_TEST_PROGRAMS"])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.05)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
gc.set_threshold(100_000)  # tracing makes many small objects that stay alive; Python would scan them all the time


@pytest.fixture
def x64():
    """Float64 for the length of a test."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture
def promotions_of_optax():
    """Optax counts on JAX's default promotions."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
