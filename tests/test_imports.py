"""What `import resonance_jax` loads, in separate processes."""

import subprocess
import sys

import pytest

import resonance_jax as rj

SLOW = ("matplotlib", "flax", "pandas", "xarray", "zarr", "optax", "scipy", "rich")


def loaded(code: str) -> set[str]:
    """Which of the slow packages a script loads."""
    script = f"{code}\nimport sys\nprint(*({set(SLOW)} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_slow_packages_wait_until_they_are_needed():
    assert loaded("import resonance_jax") == set()
    assert loaded("import resonance_jax as rj; rj.oscillate, rj.shifts, rj.problems, rj.theory") == set()
    assert {"matplotlib", "xarray"} <= loaded("import resonance_jax as rj; rj.plotting.heatmap")
    assert loaded("import resonance_cli.app") <= {"rich"}


def test_every_name_is_there():
    assert set(rj.__all__) <= set(dir(rj))
    for name in rj.__all__:
        assert getattr(rj, name).__name__.rpartition(".")[2] == name
    assert callable(rj.sweep)
    with pytest.raises(AttributeError, match=r"module 'resonance_jax' has no attribute 'sweeep'"):
        rj.sweeep  # noqa: B018


def test_the_function_hides_the_module_of_its_name():
    script = "from resonance_jax.sweep import PROGRESS_CHUNKS; import resonance_jax as rj; assert callable(rj.sweep)"
    subprocess.run([sys.executable, "-c", script], check=True)
