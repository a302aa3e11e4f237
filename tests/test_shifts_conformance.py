"""What every shift must do, one suite for all."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import welch

import resonance_jax as rj

SHIFTS = {
    "sinusoid": (lambda: rj.shifts.sinusoid(0.03), 1),
    "sinusoid, three inputs": (lambda: rj.shifts.sinusoid(0.03, amplitude=[0.1, 0.2, 0.3]), 3),
    "ar2": (lambda: rj.shifts.ar2(0.03), 1),
    "ar2, independent start": (lambda: rj.shifts.ar2(0.03, joint_start=False), 1),
    "square_wave": (lambda: rj.shifts.square_wave(40, dim=3), 3),
    "switching": (lambda: rj.shifts.switching(7, dim=3, variance=0.4), 3),
    "switching every step": (lambda: rj.shifts.switching(1, dim=2, variance=0.4), 2),
}
BASELINES = {
    "sinusoid": lambda: rj.shifts.sinusoid(0.0),
    "ar2": lambda: rj.shifts.ar2(0.0),
    "square_wave": lambda: rj.shifts.square_wave(0, dim=3),
    "switching": lambda: rj.shifts.switching(0, dim=3, variance=0.4),
}


def trajectory(shift, seed=0, num_steps=300, blocks=None):
    """The means of the first steps, asked for in blocks of the given lengths."""
    start_key, key = jax.random.split(jax.random.key(seed))
    state, k, parts = shift.init(start_key), 0, []
    for length in blocks or (num_steps,):
        part, state = shift.means(key, jnp.arange(k, k + length, dtype=jnp.int32), state)
        parts.append(np.asarray(part))
        k += length
    return np.concatenate(parts)


@pytest.mark.parametrize("name", SHIFTS)
def test_shapes_and_reproducibility(name):
    make, dim = SHIFTS[name]
    means = trajectory(make())
    assert means.shape == (300, dim)
    assert means.dtype == np.float32
    assert np.isfinite(means).all()
    assert np.array_equal(means, trajectory(make()))
    if "sinusoid" not in name:
        assert not np.array_equal(means, trajectory(make(), seed=1))


@pytest.mark.parametrize("name", SHIFTS)
def test_blocks_do_not_matter(name):
    make, _ = SHIFTS[name]
    assert np.allclose(trajectory(make()), trajectory(make(), blocks=(1, 24, 150, 125)), rtol=0, atol=1e-6)


def test_parameters_may_be_traced():
    """Every parameter as an argument of a compiled function gives what its value gives."""
    start_key, key = jax.random.split(jax.random.key(0))

    def first(shift):
        return shift.means(key, jnp.arange(40, dtype=jnp.int32), shift.init(start_key))[0]

    for make in (
        lambda value: rj.shifts.sinusoid(value / 10, amplitude=value),
        lambda value: rj.shifts.ar2(value / 10, variance=value, noise_variance=value / 100),
        lambda value: rj.shifts.square_wave(40 * value, dim=2, norm=value),
        lambda value: rj.shifts.switching(40 * value, dim=2, variance=value),
    ):
        value = jnp.float32(0.375)
        assert np.allclose(jax.jit(lambda value, make=make: first(make(value)))(value), first(make(value)), atol=1e-6)


@pytest.mark.parametrize("name", BASELINES)
def test_baseline_is_iid(name):
    shift = BASELINES[name]()
    assert np.array_equal(trajectory(shift), np.zeros_like(trajectory(shift)))
    assert float(np.asarray(shift.spread)) == pytest.approx(0.4 if name == "switching" else 0)


@pytest.mark.parametrize("f", [0.0005, 0.01, 0.03, 0.05, 0.2])
def test_ar2_coefficients(x64, f):
    """The two defining equations: stationary variance 0.1 for noise 1e-5, and the peak of the spectrum at f."""
    from resonance_jax.shifts.ar2 import coefficients

    phi_1, phi_2, decorrelation = (float(c) for c in coefficients(jnp.array(f), jnp.array(1e4)))
    variance = 1e-5 * (1 - phi_2) / ((1 + phi_2) * ((1 - phi_2) ** 2 - phi_1**2))
    assert variance == pytest.approx(0.1, rel=1e-10)
    assert phi_1 == pytest.approx(4 * phi_2 / (phi_2 - 1) * np.cos(2 * np.pi * f), rel=1e-12)
    assert decorrelation == pytest.approx(1 - (phi_1 / (1 - phi_2)) ** 2, rel=1e-10)
    omega = 2 * np.pi * (f + np.array([-1e-5, 0, 1e-5]))
    spectrum = 1 / np.abs(1 - phi_1 * np.exp(-1j * omega) - phi_2 * np.exp(-2j * omega)) ** 2
    assert spectrum[1] > max(spectrum[0], spectrum[2])
    assert np.abs(np.roots([1, -phi_1, -phi_2])).max() < 1


@pytest.mark.parametrize("f", [0.002, 0.02, 0.05])
def test_ar2_is_stationary_from_the_start(f):
    """200,000 runs: the variance has a standard error of 0.32%, so 2% is a false alarm of probability below 1e-9."""
    shift = rj.shifts.ar2(f)
    keys = jax.random.split(jax.random.key(3), (200_000, 2))
    means = jax.jit(jax.vmap(lambda key: shift.means(key[0], jnp.arange(40), shift.init(key[1]))[0][:, 0]))(keys)
    assert np.allclose(np.var(np.asarray(means)[:, [0, 1, 2, 39]], axis=0), 0.1, rtol=0.02)


def test_ar2_drawn_independently_starts_with_a_transient():
    shift = rj.shifts.ar2(0.002, joint_start=False)
    keys = jax.random.split(jax.random.key(3), (2000, 2))
    means = jax.jit(jax.vmap(lambda key: shift.means(key[0], jnp.arange(100), shift.init(key[1]))[0][:, 0]))(keys)
    assert np.var(means, axis=0).max() > 3


@pytest.mark.parametrize(
    ("make", "f"),
    [(rj.shifts.sinusoid, 0.03), (rj.shifts.ar2, 0.03), (lambda f: rj.shifts.square_wave(1 / f, dim=1), 0.025)],
)
def test_spectrum_peaks_at_the_frequency(make, f):
    frequencies, density = welch(trajectory(make(f), num_steps=40_000)[:, 0], nperseg=2000)
    assert frequencies[density.argmax()] == pytest.approx(f, abs=0.002)


def test_square_wave_has_the_norm_and_the_period():
    for norm in (0.5, 1.0):
        means = trajectory(rj.shifts.square_wave(30, dim=5, norm=norm), num_steps=90)
        assert np.allclose(np.linalg.norm(means, axis=1), norm, rtol=1e-6)
        assert np.array_equal(means[:15], np.repeat(means[:1], 15, axis=0))
        assert np.array_equal(means[15:30], -means[:15])
        assert np.array_equal(means[30:60], means[:30])


def test_switching_holds_each_mean_for_T_steps():
    means = trajectory(rj.shifts.switching(7, dim=2, variance=0.4), num_steps=70).reshape(10, 7, 2)
    assert np.array_equal(means, np.repeat(means[:, :1], 7, axis=1))
    assert len(np.unique(means[:, 0, 0])) == 10


def test_switching_variance():
    """50,000 independent means of 2 entries: standard error 0.45%, false alarm at 2.5% below 1e-7."""
    means = trajectory(rj.shifts.switching(1, dim=2, variance=0.4), num_steps=50_000)
    assert means.var() == pytest.approx(0.4, rel=0.025)
    assert np.abs(np.corrcoef(means[:-1, 0], means[1:, 0])[0, 1]) < 5 / np.sqrt(50_000)


def test_a_new_mean_for_every_sample_adds_its_variance_to_the_inputs():
    """20 x 5,000 inputs: standard error of the variance 0.45%."""
    problem = rj.problems.linear_regression(dim=1, samples=20, input_variance=0.25)
    shift = rj.shifts.switching(0, dim=1, variance=0.4)
    keys = jax.random.split(jax.random.key(0), 5000)
    x, _ = jax.vmap(lambda key: problem.batch(problem.noise(key), jnp.zeros(1), shift.spread))(keys)
    assert np.var(x[:, :, 0]) == pytest.approx(0.65, rel=0.025)


@pytest.mark.parametrize("name", ["ar2", "square_wave", "switching"])
def test_oscillate_follows_the_numpy_loop(x64, name):
    from tests import reference

    make, dim = SHIFTS[name]
    shift, problem = make(), rj.problems.linear_regression(dim=dim, samples=3, input_variance=0.25)
    key = jax.random.key(4)
    run = rj.oscillate(key, shift=shift, problem=problem, mu=0.95, eta=0.02, num_steps=400, tail=40)
    theirs = reference.sgdm(*reference.draws(key, shift, problem, 400), mu=0.95, eta=0.02, tail=40)
    assert (float(run["log10_distance"]), float(run["growth_rate"])) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rj.shifts.ar2(0.6), r"f must lie in \[0, 0.5\], got 0.6; give a frequency"),
        (lambda: rj.shifts.ar2(0.1, variance=0.0), r"variance must lie in \(0, inf\), got 0.0; give a variance"),
        (lambda: rj.shifts.square_wave(-1, dim=1), r"T must lie in \[0, inf\), got -1; give a period in steps"),
        (lambda: rj.shifts.square_wave(9, dim=1, norm=-1.0), r"norm must lie in \[0, inf\), got -1.0; give the length"),
        (lambda: rj.shifts.square_wave(10, dim=0), r"dim must be a whole number of at least 1, got 0"),
        (lambda: rj.shifts.switching(10, dim=1, variance=-1.0), r"variance must lie in \[0, inf\), got -1.0"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()
