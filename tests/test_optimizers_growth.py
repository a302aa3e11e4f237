"""Three notions of growth for linear optimizers, against NumPy."""

import jax
import numpy as np
import optax
import pytest

import resonance_jax as rj
from tests import reference
from tests.test_optimizers import CHAINS

NAMES = (
    "sgd",
    "nesterov",
    "two traces",
    "decay in the gradient",
    "decay of the weights",
    "quasi-hyperbolic",
    "delayed",
)
ETA, MU, SAMPLES = 0.04, 0.93, 2


def products(rows, means, C):
    """Growth per step of the mean and of the mean square over one period of means, by NumPy."""
    square, first = 1.0, 1.0
    for mean in means:
        of_squares, of_mean = reference.expected_step_of(rows, mean, C, samples=SAMPLES)
        square, first = (
            of_squares @ square if np.ndim(square) else of_squares,
            of_mean @ first if np.ndim(first) else of_mean,
        )
    return reference.log_radius(first) / len(means), reference.log_radius(square) / (2 * len(means))


@pytest.mark.parametrize(
    ("dim", "variance"), [(1, [0.7]), (2, [0.3, 1.5])], ids=["entry by entry", "in arrays, and unlike inputs"]
)
def test_mean_and_mean_square_under_a_periodic_mean(x64, dim, variance):
    """One program for all optimizers of one kind of problem; two inputs and three coordinates take the array form."""
    T, C = 5, np.diag(variance)
    direction = np.array([0.8, -0.5])[:dim]
    shift = rj.shifts.sinusoid(1 / T, amplitude=direction)
    problem = rj.problems.linear_regression(dim=dim, samples=SAMPLES, input_variance=np.array(variance))

    @jax.jit
    def rates(eta, mu):
        found = {}
        for name in NAMES:
            settings = dict(optimizer=CHAINS[name](eta, mu))
            both = (rj.theory.mean_growth, rj.theory.mean_square_growth)
            found[name] = [rate(shift, problem, **settings).rate for rate in both]
        return found

    means = [direction * np.sin(2 * np.pi * k / T) for k in range(T)]
    for name, found in rates(ETA, MU).items():
        rows = reference.rows_of(rj.optimizers.read(CHAINS[name](ETA, MU)))
        assert [float(each) for each in found] == pytest.approx(products(rows, means, C), abs=2e-8), name


def test_mean_square_where_means_are_drawn_anew(x64):
    """Two isotropic inputs, of which theory tracks one and the others together: quadrature over all means in NumPy."""
    T, v = 2, 0.3
    problem = rj.problems.linear_regression(dim=2, samples=SAMPLES, input_variance=0.6)
    nodes, weights = np.polynomial.hermite_e.hermegauss(2 * T + 2)
    names = ("nesterov", "two traces")

    @jax.jit
    def rates(T):
        shift = rj.shifts.switching(T, dim=2, variance=v)
        return [rj.theory.mean_square_growth(shift, problem, optimizer=CHAINS[name](ETA, MU)).rate for name in names]

    for name, found in zip(names, rates(float(T)), strict=True):
        rows = reference.rows_of(rj.optimizers.read(CHAINS[name](ETA, MU)))
        average = 0
        for a, p in zip(nodes, weights, strict=True):
            for b, q in zip(nodes, weights, strict=True):
                mean = np.sqrt(v) * np.array([a, b])
                step = reference.expected_step_of(rows, mean, 0.6 * np.eye(2), samples=SAMPLES)[0]
                average = average + p * q / (2 * np.pi) * np.linalg.matrix_power(step, T)
        assert float(found) == pytest.approx(reference.log_radius(average) / (2 * T), abs=1e-8), name


TEN = [  # optimizer, eta, mu, period, samples
    ("nesterov", 0.01, 0.97, 22, 20),
    ("nesterov", 0.01, 0.99, 22, 1),
    ("nesterov", 0.05, 0.95, 12, 2),
    ("nesterov", 0.2, 0.8, 7, 1),
    ("two traces", 0.01, 0.9, 22, 5),
    ("two traces", 0.02, 0.97, 16, 20),
    ("ema", 0.02, 0.97, 30, 5),
    ("quasi-hyperbolic", 0.03, 0.95, 18, 2),
    ("decay in the gradient", 0.01, 0.99, 22, 5),
    ("sgd", 0.3, 0.0, 9, 1),
]
RUNS, STEPS = 24, 4000


