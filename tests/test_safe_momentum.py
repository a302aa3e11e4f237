import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import resonance_jax as rj

PROBLEM = rj.problems.linear_regression(dim=1, samples=5, input_variance=0.25, loss_factor=0.4, reduction="sum")


def safe(rate, *, frequencies=(0.1,), eta=0.01, shift=rj.shifts.sinusoid, **settings):
    """The largest safe momentum for a rate of f, mu and eta that is written down."""

    def of_shift(shift, problem, *, mu, eta):
        return rate(1 / shift.period, mu, eta)

    return rj.theory.largest_safe_momentum(
        shift, PROBLEM, eta, frequencies=frequencies, **({"rate": of_shift} | settings)
    )


# Rates with a closed form


def test_first_frequency_and_its_momentum():
    """Grows above mu = 0.9 - f^2: the largest f is the first, whatever the order."""
    frequencies = [0.1, 0.5, 0.3]
    for tolerance in (1e-2, 1e-4, 1e-5):
        found = safe(lambda f, mu, eta: mu - 0.9 + f**2, frequencies=frequencies, tolerance=tolerance)
        assert 0.65 - tolerance - 1e-6 <= found.mu <= 0.65
        assert found.frequency == 0.5


def test_first_to_grow_is_not_the_fastest():
    """f = 0.1 grows slowly from 0.5 on, f = 0.4 fast from 0.50005 on, in the same cell of the last scan."""
    found = safe(lambda f, mu, eta: jnp.where(f < 0.2, 0.01 * (mu - 0.5), mu - 0.50005), frequencies=[0.4, 0.1])
    assert found == (pytest.approx(0.5, abs=1e-4), 0.1)


def test_growth_need_not_be_monotone():
    """Growth in (0.3, 0.5) and above 0.8: the first edge counts."""
    found = safe(lambda f, mu, eta: (mu - 0.3) * (mu - 0.5) * (mu - 0.8))
    assert found == (pytest.approx(0.3, abs=1e-4), pytest.approx(0.1))
    later = safe(lambda f, mu, eta: (mu - 0.3) * (mu - 0.5) * (mu - 0.8), lowest=0.55)
    assert later.mu == pytest.approx(0.8, abs=1e-4)


def test_window_between_two_momenta_of_the_scan_is_missed():
    def window(f, mu, eta):
        return (mu - 0.3011) * (0.3029 - mu)

    assert np.isnan(safe(window, coarse=10).frequency)
    assert safe(window, coarse=1000).mu == pytest.approx(0.3011, abs=1e-4)


def test_sgdm_on_a_quadratic():
    """z^2 - (1 + mu - eta b) z + mu = 0 has a root beyond 1 just where eta b > 2 (1 + mu): high momentum is safe."""

    def rate(f, mu, eta):
        b = 1.0
        centre = (1 + mu - eta * b) / 2
        return jnp.log(jnp.where(centre**2 > mu, abs(centre) + jnp.sqrt(jnp.maximum(centre**2 - mu, 0)), jnp.sqrt(mu)))

    grows_at_lowest = safe(rate, eta=3.0)
    assert np.isnan(grows_at_lowest.mu)
    assert grows_at_lowest.frequency == 0.1
    assert np.isnan(safe(rate, eta=3.0, lowest=0.49).mu)
    for eta, lowest in ((3.0, 0.51), (1.9, 0.0)):
        found = safe(rate, eta=eta, lowest=lowest)
        assert found.mu == pytest.approx(0.9999)
        assert np.isnan(found.frequency)
    assert safe(rate, eta=1.9, highest=0.7).mu == 0.7


def test_minus_infinity_is_no_growth():
    assert safe(lambda f, mu, eta: jnp.log(2 * mu)).mu == pytest.approx(0.5, abs=1e-4)


def test_second_call_does_not_trace():
    traces = []

    def rate(shift, problem, *, mu, eta):
        traces.append(mu)
        return mu - 1 + 1 / shift.period

    for eta, frequencies in ((0.01, [0.1]), (0.02, [0.1, 0.2])):
        rj.theory.largest_safe_momentum(rj.shifts.sinusoid, PROBLEM, eta, frequencies=frequencies, rate=rate)
    assert len(traces) == 1


# Growth of the mean, and of the mean square, the default


