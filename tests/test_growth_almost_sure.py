"""Lyapunov exponents, against determinants, quadrature and NumPy on the same draws; and what explain makes of them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

import resonance_jax as rj
from resonance_jax.theory.explain import Explanation, Rates, _moving, _verdict
from tests import reference
from tests.test_growth import rates

regression, growth = rj.problems.linear_regression, rj.theory
KEY = jax.random.key(3)


@jax.jit
def compiled(f, mu, eta, samples):
    """Of a sinusoid and one input: both estimates, and the draws of the run. Its observation noise must not matter."""
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
    with pytest.raises(ValueError, match=r"explain needs plain numbers, got a traced eta; sweep mean_growth"):
        jax.jit(lambda eta: growth.explain(shift, problem, 0.9, eta).shift.mean)(0.1)


UP, DOWN, FAST, CLOSE = (Rates(0.0, 0.02, rate, 1e-4) for rate in (0.01, -0.01, 0.03, 1e-4))


@pytest.mark.parametrize(
    ("under", "without", "verdict", "words"),
    [
        (DOWN._replace(mean_square=-0.01), DOWN, "stable", "typical runs converge, and so does their mean square."),
        (DOWN._replace(mean_square=-0.01), UP, "stable", "Without the shift they would diverge."),
        (DOWN, DOWN, "mean-square only", "rare ones grow so much"),
        (UP, DOWN, "resonance", "diverge under the shift and converge without it."),
        (UP, UP, "noise", "does not make them diverge twice as fast."),
        (FAST, UP, "both", "at least twice as fast."),
        (CLOSE, DOWN, "undecided", "within two standard errors of 0"),
        (UP, CLOSE, "undecided", "whether they would without the shift"),
    ],
)
def test_verdicts(under, without, verdict, words):
    found, sentence = _verdict(under, without)
    assert found == verdict
    assert words in sentence


def test_explanation_is_a_table_and_a_sentence():
    text = str(Explanation(UP, DOWN, *_verdict(UP, DOWN)))
    assert [line.split("  ")[0] for line in text.splitlines()[:4]] == [
        "growth per step",
        "mean",
        "mean square",
        "almost sure",
    ]
    assert "+0.01000 +- 0.00010" in text
    assert text.splitlines()[-1].startswith("resonance: typical runs diverge")


def test_baseline_of_a_switching_mean_has_its_variance_in_the_inputs():
    """A mean of 0, and 0.4 more in the variance of the inputs, as T = 0 has; the shift itself is left as it is."""
    shift, k = rj.shifts.switching(3, dim=1, variance=0.4), jnp.arange(4)
    still, moving = (_moving(shift, jnp.float32(each)) for each in (0.0, 1.0))
    assert (float(still.spread), float(moving.spread)) == (pytest.approx(0.4), 0.0)
    assert (float(still.redrawn.variance), float(moving.redrawn.variance)) == (0.0, pytest.approx(0.4))
    assert not np.any(still.means(KEY, k, ())[0])
    assert np.array_equal(moving.means(KEY, k, ())[0], shift.means(KEY, k, ())[0])
    wave = _moving(rj.shifts.sinusoid(0.1), jnp.float32(0))
    assert (float(wave.spread), float(wave.profile(jnp.float32(0.25))[0])) == (0.0, 0.0)