def test_almost_sure_at_ten_settings(x64):
    """Runs of NumPy with samples of their own; differences beyond four standard errors in one of 1,600 such tests."""
    rng = np.random.default_rng(4)
    worst = []
    for name, eta, mu, T, samples in TEN:
        rows = reference.rows_of(rj.optimizers.read(CHAINS[name](eta, mu)))
        still, gains = np.array(rows)[:, 1:], np.array(rows)[:, 0]
        state = np.zeros((RUNS, len(rows), 2))
        state[:, 0] = rng.normal(size=(RUNS, 2))
        logs = np.zeros((RUNS, 2))
        for k in range(STEPS):
            mean = 0.5 * np.sin(2 * np.pi * k / T)
            x = np.stack([mean + rng.normal(size=(RUNS, samples)), np.ones((RUNS, samples))], axis=-1)
            gradient = 2 * np.einsum("rs,rsi->ri", np.einsum("rsi,ri->rs", x, state[:, 0]), x) / samples
            state = np.einsum("ab,rbi->rai", still, state) + gains[None, :, None] * gradient[:, None, :]
            size = np.linalg.norm(state, axis=(1, 2))
            state = state / size[:, None, None]
            logs[:, int(k >= STEPS // 4)] += np.log(size)
        theirs = logs[:, 1] / (STEPS - STEPS // 4)
        found = almost_sure(name, eta, mu, T, samples)
        error = np.hypot(theirs.std(ddof=1) / np.sqrt(RUNS), found.std(ddof=1) / np.sqrt(len(found)))
        worst.append(abs(theirs.mean() - found.mean()) / error)
    assert max(worst) < 4, worst


def almost_sure(name, eta, mu, T, samples):
    problem = rj.problems.linear_regression(dim=1, samples=samples)
    shift = rj.shifts.sinusoid(1 / T)

    def one(key, eta, mu):
        return rj.theory.almost_sure_growth(
            shift, problem, optimizer=CHAINS[name](eta, mu), key=key, num_steps=4 * 22 * 45, num_batches=4
        ).rate

    keys = jax.random.split(jax.random.key(9), RUNS)
    return np.asarray(jax.jit(jax.vmap(one, in_axes=(0, None, None)))(keys, eta, mu))


def test_the_figures_of_the_check():
    """Heavy ball against Nesterov's momentum at T = 22: growth a step as an independent check found it."""
    shift = rj.shifts.sinusoid(1 / 22)

    @jax.jit
    def rates(key):
        found = []
        for mu, samples in ((0.97, 20), (0.99, 1)):
            problem = rj.problems.linear_regression(dim=1, samples=samples)
            for nesterov in (False, True):
                optimizer = optax.sgd(0.01, momentum=mu, nesterov=nesterov)
                settings = dict(optimizer=optimizer, num_steps=22_000, key=key)
                found.append(rj.theory.almost_sure_growth(shift, problem, **settings).rate)
        return found

    found = np.mean([rates(jax.random.key(seed)) for seed in range(8)], axis=0)
    assert found == pytest.approx([0.0020, -0.0084, 0.0124, 0.0020], abs=4e-4)


def test_which_multiplier_crosses(x64):
    """Random settings of two optimizers under strong shifts, with a bias and without, against NumPy's eigenvalues."""
    rng = np.random.default_rng(2)
    number = 60
    T, mu = rng.integers(2, 40, number), rng.uniform(0.9, 0.999, number)
    eta, amplitude = np.exp(rng.uniform(np.log(0.005), np.log(0.3), number)), rng.uniform(0.5, 1.5, number)
    seen = set()
    for bias in (True, False):
        for name in ("heavy ball", "nesterov"):

            def one(T, mu, eta, amplitude, name=name, bias=bias):
                shift = rj.shifts.sinusoid(1 / T, amplitude=amplitude)
                problem = rj.problems.linear_regression(dim=1, samples=3, bias=bias)
                return rj.theory.crossing(shift, problem, optimizer=CHAINS[name](eta, mu))

            found = jax.jit(jax.vmap(one))(T.astype(float), mu, eta, amplitude)
            for i in range(number):
                rows = reference.rows_of(rj.optimizers.read(CHAINS[name](eta[i], mu[i])))
                product = np.eye(2 * (1 + bias))
                for k in range(T[i]):
                    B = reference.gradient_matrix(amplitude[i] * np.sin(2 * np.pi * k / T[i]))[: 1 + bias, : 1 + bias]
                    product = reference.one_step_of(rows, B) @ product
                values = np.linalg.eigvals(product)
                leading = values[np.argmax(np.abs(values))]
                rate = np.log(np.abs(leading)) / T[i]
                assert float(found.rate[i]) == pytest.approx(rate, abs=1e-9)
                if rate < -1e-9:
                    assert np.isnan(found.angle[i])
                elif rate > 1e-4:
                    assert float(found.angle[i]) == pytest.approx(abs(np.angle(leading)), abs=1e-5), (name, bias, i)
                    seen.add(rj.theory.Crossing(found.rate[i], found.angle[i]).kind)
    assert seen == {"+1", "pair"}  # B repeats twice in a period of the mean
    problem = rj.problems.linear_regression(dim=1, samples=1, bias=False)
    for T, kind in ((16, "-1"), (32, "+1"), (24, "none")):  # the first tongue, the second, and between them
        found = rj.theory.crossing(rj.shifts.breathing(1 / T, variance=1.0), problem, mu=0.999, eta=0.01)
        assert found.kind == kind, (T, found)
