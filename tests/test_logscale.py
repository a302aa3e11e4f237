import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from resonance_jax.numerics import logscale
from resonance_jax.numerics.logscale import ZERO_EXPONENT, Scaled

LN2 = np.log(2)


def scaled(values, exponent):
    return Scaled(jnp.asarray(values, jnp.result_type(float)), jnp.int32(exponent))


def test_exponent_is_floor_of_log2():
    x = np.float32([1e-37, 0.1, 0.5, 1, 1.999, 2, 3e38, -5])
    assert logscale.exponent_of(jnp.asarray(x)).tolist() == np.floor(np.log2(np.abs(x))).astype(int).tolist()
    assert int(logscale.exponent_of(jnp.float32(0))) == ZERO_EXPONENT


def test_exponent_in_float64(x64):
    x = np.array([1e-300, 0.3, 1e300])
    assert logscale.exponent_of(jnp.asarray(x)).tolist() == np.floor(np.log2(x)).astype(int).tolist()


@pytest.mark.parametrize("exponent", [-1000, -126, -1, 0, 5, 127, 1000])
def test_power_of_two_is_exact_and_clipped(exponent):
    expected = np.ldexp(np.float32(1), np.clip(exponent, -126, 127))
    assert float(logscale.power_of_two(jnp.int32(exponent), jnp.float32)) == expected


def test_normalize_keeps_every_bit():
    values = np.random.default_rng(0).normal(size=8).astype(np.float32) * np.float32(1e-30)
    result = logscale.normalize(scaled(values, 70))
    assert 1 <= float(np.abs(result.mantissa).max()) < 2
    back = np.asarray(result.mantissa, float) * 2.0 ** (int(result.exponent) - 70)
    assert np.array_equal(back, values.astype(float))


def test_normalize_of_zero():
    zero = logscale.normalize(scaled([0.0, 0.0], -300))
    assert (float(zero.mantissa.max()), int(zero.exponent)) == (0, -300)


def test_room_lifts_to_the_headroom():
    x = jnp.array([3.0, -0.1])
    assert float(jnp.abs(logscale.shift_by(x, logscale.room(x, 60))).max()) == 1.5 * 2.0**60
    assert int(logscale.room(jnp.zeros(2), 60)) == 0


@pytest.mark.parametrize("apart", [-500, -20, 0, 3, 500])
def test_add(apart):
    total = logscale.add(scaled(1.5, 100), scaled(1.25, 100 + apart))
    expected = np.log(np.logaddexp2(np.log2(1.5) + 100, np.log2(1.25) + 100 + apart) * LN2)
    assert np.log(float(logscale.log(total))) == pytest.approx(expected, rel=1e-6)


def test_add_ignores_the_exponent_of_zero():
    assert float(logscale.log(logscale.add(scaled(0.0, 900), scaled(1.0, -900)))) == pytest.approx(-900 * LN2, rel=1e-6)


def test_norm_neither_overflows_nor_underflows():
    for size in (1e30, 1e-30):
        assert float(logscale.norm((jnp.float32(3 * size), jnp.float32(4 * size)))) == pytest.approx(5 * size, rel=1e-6)
    assert float(logscale.norm((jnp.float32(0),))) == 0


def test_log_norm_far_outside_the_floating_range():
    value = Scaled((jnp.float32(3), jnp.float32(4)), jnp.int32(10_000))
    assert float(logscale.log_norm(value)) == pytest.approx(np.log(5) + 10_000 * LN2, rel=1e-6)


def test_log_of_zero_is_finite_and_tiny():
    assert -100 < float(logscale.log(scaled(0.0, 0))) < -80


def test_log10_mean_is_the_mean_of_the_distances():
    x = np.random.default_rng(1).uniform(-3, 3, size=(4, 5))
    array = xr.DataArray(x, dims=("seed", "f"))
    assert np.allclose(logscale.log10_mean(array, "seed"), np.log10((10**x).mean(0)), rtol=1e-12)
    assert np.allclose(logscale.log10_mean(array + 5000, "seed"), logscale.log10_mean(array, "seed") + 5000, rtol=1e-12)


def test_norm_has_the_derivative_of_a_norm_at_every_size():
    """x / ||x||. In float32 the square of a scale of 2^75 overflows, and half of the derivative was lost with it."""
    x = np.float32([3, 4])
    for exponent in (-70, 0, 75, 120):
        slope = jax.grad(lambda x: logscale.norm((x[0], x[1:])))(jnp.asarray(np.ldexp(x, exponent)))
        assert np.allclose(slope, x / 5, rtol=1e-6)
    assert jax.grad(logscale.norm)(jnp.zeros(2)).tolist() == [0, 0]
