"""Inputs of different variances, and a variance that moves: runs and all theory, against brute force."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import resonance_jax as rj
from resonance_jax.shifts import Inputs, periodic
from tests import reference

regression = rj.problems.linear_regression
SETTINGS = dict(mu=0.95, eta=0.02)


def covariance(eigenvalues, seed=0):
    """A full matrix with these eigenvalues."""
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(eigenvalues),) * 2))[0]
    return turn * np.asarray(eigenvalues) @ turn.T


COVARIANCE = covariance([0.1, 1.0, 10.0])


def test_the_reference_is_that_of_quadrature():
    """Isserlis' theorem against the quadrature over every sample that other tests use."""
    theirs = reference.expected_kronecker([0.3, -0.5], mu=0.9, eta=0.1, samples=2, variance=0.4)
    ours = reference.expected_step([0.3, -0.5], 0.4 * np.eye(2), mu=0.9, eta=0.1, samples=2)
    assert np.allclose(ours[1], theirs[1])
    assert np.sort(np.abs(np.linalg.eigvals(ours[0]))) == pytest.approx(
        np.sort(np.abs(np.linalg.eigvals(theirs[0]))), abs=1e-9
    )


def product_rates(sequence, **settings):
    """Rates of mean and mean square over (mean, covariance) of a period."""
    square, first = None, None
    for mean, C in sequence:
        step, expected = reference.expected_step(mean, C, **settings)
        square, first = (step, expected) if square is None else (step @ square, expected @ first)
    n = len(sequence)
    return reference.log_radius(first) / n, reference.log_radius(square) / (2 * n)


def both(shift, problem, **settings):
    return [
        float(rate(shift, problem, **settings).rate) for rate in (rj.theory.mean_growth, rj.theory.mean_square_growth)
    ]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["vector", "matrix"])
def test_rates_against_expected_products(x64, bias, kind):
    C = np.diag([0.1, 2.0]) if kind == "vector" else covariance([0.1, 2.0])
    variance = np.diag(C) if kind == "vector" else C
    amplitude = np.array([0.8, -0.3])
    sequence = [(amplitude * np.sin(2 * np.pi * k / 5), C) for k in range(5)]
    problem = regression(dim=2, samples=2, input_variance=variance, bias=bias)
    ours = both(rj.shifts.sinusoid(1 / 5, amplitude=amplitude), problem, **SETTINGS)
    assert ours == pytest.approx(product_rates(sequence, **SETTINGS, samples=2, bias=bias), abs=1e-9)


@pytest.mark.parametrize("variance", [0.7, "matrix"])
def test_moving_all_inputs_alike_and_breathing(x64, variance):
    C = 0.7 * np.eye(2) if variance == 0.7 else covariance([0.3, 1.5])
    problem = regression(dim=2, samples=1, input_variance=0.7 if variance == 0.7 else C)

    def profile(phase):
        wave = jnp.sin(2 * jnp.pi * phase)
        return Inputs(jnp.reshape(0.4 * wave, (1,)), 0.5 * (1 + wave))

    waves = np.sin(2 * np.pi * np.arange(6) / 6)
    sequence = [(0.4 * wave * np.ones(2), C + 0.5 * (1 + wave) * np.eye(2)) for wave in waves]
    expected = product_rates(sequence, **SETTINGS, samples=1)
    assert both(periodic(1 / 6, profile), problem, **SETTINGS) == pytest.approx(expected, abs=1e-9)

    sequence = [(np.zeros(2), C + 0.8 * (1 + wave) * np.eye(2)) for wave in waves]
    expected = product_rates(sequence, **SETTINGS, samples=1)
    assert both(rj.shifts.breathing(1 / 6, variance=0.8), problem, **SETTINGS) == pytest.approx(expected, abs=1e-9)
    baseline = product_rates([(np.zeros(2), C + 0.8 * np.eye(2))], **SETTINGS, samples=1)
    assert both(rj.shifts.breathing(0.0, variance=0.8), problem, **SETTINGS) == pytest.approx(baseline, abs=1e-9)


