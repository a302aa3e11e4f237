"""Lyapunov exponents, against determinants, quadrature and NumPy on the same draws."""

import functools

import jax
import numpy as np
import pytest
from scipy.stats import chi2

import resonance_jax as rj
from tests import reference
from tests.test_growth import rates

regression, growth = rj.problems.linear_regression, rj.theory
KEY = jax.random.key(3)


@jax.jit
def compiled(f, mu, eta, samples):
    """Both estimates for a sinusoid and one input, and the draws of the run; observation noise must not matter."""
    shift = rj.shifts.sinusoid(f)
    problem = regression(dim=1, samples=samples, max_samples=20, noise_variance=0.3)
    settings = dict(mu=mu, eta=eta)
    return (
        growth.almost_sure_growth(shift, problem, **settings, key=KEY, num_steps=5000, num_batches=10),
        growth.lyapunov_spectrum(shift, problem, **settings, key=KEY, num_steps=2000),
        reference.traced_draws(KEY, shift, problem, 5000),
    )


@functools.cache
def notions(*settings):
    """Mean, mean square, almost sure, the spectrum, the draws."""
    f, mu, eta, samples = settings
    return *rates(*settings), *compiled(*(np.float64(x) for x in (f, mu, eta)), np.int64(samples))


SETTINGS = [(0.045, 0.99, 0.01, 1), (0.045, 0.99, 0.01, 20), (0.03, 0.9, 0.05, 2), (0.0, 0.98, 0.01, 1)]


@pytest.mark.parametrize("settings", SETTINGS)
def test_exponents_sum_to_the_determinant(x64, settings):
    """det M = mu^weights at every step."""
    spectrum = np.asarray(notions(*settings)[3])
    assert spectrum.sum() == pytest.approx(2 * np.log(settings[1]), abs=1e-12)
    assert np.all(np.diff(spectrum) < 1e-3)  # from the largest on


def test_without_momentum_half_of_the_exponents_are_lost(x64):
    spectrum = notions(0.03, 0.0, 0.05, 2)[3]
    assert np.isneginf(spectrum[2:]).all()
    assert np.isfinite(spectrum[:2]).all()


@pytest.mark.parametrize("settings", SETTINGS)
def test_order_of_the_three_notions(x64, settings):
    """The mean square is the largest; four standard errors for the estimate."""
    mean, square, found, spectrum, _ = notions(*settings)
    assert found.rate < square + 4 * found.standard_error
    assert mean < square + 1e-12
    assert 0 < found.standard_error < 5e-3
    assert float(found.rate) == pytest.approx(float(spectrum[0]), abs=5 * float(found.standard_error) + 5e-3)


def test_more_samples_come_closer_to_the_rate_of_the_mean(x64):
    """The gap falls from one sample to twenty by more than a factor of five."""
    gaps = [abs(float(found.rate - mean)) for mean, _, found, _, _ in (notions(0.0, 0.98, 0.01, n) for n in (1, 5, 20))]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[0] > 5 * gaps[2]


def test_rate_is_that_of_the_numpy_loop_on_the_same_draws(x64):
    _, _, found, _, (x, _, error) = notions(0.045, 0.99, 0.01, 1)
    error, velocity, sizes = np.asarray(error), np.zeros(2), []
    for x_k in np.asarray(x)[:, :1]:
        velocity = 0.99 * velocity - 0.01 * 2 * x_k.T @ (x_k @ error)
        error = error + velocity
        sizes.append(np.log(np.linalg.norm([*error, *velocity])))
    theirs = np.diff(np.array(sizes)[499::500]) / 500
    assert float(found.rate) == pytest.approx(theirs.mean(), abs=1e-10)
    assert float(found.standard_error) == pytest.approx(theirs.std(ddof=1) / 3, abs=1e-10)


def test_iid_without_momentum_by_quadrature(x64):
    """E log |1 - eta c xx|, xx the mean square of n normals: steps are independent, so the error is known as well."""
    num_steps, eta, n = 20_000, 0.4, 2
    problem = regression(dim=1, samples=n, bias=False)
    found = jax.jit(
        lambda: growth.almost_sure_growth(
            rj.shifts.resting(), problem, mu=0.0, eta=eta, key=KEY, num_steps=num_steps, num_batches=20
        )
    )()
    levels = (np.arange(10**6) + 0.5) / 10**6
    logs = np.log(np.abs(1 - 2 * eta * chi2.ppf(levels, n) / n))
    error = logs.std() / np.sqrt(0.95 * num_steps)
    assert float(found.rate) == pytest.approx(logs.mean(), abs=4.5 * error)  # false alarm below 1e-5
    assert float(found.standard_error) == pytest.approx(error, rel=0.6)  # 19 batches: relative error 16%


def test_bad_input():
    shift, problem = rj.shifts.resting(), regression(dim=1, samples=1)
    with pytest.raises(ValueError, match=r"num_batches must .* 3 that divides num_steps=100, got 7; one batch"):
        growth.almost_sure_growth(shift, problem, mu=0.9, eta=0.1, key=KEY, num_steps=100, num_batches=7)
    with pytest.raises(ValueError, match=r"the spectrum has an exponent for each weight; give dim as a plain number"):
        growth.lyapunov_spectrum(shift, regression(dim=1, samples=1, max_dim=2), mu=0.9, eta=0.1, key=KEY)
