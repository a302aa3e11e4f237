"""Streams recorded from shifts with known parameters, and the models that `fit` finds in them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import toeplitz

import resonance_jax as rj
from resonance_jax.shifts.fitting import ar2_in_noise
from resonance_jax.shifts.fitting.motion import p_of_motion

fit = rj.shifts.fit


def recorded(means, samples, seed, covariance=None):
    """Rows (K samples, d) around means (K, d), of the identity or another covariance."""
    rows = np.random.default_rng(seed).normal(size=(len(means) * samples, means.shape[1]))
    rows = rows if covariance is None else rows @ np.linalg.cholesky(covariance).T
    return np.repeat(means, samples, axis=0) + rows


def means_of(shift, num_steps, seed=0):
    start_key, key = jax.random.split(jax.random.key(seed))

    def sequence(start_key, key):
        return shift.inputs(key, jnp.arange(num_steps, dtype=jnp.int32), shift.init(start_key))[0].mean

    return np.asarray(jax.jit(sequence)(start_key, key), float)


@pytest.mark.parametrize("samples", [1, 5, 20])
@pytest.mark.parametrize("f", [0.005, 1 / 22, 0.1371, 0.3])
def test_a_sinusoid(f, samples):
    """2,000 steps: the frequency to 1% and to five standard errors, which are those of the Cramer-Rao bound."""
    found = fit(recorded(means_of(rj.shifts.sinusoid(f), 2000), samples, seed=1), samples)
    bound = np.sqrt(6 / samples / 0.25 / 2000**3) / np.pi
    assert found.model == "periodic"
    assert found.frequency == pytest.approx(f, rel=0.01)
    assert found.frequency == pytest.approx(f, abs=5 * bound)
    assert found.frequency_error == pytest.approx(bound, rel=0.3)
    assert found.period == 1 / found.frequency
    error = np.sqrt(2 / samples / 2000)
    assert found.amplitude == pytest.approx(0.5, abs=5 * error)
    assert found.offset == pytest.approx(0, abs=5 * error)
    assert found.covariance == pytest.approx(1, abs=5 * np.sqrt(2 / 2000 / samples))
    assert found.explained > 0.8
    assert found.harmonics == (1,)
    assert found.p_value < 1e-3


def test_the_shift_goes_on_as_the_record():
    """Its mean at each step, and its growth, are those of the shift that was recorded."""
    shift = rj.shifts.sinusoid(1 / 22, amplitude=1.0)
    found = fit(recorded(means_of(shift, 4000), 20, seed=2), 20)
    assert np.allclose(means_of(found.shift, 4000), means_of(shift, 4000), atol=0.05)
    settings = dict(mu=0.98, eta=0.02)
    problem = rj.problems.linear_regression(dim=1, samples=20, input_variance=found.covariance)
    known = rj.problems.linear_regression(dim=1, samples=20)
    assert float(rj.theory.mean_growth(found.shift, problem, **settings)) == pytest.approx(
        float(rj.theory.mean_growth(shift, known, **settings)), abs=2e-3
    )


def test_an_ellipse_in_correlated_inputs():
    """Columns with one period and a phase between them; the long axis is the direction, the covariance is unbiased."""
    k, C = np.arange(4000), np.array([[1.0, 0.3, 0.0], [0.3, 2.0, -0.4], [0.0, -0.4, 0.5]])
    u, v = np.array([0.6, -0.8, 0.0]), np.array([0.0, 0.0, 0.3])
    turn = 2 * np.pi * 0.031 * k[:, None]
    found = fit(recorded([1.0, 2.0, 0.0] + 0.7 * np.cos(turn) * u + np.sin(turn) * v, 5, 0, C), 5)
    assert found.model == "periodic"
    assert found.frequency == pytest.approx(0.031, rel=1e-4)
    assert found.amplitude == pytest.approx(0.7, rel=0.05)
    assert found.direction == pytest.approx(-u, abs=0.05)  # the largest entry is positive
    assert np.linalg.norm(found.direction) == pytest.approx(1)
    assert found.offset == pytest.approx([1, 2, 0], abs=0.05)
    assert found.covariance == pytest.approx(C, abs=5 * 2 * np.sqrt(2 / 20_000))
    assert found.explained > 0.9


@pytest.mark.parametrize("T", [10, 33])
def test_a_square_wave(T):
    """Its harmonics, odd ones of amplitude 4 / (pi h), make the steps of the mean."""
    means = means_of(rj.shifts.square_wave(T, dim=1), 2000)
    found = fit(recorded(means, 20, seed=3), 20)
    assert found.model == "periodic"
    assert found.frequency == pytest.approx(1 / T, rel=1e-3)
    assert {1, 3, 5} <= set(found.harmonics)
    assert np.sqrt(np.mean((means_of(found.shift, 2000) - means) ** 2)) < 0.1


@pytest.mark.parametrize("samples", [1, 5])
def test_ar2(samples):
    """f = 0.03 to 1%, with a standard error of 0.14% to 0.25%; that of the variance is 40%, of 7 coherence times."""
    found = fit(recorded(means_of(rj.shifts.ar2(0.03), 10_000), samples, seed=4), samples)
    assert found.model == "ar2"
    assert found.frequency == pytest.approx(0.03, rel=0.01)
    assert 0.7 < found.frequency_error / (np.sqrt(7e-4 / 10_000) / 2 / np.pi) < 2  # more in more noise
    assert found.amplitude**2 / 2 == pytest.approx(0.1, rel=0.8)
    assert found.covariance == pytest.approx(1, abs=0.06)
    assert found.explained > 0.9


def test_ar2_along_a_direction_in_anisotropic_noise():
    """One row a step, most noise where nothing moves: the motion is found where power gathers in the spectrum."""
    u, C = np.array([0.6, 0.0, -0.8]), np.diag([1.0, 9.0, 0.5])
    means = 2.0 + means_of(rj.shifts.ar2(0.05, variance=0.3, noise_variance=1e-3), 6000) * u
    found = fit(recorded(means, 1, 5, C), 1)
    assert found.model == "ar2"
    assert found.frequency == pytest.approx(0.05, rel=0.03)
    assert np.abs(found.direction @ u) > 0.97
    assert found.covariance == pytest.approx(C, abs=0.8)
    assert found.covariance[0, 2] == pytest.approx(0, abs=0.1)
    problem = rj.problems.linear_regression(dim=3, samples=1, input_variance=found.covariance)
    assert rj.theory.almost_sure_growth(found.shift, problem, mu=0.5, eta=1e-3, num_steps=200).rate < 0


def test_a_short_record_does_not_tell_ar2_from_a_line():
    found = fit(recorded(means_of(rj.shifts.ar2(0.1), 1000, seed=3), 20, seed=3), 20)  # coherence 12,000 steps
    assert found.model == "periodic"
    assert found.frequency == pytest.approx(0.1, rel=0.01)


@pytest.mark.parametrize("ratio", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("phi", [(1.9, -0.95), (0.0, -0.99), (0.5, 0.3), (-0.7, 0.0), (1.999, -0.9992)])
def test_likelihood_of_ar2_in_noise(phi, ratio):
    """Against the Gaussian density with the whole covariance matrix."""
    phi_1, phi_2 = phi
    correlations = [1.0, phi_1 / (1 - phi_2)]
    for _ in range(198):
        correlations.append(phi_1 * correlations[-1] + phi_2 * correlations[-2])
    covariance = ratio * toeplitz(correlations) + np.eye(200)
    z = 1.3 * np.linalg.cholesky(covariance) @ np.random.default_rng(0).normal(size=200)
    squares, log_det = z @ np.linalg.solve(covariance, z), np.linalg.slogdet(covariance)[1]
    known, _ = ar2_in_noise.log_likelihood(z, phi_1, phi_2, ratio, 2.0)
    free, scale = ar2_in_noise.log_likelihood(z, phi_1, phi_2, ratio, None)
    assert scale == pytest.approx(squares / 200, rel=1e-6)
    assert known == pytest.approx(-0.5 * (200 * np.log(2) + log_det + squares / 2), abs=1e-5)
    assert free == pytest.approx(-0.5 * (200 * np.log(scale) + log_det + 200), abs=1e-5)


@pytest.mark.parametrize("phi", [(1.9, -0.95), (-0.7, -0.6), (0.5, 0.3), (-0.7, 0.2), (0.0, 0.0)])
def test_peak_of_ar2(phi):
    """Where the spectrum is largest on a fine grid; a flat one has its peak at 0."""
    f = np.linspace(0, 0.5, 50_001)
    turn = np.exp(-2j * np.pi * f)
    largest = f[np.abs(1 - phi[0] * turn - phi[1] * turn**2).argmin()]
    assert ar2_in_noise.peak(*phi) == pytest.approx(largest, abs=2e-5)


def test_false_alarms():
    """2,400 streams of iid rows: at a rate of 1e-3, more than 9 alarms have a probability of 1e-4."""
    rng, alarms = np.random.default_rng(6), 0
    for samples, dim in ((1, 1), (1, 3), (4, 1), (4, 3)):
        for _ in range(600):
            rows = rng.normal(size=(200, samples, dim)) @ np.diag([1, 10, 0.1])[:dim, :dim]
            means = rows.mean(axis=1)
            around = (rows - means[:, None]).reshape(-1, dim)
            within = around.T @ around / (200 * (samples - 1)) if samples > 1 else None
            alarms += p_of_motion(means, within, samples) < 1e-3
    assert alarms <= 9


@pytest.mark.parametrize(("samples", "dim"), [(1, 1), (5, 3)])
def test_rest(samples, dim):
    found = fit(recorded(np.full((2000, dim), 3.0), samples, seed=7), samples)
    assert (found.model, found.frequency, found.amplitude, found.explained) == ("resting", 0.0, 0.0, 0.0)
    assert np.isinf(found.period)
    assert found.p_value > 1e-3
    assert found.covariance == pytest.approx(np.eye(dim), abs=0.16)
    assert np.allclose(means_of(found.shift, 3), 3, atol=0.12)
    assert "at rest; independent rows would vary as much" in str(found)
    if dim == 1:
        rj.testing.check_shift(found.shift)


def test_a_constant_stream_is_at_rest():
    found = fit(np.full((100, 2), 7), 2)
    assert (found.model, found.p_value) == ("resting", 1.0)
    assert found.covariance == pytest.approx(0, abs=1e-20)


def test_switching_moves_without_a_period():
    """A new mean every step is white: only the variance of the batch means tells it from rest."""
    for T in (1, 7):
        found = fit(recorded(means_of(rj.shifts.switching(T, dim=2, variance=0.4), 2000), 5, seed=8), 5)
        assert (found.model, found.frequency) == ("ar2", 0.0)
        assert found.amplitude**2 / 2 == pytest.approx(0.4, rel=0.3)
        assert "The record does not tell a period: there is none, or it is longer than 667 steps" in str(found)


def test_slow_motion_has_no_period():
    """A trend, two turns of a sine, a random walk: a record of 500 steps cannot know a period of more than 167."""
    rng = np.random.default_rng(9)
    trend = fit(0.01 * np.arange(500) + rng.normal(size=500), 1)
    assert trend.model == "resting"
    assert trend.slow > 0.95
    assert "100% of the motion takes longer than 167 steps, a third of the record, too short to tell" in str(trend)
    assert fit(np.sin(4 * np.pi * np.arange(500) / 500) + 0.3 * rng.normal(size=500), 1).frequency == 0
    assert fit(np.cumsum(0.1 * rng.normal(size=500)) + rng.normal(size=500), 1).frequency == 0


def test_days_and_years():
    """Hourly temperatures: a year tells the day alone, and of years the season is the strongest line."""
    hours, rng = np.arange(5 * 8766), np.random.default_rng(10)
    season, day = 9 * np.sin(2 * np.pi * hours / 8766), 4 * np.sin(2 * np.pi * hours / 24)
    rows = 12 + 1e-4 * hours + season + day + 1.5 * rng.normal(size=len(hours))
    one = fit(rows[:8766], 4)
    assert one.period == pytest.approx(6, rel=1e-4)
    assert one.slow == pytest.approx(81 / (81 + 16), abs=0.02)
    all_years = fit(rows, 12)
    assert all_years.period == pytest.approx(8766 / 12, rel=2e-3)
    assert all_years.slow == pytest.approx(0.03, abs=0.02)


def test_two_lines_are_not_one_irregular_motion():
    k, rng = np.arange(4000), np.random.default_rng(11)
    rows = np.sin(2 * np.pi * k / 24) + 0.7 * np.sin(2 * np.pi * k / 168) + 0.5 * rng.normal(size=4000)
    found = fit(rows, 1)
    assert found.model == "periodic"
    assert found.period == pytest.approx(24, rel=1e-3)
    assert [1 / f for f in found.others] == pytest.approx([168], rel=1e-2)
    assert "Other lines, which the shift leaves out: periods of 168" in str(found)


def test_anything_that_numpy_takes():
    """Whole numbers, lists, data frames, units that differ by orders of magnitude; rows beyond the last step."""
    rng, k = np.random.default_rng(12), np.arange(1202) // 3
    counts = rng.poisson(20 + 8 * np.sin(2 * np.pi * k / 17))
    found = fit(counts.tolist(), 3)
    assert found.period == pytest.approx(17, rel=0.01)
    assert found.num_steps == 400
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"count": counts, "noise": 1e-6 * rng.normal(size=1202), "still": 1.0})
    of_frame = fit(frame, 3)
    assert of_frame.period == pytest.approx(17, rel=0.01)
    assert of_frame.direction == pytest.approx([1, 0, 0], abs=1e-5)
    assert fit(frame.astype(object), 3).frequency == of_frame.frequency


def test_alternating_steps():
    found = fit(np.tile([1.0, -1.0], 300) + np.random.default_rng(13).normal(size=600), 1)
    assert (found.model, found.period) == ("periodic", 2.0)
    assert found.amplitude == pytest.approx(1, abs=0.2)


def test_text():
    k, rng = np.arange(20_000) // 10, np.random.default_rng(0)
    line = np.sin(2 * np.pi * k / 22)[:, None] * [0.3, 0.4]
    assert str(fit(line + rng.normal(size=(20_000, 2)), 10)).splitlines() == [
        "2000 steps of 10 rows: period 21.993 +- 0.003 steps (219.93 rows), amplitude 0.51 along (0.59, 0.81).",
        "The model explains 94% of the motion of the batch means beyond sampling noise.",
        "Offset (0.0056, -0.001); rows deviate from their mean by (1, 1).",
    ]


@pytest.mark.parametrize(
    ("inputs", "samples", "message"),
    [
        (np.zeros((2, 3, 4)), 1, r"rows in the order of time, got shape \(2, 3, 4\); give \(N, d\), or \(N,\)"),
        (np.array([[1.0, 2.0]] * 20 + [[3.0, np.nan]]), 1, r"got nan in row 20, column 1 \(1 such in all\); fill gaps"),
        (np.array([np.inf] + [0.0] * 20), 1, r"inputs must be finite, got inf in row 0, column 0"),
        (np.array(["a"] * 20), 1, r"inputs must be real numbers, got dtype <U1; drop or encode other columns"),
        (np.array([[1, "a"]] * 20, object), 1, r"inputs must be real numbers, got 'a' in row 0, column 1; drop or"),
        ([[1.0], [1.0, 2.0]], 1, r"inputs must be rows of equal length, got .*; give \(N, d\), or \(N,\)"),
        (
            np.zeros(100),
            0,
            r"samples must be a whole number of at least 1, got 0; it is the number of consecutive rows",
        ),
        (np.zeros(100), 2.0, r"samples must be a whole number of at least 1, got 2.0"),
        (np.zeros(30), 2, r"at least 16 steps, got 30 rows, which are 15 steps of samples=2; record more rows, or"),
        (np.zeros(30), 31, r"at least 16 steps, got 30 rows, which are 0 steps of samples=31"),
    ],
)
def test_bad_input(inputs, samples, message):
    with pytest.raises(ValueError, match=message):
        fit(inputs, samples)
