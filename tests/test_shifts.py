import functools
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import resonance_jax as rj
from resonance_jax.shifts.phase import phase_after


def means(shift, k):
    key = jax.random.key(0)
    return np.asarray(shift.inputs(key, jnp.asarray(k, jnp.int32), shift.init(key))[0].mean)


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


@pytest.mark.parametrize("f", [1e-6, 1 / 2000, 0.0371, 0.5])
@pytest.mark.parametrize("k", [10**6, 10**8, 2**31 - 1])
def test_phase_is_exact_for_every_frequency(f, k):
    """Against rational arithmetic on the float32 value of f."""
    f = np.float32(f)
    exact = float(Fraction(float(f)) * k % 1)
    error = (float(phase_after(jnp.int32(k), jnp.asarray(f))) - exact + 0.5) % 1 - 0.5
    assert abs(error) < 2**-23


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
    assert float(shift.law.period) == pytest.approx(40, rel=1e-6)
    profile = jax.vmap(shift.law.inputs)(jnp.arange(40.0) / 40).mean
    assert np.allclose(means(shift, np.arange(40)), profile, atol=1e-6)
    assert np.isinf(rj.shifts.sinusoid(0.0).law.period)


def test_bad_amplitude():
    for amplitude in (np.nan, [[0.5]], [1.0, np.inf]):
        with pytest.raises(
            ValueError, match=r"amplitude must be a finite number or one of them per input, got .*; give"
        ):
            rj.shifts.sinusoid(0.1, amplitude=amplitude)


def test_a_profile_of_ones_own():
    """f = 0 is the iid baseline, mean 0, whatever the profile; f is checked."""
    triangle = functools.partial(
        rj.shifts.periodic, profile=lambda phase: jnp.reshape(4 * jnp.abs(phase - 0.5) - 1, (1,))
    )
    assert means(triangle(0.25), np.arange(4))[:, 0].tolist() == [1, 0, -1, 0]
    assert means(triangle(0.0), np.arange(4))[:, 0].tolist() == [0, 0, 0, 0]
    with pytest.raises(ValueError, match=r"f must lie in \[0, 0.5\], got 1.25"):
        triangle(1.25)


@pytest.mark.parametrize("f", [-0.01, 0.51, np.nan])
def test_bad_frequency(f):
    with pytest.raises(ValueError, match=r"f must lie in \[0, 0.5\], got .*; give a frequency in turns per step"):
        rj.shifts.sinusoid(f)


@pytest.mark.parametrize("k", [0, 7, 10**6])
def test_phase_has_a_derivative_in_the_frequency(k):
    """d (f k mod 1) / df = k, although the phase is an integer on the way."""
    slope = jax.grad(phase_after, argnums=1)(jnp.int32(k), jnp.float32(0.0371))
    assert float(slope) == k


@pytest.mark.parametrize(
    ("size", "settings", "message"),
    [
        (
            3,
            dict(directions=[1.0, 2.0]),
            r"one number for each of the 1 directions, got a mean of shape \(3,\); return",
        ),
        (
            1,
            dict(directions=np.ones((2, 2, 2))),
            r"directions must be one vector or a list of them, got shape \(2, 2, 2\)",
        ),
        (1, dict(iid_variance=-1.0), r"iid_variance must lie in \[0, inf\), got -1.0; give what the iid baseline adds"),
    ],
)
def test_profiles_that_do_not_fit(size, settings, message):
    with pytest.raises(ValueError, match=message):
        rj.shifts.periodic(0.1, lambda phase: jnp.zeros(size), **settings).law.inputs(jnp.float32(0.3))
