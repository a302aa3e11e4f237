import jax
import jax.numpy as jnp
import numpy as np
import pytest

import resonance_jax as rj
from resonance_jax.shifts.base import phase_after


def means(shift, k):
    key = jax.random.key(0)
    return np.asarray(shift.means(key, jnp.asarray(k, jnp.int32), shift.init(key))[0])


def test_sinusoid_is_the_sine_of_the_table(x64):
    k = np.arange(10_000)
    for f in (0.0, 0.0123, 1 / 22, 0.5):
        assert np.allclose(means(rj.shifts.sinusoid(f), k)[:, 0], 0.5 * np.sin(2 * np.pi * f * k), atol=1e-11)


def test_phase_does_not_drift_in_float32():
    f = np.float32(0.0371)
    k = np.arange(999_000, 1_000_000)
    exact = 0.5 * np.sin(2 * np.pi * (float(f) * k % 1))
    assert np.allclose(means(rj.shifts.sinusoid(f), k)[:, 0], exact, atol=1e-6)
    assert not np.allclose(0.5 * np.sin(2 * np.pi * f * k.astype(np.float32)), exact, atol=1e-3)  # what it avoids


def test_phase_lies_in_the_unit_interval():
    f = jnp.float32(0.49999997)
    phase = jax.vmap(lambda k: phase_after(k, f))(jnp.arange(5000, dtype=jnp.int32))
    assert float(phase.min()) >= 0
    assert float(phase.max()) < 1


def test_amplitude_gives_a_direction():
    shift = rj.shifts.sinusoid(0.25, amplitude=[1.0, 0.0, -2.0])
    assert np.allclose(means(shift, [1]), [[1, 0, -2]], atol=1e-6)


def test_period_and_profile_agree_with_the_sequence():
    shift = rj.shifts.sinusoid(1 / 40)
    assert float(shift.period) == pytest.approx(40, rel=1e-6)
    profile = jax.vmap(shift.profile)(jnp.arange(40.0) / 40)
    assert np.allclose(means(shift, np.arange(40)), profile, atol=1e-6)
    assert np.isinf(rj.shifts.sinusoid(0.0).period)


@pytest.mark.parametrize("f", [-0.01, 0.51, np.nan])
def test_bad_frequency(f):
    with pytest.raises(ValueError, match=r"f must lie in \[0, 0.5\], got .*; give a frequency in turns per step"):
        rj.shifts.sinusoid(f)