def test_breathing_resonates_in_continuous_time(x64):
    """Hill's equation without a bias: x'' + alpha x' + 2 (c + v (1 + sin)) x = 0, by SciPy."""
    from scipy.integrate import solve_ivp

    T, mu, eta, c, v = 17.0, 0.99, 0.01, 1.0, 0.8
    duration, alpha = T * np.sqrt(eta), (1 - mu) / np.sqrt(eta)

    def derivative(t, y):
        b = 2 * (c + v * (1 + np.sin(2 * np.pi * t / duration)))
        return np.array([y[2:], -b * y[:2] - alpha * y[2:]]).ravel()

    end = solve_ivp(derivative, (0, duration), [1, 0, 0, 1], method="DOP853", rtol=1e-12, atol=1e-14).y[:, -1]
    exact = np.log(np.abs(np.linalg.eigvals(end.reshape(2, 2))).max()) / T
    for dim in (1, 3):
        problem = regression(dim=dim, samples=1, input_variance=c, bias=False)
        ours = rj.theory.mean_growth(rj.shifts.breathing(1 / T, variance=v), problem, mu=mu, eta=eta, discrete=False)
        assert float(ours) == pytest.approx(exact, abs=1e-7)
    assert exact > 0.005  # it does resonate


@pytest.mark.parametrize("T", [1, 3])
def test_means_drawn_anew_in_anisotropic_inputs(x64, T):
    """The average over directions is estimated; against Gauss-Hermite quadrature in every entry."""
    C, v = covariance([0.2, 1.5]), 0.6
    nodes, weights = np.polynomial.hermite_e.hermegauss(2 * T + 1)
    square, first = 0, 0
    for i, j in np.ndindex(2 * T + 1, 2 * T + 1):
        step, expected = reference.expected_step(np.sqrt(v) * nodes[[i, j]], C, **SETTINGS, samples=2)
        weight = weights[i] * weights[j] / (2 * np.pi)
        square = square + weight * np.linalg.matrix_power(step, T)
        first = first + weight * np.linalg.matrix_power(expected, T)
    theirs = reference.log_radius(first) / T, reference.log_radius(square) / (2 * T)
    shift, problem = rj.shifts.switching(T, dim=2, variance=v), regression(dim=2, samples=2, input_variance=C)
    for rate, exact in zip((rj.theory.mean_growth, rj.theory.mean_square_growth), theirs, strict=True):
        found = rate(shift, problem, nodes=8, **SETTINGS)
        assert 0 < float(found.standard_error) < 1e-3
        # Eight batches: a t of 7 degrees of freedom is above 9 with probability 4e-5.
        assert float(found) == pytest.approx(exact, abs=9 * float(found.standard_error) + 1e-6)


def test_isotropic_is_the_special_case(x64):
    """A number and a multiple of the unit matrix are one problem."""
    shift = rj.shifts.sinusoid(1 / 7, amplitude=[0.3, 0.4, 0.0])
    found = [
        both(shift, regression(dim=3, samples=2, input_variance=variance), **SETTINGS)
        for variance in (0.4, 0.4 * np.eye(3))
    ]
    assert found[1] == pytest.approx(found[0], abs=1e-11)


def test_directions_are_true_by_construction(x64):
    """A circle in two of four inputs, in coordinates along two skew vectors: theory tracks two slopes, not four."""

    def circle(phase):
        angle = 2 * jnp.pi * phase
        return 0.5 * jnp.stack([jnp.sin(angle), jnp.cos(angle)])

    skew = np.array([[1.0, 2.0, 0.0, 0.5], [0.0, 1.0, -1.0, 0.3]])
    problem = regression(dim=4, samples=2)
    along = periodic(1 / 6, circle, directions=skew)
    plain = periodic(1 / 6, lambda phase: circle(phase) @ skew)
    means = [shift.inputs(jax.random.key(0), jnp.arange(6), ())[0].mean for shift in (along, plain)]
    assert np.allclose(*means)
    rate = functools.partial(rj.theory.mean_growth, problem=problem, **SETTINGS)
    assert float(rate(along)) == pytest.approx(float(rate(plain)), abs=1e-11)
    angles = 2 * np.pi * np.arange(6) / 6
    sequence = [(0.5 * np.array([np.sin(a), np.cos(a)]) @ skew, np.eye(4)) for a in angles]
    assert both(along, problem, **SETTINGS) == pytest.approx(product_rates(sequence, **SETTINGS, samples=2), abs=1e-9)


# Runs


