"""What every shift must do, one suite for all."""

import functools

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


def compiled(make, blocks):
    """A function of the seed: the means of the first steps, in blocks of the given lengths."""

    def run(seed):
        shift = make()
        start_key, key = jax.random.split(jax.random.key(seed))
        state, k, parts = shift.init(start_key), 0, []
        for length in blocks:
            part, state = shift.inputs(key, jnp.arange(k, k + length, dtype=jnp.int32), state)
            parts.append(part.mean)
            k += length
        return jnp.concatenate(parts)

    return jax.jit(run)


def trajectory(make, num_steps):
    return np.asarray(compiled(make, (num_steps,))(0))


def test_parameters_may_be_traced():
    """A traced parameter gives the same as its plain value."""
    makes = (
        lambda value: rj.shifts.sinusoid(value / 10, amplitude=value),
        lambda value: rj.shifts.ar2(value / 10, variance=value, noise_variance=value / 100),
        lambda value: rj.shifts.square_wave(40 * value, dim=2, norm=value),
        lambda value: rj.shifts.switching(40 * value, dim=2, variance=value),
    )

    def first(value):
        start_key, key = jax.random.split(jax.random.key(0))
        shifts = [make(value) for make in makes]
        return [shift.inputs(key, jnp.arange(40, dtype=jnp.int32), shift.init(start_key))[0].mean for shift in shifts]

    value = np.float32(0.375)
    for traced, plain in zip(jax.jit(first)(value), jax.jit(lambda: first(value))(), strict=True):
        assert np.allclose(traced, plain, atol=1e-6)


@pytest.mark.parametrize("name", BASELINES)
def test_baseline_is_iid(name):
    assert not trajectory(BASELINES[name], 300).any()
    shift = BASELINES[name]()
    inputs, _ = shift.inputs(jax.random.key(0), jnp.arange(3), shift.init(jax.random.key(1)))
    assert np.asarray(inputs.variance) == pytest.approx(0.4 if name == "switching" else 0)


def test_ar2_coefficients(x64):
    """The two defining equations: stationary variance 0.1 for noise 1e-5, and the peak of the spectrum at f."""
    from resonance_jax.shifts.ar2 import coefficients

    compiled_coefficients = jax.jit(coefficients)
    for f in (0.0005, 0.01, 0.03, 0.05, 0.2):
        phi_1, phi_2, decorrelation = (float(c) for c in compiled_coefficients(np.array(f), np.array(1e4)))
        variance = 1e-5 * (1 - phi_2) / ((1 + phi_2) * ((1 - phi_2) ** 2 - phi_1**2))
        assert variance == pytest.approx(0.1, rel=1e-10)
        assert phi_1 == pytest.approx(4 * phi_2 / (phi_2 - 1) * np.cos(2 * np.pi * f), rel=1e-12)
        assert decorrelation == pytest.approx(1 - (phi_1 / (1 - phi_2)) ** 2, rel=1e-10)
        omega = 2 * np.pi * (f + np.array([-1e-5, 0, 1e-5]))
        spectrum = 1 / np.abs(1 - phi_1 * np.exp(-1j * omega) - phi_2 * np.exp(-2j * omega)) ** 2
        assert spectrum[1] > max(spectrum[0], spectrum[2])
        assert np.abs(np.roots([1, -phi_1, -phi_2])).max() < 1


def first_means(f, num_runs, num_steps, **settings):
    """Of independent runs of the AR(2) mean, (runs, steps)."""
    shift = rj.shifts.ar2(f, **settings)
    keys = jax.random.split(jax.random.key(3), (num_runs, 2))
    return jax.vmap(lambda key: shift.inputs(key[0], jnp.arange(num_steps), shift.init(key[1]))[0].mean[:, 0])(keys)