def mathieu_exponent(a, q):
    """Growth of y'' + (a - 2q cos 2t) y = 0 per unit of t: half the trace over a period pi is cosh(pi growth)."""

    def derivative(t, y):
        return [y[1], -(a - 2 * q * np.cos(2 * t)) * y[0], y[3], -(a - 2 * q * np.cos(2 * t)) * y[2]]

    end = solve_ivp(derivative, (0, np.pi), [1, 0, 0, 1], method="DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
    return np.arccosh(max(abs(end[0] + end[3]) / 2, 1)) / np.pi


def test_one_input_without_bias_is_the_damped_mathieu_equation():
    """B = 2 (c + m^2) with m = sin(s)/2 is 2c + 1/4 - cos(2s)/4, s = Omega t; damping takes alpha/2 of the growth."""
    eta, c = 0.01, 0.25
    problem = rj.problems.linear_regression(
        dim=1, samples=5, input_variance=c, loss_factor=0.4, reduction="sum", bias=False
    )

    def excess(mu, f):
        alpha, Omega = (1 - mu) / np.sqrt(eta), 2 * np.pi * f / np.sqrt(eta)
        growth = mathieu_exponent((2 * c + 1 / 4 - alpha**2 / 4) / Omega**2, 1 / 8 / Omega**2)
        return growth - alpha / 2 / Omega

    frequencies = (0.0, 0.012, 0.0130, 0.0138, 0.0145, 0.03)
    roots = {f: brentq(excess, 0.9, 0.9999, args=(f,), xtol=1e-7) for f in frequencies[1:] if excess(0.9999, f) > 0}
    first = min(roots, key=lambda f: roots[f])
    assert len(roots) > 1
    mean = rj.theory.mean_growth
    found = rj.theory.largest_safe_momentum(rj.shifts.sinusoid, problem, eta, frequencies=frequencies, rate=mean)
    assert roots[first] - 1e-4 <= found.mu <= roots[first] + 1e-5
    assert found.frequency == first
    standing = rj.theory.largest_safe_momentum(rj.shifts.sinusoid, problem, eta, frequencies=[0.0], rate=mean)
    assert standing.mu == pytest.approx(0.9999)  # nothing moves: damped at each momentum below 1
    assert np.isnan(standing.frequency)


def test_default_is_the_mean_square_of_a_shift():
    """Without a mean that moves, the mean-square threshold is where the rate of `resting` changes its sign."""
    problem = rj.problems.linear_regression(dim=1, samples=2, bias=False)
    found = rj.theory.largest_safe_momentum(rj.shifts.resting(), problem, 0.02)
    rate = jax.jit(lambda mu: rj.theory.mean_square_growth(rj.shifts.resting(), problem, mu=mu, eta=0.02))
    root = brentq(lambda mu: float(rate(mu)), 0.5, 0.9999, xtol=1e-6)
    assert root - 1e-4 <= found.mu <= root + 1e-5
    assert found.frequency == 0


# Bad input


def test_bad_input():
    def fails(match, rate=lambda f, mu, eta: mu, **given):
        with pytest.raises(ValueError, match=match):
            safe(rate, **given)

    fails(r"shift must be a function of the frequency, got float; pass rj.shifts.sinusoid itself", shift=0.1)
    fails(r"frequencies must be a list of finite numbers, got \[\]; give at least one", frequencies=[])
    fails(r"frequencies must be a list of finite numbers, got 0.1; give at least one", frequencies=0.1)
    fails(r"f must lie in \[0, 0.5\], got 0.7; give a frequency in turns per step", frequencies=[0.1, 0.7])
    fails(r"eta must lie in \(0, inf\), got 0.0; give a positive step size", eta=0.0)
    fails(r"lowest must lie in \[0, 1\], got -0.1; momentum is", lowest=-0.1)
    fails(r"highest must lie in \(0.5, 1\], got 0.4; it is the end of the scan", lowest=0.5, highest=0.4)
    fails(r"tolerance must lie in \[9.53674e-07, 0.5\], got 1e-09; it is a distance in mu, in float32", tolerance=1e-9)
    fails(r"coarse must be a whole number of at least 1, got 0; it counts the cells of a scan", coarse=0)
    fails(r"chunk must be a whole number of at least 1, got 0; it counts the points", chunk=0)
    fails(
        r"got NaN at 0.1 of frequencies and mu = 0.5.*; leave that value out",
        rate=lambda f, mu, eta: jnp.where(mu > 0.5, jnp.nan, -1.0),
    )
    with pytest.raises(ValueError, match=r"theory of noise is for rj.problems.linear_regression, got Problem; for"):
        rj.theory.largest_safe_momentum(rj.shifts.sinusoid, rj.problems.mlp_regression(), 0.01, frequencies=[0.1])