@pytest.mark.parametrize("dim", [3, 7])  # entry by entry, and with products
def test_runs_follow_the_numpy_loop(x64, dim):
    """A run, computed in the eigenbasis or not, equals the loop over its samples; train agrees with oscillate."""
    C = covariance(np.geomspace(0.1, 10, dim))
    parts = dict(
        shift=rj.shifts.breathing(0.03, variance=0.6),
        problem=regression(dim=dim, samples=3, input_variance=C, noise_variance=0.1),
    )
    key, settings = jax.random.key(5), dict(mu=0.9, eta=0.005)
    run = jax.jit(lambda key: rj.oscillate(key, num_steps=300, tail=40, **parts, **settings))(key)
    theirs = reference.sgdm(*reference.draws(key, num_steps=300, **parts), tail=40, **settings)
    assert (float(run["log10_distance"]), float(run["growth_rate"])) == pytest.approx(theirs, abs=1e-9)
    sgd = optax.sgd(settings["eta"], momentum=settings["mu"])
    trained = jax.jit(lambda key: rj.train(key, optimizer=sgd, num_steps=300, tail=40, **parts))(key)
    assert np.log10(float(trained["distance"])) == pytest.approx(theirs[0], abs=1e-9)


def test_samples_have_the_covariance():
    """60,000 samples: standard errors of the entries below 0.058; 5 of them, false alarm below 1e-5."""
    problem = regression(dim=3, samples=60_000, input_variance=COVARIANCE)
    x = problem.batch(problem.draw(jax.random.key(0), 0), Inputs(jnp.array([1.0, 2.0, 3.0]), jnp.array(0.5)))
    x = np.asarray(x.inputs)[:, :3]
    assert np.cov(x.T) == pytest.approx(COVARIANCE + 0.5 * np.eye(3), abs=5 * 0.058)
    assert x.mean(axis=0) == pytest.approx([1.0, 2.0, 3.0], abs=5 * np.sqrt(10.5 / 60_000))


# 10^5 simulated runs: `python -m tests.moments_of_runs` runs them all; here a thousand.


def test_simulated_runs_grow_as_predicted(x64):
    """Fifteen normal scores exceed 4.7 by chance with probability below 4e-5."""
    from tests.moments_of_runs import mean_square_scores

    found = mean_square_scores(num_runs=1000, num_steps=100)
    assert len(found) == 15
    assert np.abs(list(found.values())).max() < 4.7, found


@pytest.mark.parametrize(
    ("variance", "settings", "message"),
    [
        ([1.0, 2.0], {}, r"input_variance must be one number, one for each of 3 inputs, or their covariance .* \(2,\)"),
        ([1.0, -2.0, 1.0], {}, r"input_variance must hold finite numbers >= 0, got .*; give variances"),
        (np.diag([1.0, -1.0, 1.0]), {}, r"must have no negative eigenvalue, got -1; give a covariance, e.g. np.cov"),
        (np.arange(9.0).reshape(3, 3), {}, r"must be a finite symmetric matrix; give a covariance, e.g. np.cov"),
        (np.eye(3), dict(max_dim=3, dim=2), r"got shape \(3, 3\) and max_dim; give shape \(\), \(3,\) or, without max"),
    ],
)
def test_bad_variances(variance, settings, message):
    with pytest.raises(ValueError, match=message):
        regression(**dict(dim=3, samples=1, input_variance=variance) | settings)


def test_what_theory_refuses_of_anisotropic_inputs():
    wave = rj.shifts.square_wave(6, dim=2)
    with pytest.raises(
        ValueError, match=r"each run of square_wave\(T=6, .*\) draws a direction of its own.*directions=u"
    ):
        rj.theory.mean_square_growth(wave, regression(dim=2, samples=1, input_variance=[1.0, 2.0]), **SETTINGS)
    masked = regression(dim=2, samples=1, input_variance=[1.0, 2.0, 3.0], max_dim=3)
    with pytest.raises(ValueError, match=r"theory tracks every input of this setting.*give dim as a plain number"):
        rj.theory.mean_growth(rj.shifts.sinusoid(0.1), masked, **SETTINGS)


def test_both_forms_of_the_mean_square_are_one(x64, monkeypatch):
    """Entry by entry, and in arrays for many weights; with other slopes beside them, too."""
    from resonance_jax.theory.moments import maps

    found = {}
    for form, limit in (("entries", 9), ("arrays", 0)):
        monkeypatch.setattr(maps, "ENTRYWISE", limit)
        found[form] = [
            float(rj.theory.mean_square_growth(shift, regression(dim=dim, samples=2, **problem), **SETTINGS).rate)
            for shift, dim, problem in (
                (rj.shifts.sinusoid(1 / 5), 3, {}),
                (rj.shifts.switching(3, dim=3, variance=0.4), 3, dict(bias=False)),
                (rj.shifts.sinusoid(1 / 5, amplitude=[0.1, 0.9]), 2, dict(input_variance=[[1.0, 0.3], [0.3, 0.5]])),
            )
        ]
    assert found["arrays"] == pytest.approx(found["entries"], abs=1e-11)