def test_ar2_is_stationary_from_the_start():
    """200,000 runs: the variance has a standard error of 0.32%, so 2% is a false alarm of probability below 1e-9."""
    means = jax.jit(lambda f: first_means(f, 200_000, 40)[:, np.array([0, 1, 2, 39])])
    for f in (0.002, 0.02, 0.05):
        assert np.allclose(np.var(np.asarray(means(f)), axis=0), 0.1, rtol=0.02), f


def test_ar2_drawn_independently_starts_with_a_transient():
    means = jax.jit(lambda f: first_means(f, 2000, 100, joint_start=False))(0.002)
    assert np.var(np.asarray(means), axis=0).max() > 3


@pytest.mark.parametrize(
    ("make", "f"),
    [(rj.shifts.sinusoid, 0.03), (rj.shifts.ar2, 0.03), (lambda f: rj.shifts.square_wave(1 / f, dim=1), 0.025)],
)
def test_spectrum_peaks_at_the_frequency(make, f):
    frequencies, density = welch(trajectory(lambda: make(f), 40_000)[:, 0], nperseg=2000)
    assert frequencies[density.argmax()] == pytest.approx(f, abs=0.002)


def test_square_wave_has_the_norm_and_the_period():
    for norm in (0.5, 1.0):
        means = trajectory(functools.partial(rj.shifts.square_wave, 30, dim=5, norm=norm), 90)
        assert np.allclose(np.linalg.norm(means, axis=1), norm, rtol=1e-6)
        assert np.array_equal(means[:15], np.repeat(means[:1], 15, axis=0))
        assert np.array_equal(means[15:30], -means[:15])
        assert np.array_equal(means[30:60], means[:30])


def test_switching_holds_each_mean_for_T_steps():
    means = trajectory(lambda: rj.shifts.switching(7, dim=2, variance=0.4), 70).reshape(10, 7, 2)
    assert np.array_equal(means, np.repeat(means[:, :1], 7, axis=1))
    assert len(np.unique(means[:, 0, 0])) == 10


def test_switching_variance():
    """50,000 independent means of 2 entries: standard error 0.45%, false alarm at 2.5% below 1e-7."""
    means = trajectory(lambda: rj.shifts.switching(1, dim=2, variance=0.4), 50_000)
    assert means.var() == pytest.approx(0.4, rel=0.025)
    assert np.abs(np.corrcoef(means[:-1, 0], means[1:, 0])[0, 1]) < 5 / np.sqrt(50_000)


def test_a_new_mean_for_every_sample_adds_its_variance_to_the_inputs():
    """20 x 5,000 inputs: standard error of the variance 0.45%."""
    problem = rj.problems.linear_regression(dim=1, samples=20, input_variance=0.25)
    shift = rj.shifts.switching(0, dim=1, variance=0.4)
    keys = jax.random.split(jax.random.key(0), 5000)
    inputs = jax.tree.map(lambda leaf: leaf[0], shift.inputs(keys[0], jnp.arange(1), ())[0])
    x, _ = jax.jit(jax.vmap(lambda key: problem.batch(problem.draw(key, 0), inputs)))(keys)
    assert np.var(x[:, :, 0]) == pytest.approx(0.65, rel=0.025)


@pytest.mark.parametrize(("name", "tail"), [("ar2", 40), ("square_wave", 400), ("switching", 400)])
def test_oscillate_follows_the_numpy_loop(x64, name, tail):
    """The AR(2) mean, the one with a memory, in two phases."""
    from tests import reference

    make, dim = SHIFTS[name]

    @jax.jit
    def run_and_draws(key):
        parts = dict(shift=make(), problem=rj.problems.linear_regression(dim=dim, samples=3, input_variance=0.25))
        run = rj.oscillate(key, mu=0.95, eta=0.02, num_steps=400, tail=tail, **parts)
        return run, reference.traced_draws(key, num_steps=400, **parts)

    run, drawn = run_and_draws(jax.random.key(4))
    theirs = reference.sgdm(*(np.asarray(each) for each in drawn), mu=0.95, eta=0.02, tail=tail)
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
