"""Growth of the mean and of the mean square, against quadrature, closed forms, symmetries and simulated runs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import resonance_jax as rj
from resonance_jax.fused.program import kernel
from resonance_jax.fused.threads import Threads
from resonance_jax.numerics import products
from resonance_jax.numerics.logscale import Scaled
from resonance_jax.shifts import Inputs, Shift, periodic
from resonance_jax.theory.moments.followed import follow
from resonance_jax.theory.moments.maps import mean_square_map
from tests import reference

regression, growth = rj.problems.linear_regression, rj.theory
SETTINGS = dict(mu=0.97, eta=0.02)


def circle(f):
    """A mean that does not stay on a line."""
    return periodic(f, lambda phase: 0.5 * jnp.stack([jnp.sin(2 * jnp.pi * phase), jnp.cos(2 * jnp.pi * phase)]))


def product_rates(means, **settings):
    """Rates of mean and mean square over the means of a period, in NumPy."""
    square, first = 1, 1
    for mean in means:
        step, expected = reference.expected_kronecker(mean, **settings)
        square, first = step @ square if np.ndim(square) else step, expected @ first if np.ndim(first) else expected
    return reference.log_radius(first) / len(means), reference.log_radius(square) / (2 * len(means))


def both(shift, problem, **settings):
    return (
        growth.mean_growth(shift, problem, **SETTINGS | settings).rate,
        growth.mean_square_growth(shift, problem, **SETTINGS | settings).rate,
    )


def sine(T, turns=1, later=0.0):
    return np.sin(2 * np.pi * (np.arange(round(T * turns)) / T + later))


@jax.jit
def compiled(f, mu, eta, samples, amplitude, later, variance, factor, dim):
    """One program for all sines along a line, in up to three inputs."""
    shift = periodic(f, lambda phase: jnp.sin(2 * jnp.pi * (phase + later))[None], directions=amplitude)
    problem = regression(
        dim=dim, samples=samples, max_dim=3, max_samples=10**4, input_variance=variance, loss_factor=factor
    )
    return both(shift, problem, mu=mu, eta=eta)


def rates(f, mu, eta, samples, *, dim=1, amplitude=(0.5,), later=0.0, variance=1.0, factor=2.0):
    direction = np.pad(amplitude, (0, 3 - len(amplitude)))
    numbers = [np.asarray(value, float) for value in (direction, later, variance, factor)]
    return np.array(compiled(*(np.float64(x) for x in (f, mu, eta)), np.int64(samples), *numbers, np.int64(dim)))


def test_one_input_against_the_expected_products(x64):
    """E[M] and E[M (x) M] by quadrature over every sample, multiplied and given to NumPy's eigenvalues."""
    for T, turns, settings in ((9, 1, dict(samples=2, variance=0.4)), (4.5, 2, dict(samples=1, factor=1.0))):
        theirs = product_rates(0.5 * sine(T, turns)[:, None], **SETTINGS, **settings)
        assert rates(1 / T, **SETTINGS, **settings) == pytest.approx(theirs, abs=1e-11)


def test_three_inputs_along_a_line_against_the_expected_products(x64):
    """Two weights tracked and two alike, against the second moments of all four."""
    amplitude = [0.3, 0.4, 0.8]
    theirs = product_rates(np.outer(sine(6), amplitude), **SETTINGS, samples=1, variance=0.7)
    ours = rates(1 / 6, **SETTINGS, dim=3, samples=1, amplitude=amplitude, variance=0.7)
    assert ours == pytest.approx(theirs, abs=1e-11)


@jax.jit
def square_wave_rates(mu, eta, norm, samples, variance):
    """One input without a bias, gradients summed over the samples."""
    problem = regression(dim=1, samples=samples, max_samples=50, input_variance=variance, reduction="sum", bias=False)
    return both(rj.shifts.square_wave(4, dim=1, norm=norm), problem, mu=mu, eta=eta)


def test_a_square_wave_of_summed_gradients_against_the_expected_products(x64):
    theirs = product_rates([[1.0], [1.0], [-1.0], [-1.0]], **SETTINGS, samples=2, factor=4.0, bias=False)
    assert np.array(square_wave_rates(**SETTINGS, norm=1.0, samples=2, variance=1.0)) == pytest.approx(
        theirs, abs=1e-11
    )


def test_iid_without_momentum_in_closed_form(x64):
    """E (1 - eta c xx)^2 with xx the mean square of n normals of variance s2."""
    found = []
    for a, n in ((0.01, 1), (0.6, 1), (0.9, 5), (1.7, 5), (1.9, 50), (2.1, 50)):
        settings = dict(mu=0.0, eta=a / (2 * n * 0.7), norm=0.0, samples=n, variance=0.7)  # a = eta c s2
        mean, square = square_wave_rates(**settings)
        assert float(square) == pytest.approx(np.log(1 - 2 * a + a**2 * (1 + 2 / n)) / 2, abs=1e-12)
        assert float(mean) == pytest.approx(np.log(np.abs(1 - a)), abs=1e-12)
        found.append(float(square) > 0)
    assert found == [False, False, False, True, False, True]


def test_a_circle_against_the_expected_products(x64):
    """If the mean does not stay on a line, every weight is tracked."""
    problem = regression(dim=2, samples=1, bias=False)
    ours = jax.jit(lambda mu: growth.mean_square_growth(circle(1 / 5), problem, **SETTINGS | dict(mu=mu)))(0.97)
    means = 0.5 * np.column_stack([sine(5), sine(5, later=0.25)])
    assert float(ours) == pytest.approx(product_rates(means, **SETTINGS, samples=1, bias=False)[1], abs=1e-11)


def test_moving_all_inputs_alike(x64):
    """A mean of one entry and two inputs is a line of sqrt(2) times the amplitude; the mean's rate is the paper's."""
    shift, problem = rj.shifts.sinusoid(1 / 22), regression(dim=2, samples=1)
    at = follow(shift, problem).coordinates(Inputs(jnp.array([0.5]), jnp.array(0.0)))
    assert float(at.mean[0]) == pytest.approx(0.5 * np.sqrt(2))
    rate = jax.jit(lambda mu: growth.mean_growth(shift, problem, mu=mu, eta=0.01, discrete=False))(0.99)
    assert float(rate) * 22 == pytest.approx(reference.log_rho_of_ode(1 / 22, 0.99, 0.01, 0.5 * np.sqrt(2)), abs=1e-6)


def test_turning_the_inputs_and_starting_later_change_nothing(x64):
    for settings in ((1 / 22, 0.99, 0.01, 1), (0.03, 0.97, 0.02, 5)):
        turned = rates(*settings, dim=3, amplitude=[0.3, 0.0, 0.4])
        assert turned == pytest.approx(rates(*settings, dim=3), abs=1e-12)
        assert rates(*settings, later=0.3) == pytest.approx(rates(*settings), abs=1e-12)


def test_the_square_tends_to_the_mean_as_samples_grow(x64):
    """The gap between the two falls as 1 / samples, and is never negative."""
    for f, mu in ((1 / 22, 0.99), (1 / 33, 0.98), (0.05, 0.96)):
        gaps = np.array([np.diff(rates(f, mu, 0.01, n))[0] for n in (10, 100, 1000, 10_000)])
        assert np.all(gaps > 0)
        assert gaps[1:-1] / gaps[2:] == pytest.approx([10, 10], rel=0.1), (f, mu)
        assert gaps[-1] < 1e-5


def test_long_periods_and_standing_means(x64):
    resting = product_rates([[0.0]], mu=0.9, eta=0.01, samples=1)
    assert rates(0.0, 0.9, 0.01, 1) == pytest.approx(resting, abs=1e-12)
    found = [rates(1 / T, 0.9, 0.01, 1) for T in (2000, 16_000, 1e6)]
    assert np.all(np.isfinite(found))
    assert found[1] == pytest.approx(found[2], abs=1e-5)  # taken as 16,384 steps


def test_turns():
    expected = {22.0: (1, 22), 22.5: (2, 45), 20 / 3: (3, 20), 4000 / 199: (10, 201), np.inf: (1, 1), 1e6: (1, 2**14)}
    periods = np.concatenate([list(expected), np.random.default_rng(0).uniform(2, 3000, 2000)]).astype(np.float32)
    p, steps = (np.asarray(n) for n in jax.jit(jax.vmap(products.turns))(periods))
    assert list(zip(p.tolist(), steps.tolist(), strict=True))[: len(expected)] == list(expected.values())
    error = np.abs(steps / p / periods - 1)[len(expected) :]
    assert (error < 1.01e-4).mean() > 0.9
    assert error.max() < 3e-3


def test_columns_at_once_are_columns_one_after_another(x64, monkeypatch):
    """The form for a GPU, computed on the CPU."""
    here = rates(0.045, 0.98, 0.01, 3)
    monkeypatch.setattr(jax.lax, "platform_dependent", lambda *args, cpu, default: default(*args))
    problem = regression(dim=1, samples=3)
    there = jax.jit(lambda f: growth.mean_square_growth(rj.shifts.sinusoid(f), problem, mu=0.98, eta=0.01))(0.045)
    assert float(there) == pytest.approx(here[1], abs=1e-13)


@pytest.mark.parametrize("dim", [1, 5])
def test_a_thread_of_a_gpu_holds_a_column(dim):
    """The kernel has a rule for every operation, and a thread can hold the column; it is traced, not run."""
    problem = regression(dim=dim, samples=2)
    followed = follow(rj.shifts.sinusoid(0.1), problem)

    def column(start, m, added, live, mu):
        linear = mean_square_map(followed, rj.optimizers.heavy_ball(mu, 0.01))
        return products.along(linear.step, Scaled(tuple(start), jnp.int32(0)), Inputs(m, added), live)

    inputs = np.ones((2, 4, 1), np.float32), np.ones((2, 4), np.float32)
    args = [np.ones(10 if dim == 1 else 13, np.float32), *inputs, np.ones(2, np.int32)]
    closed = jax.make_jaxpr(column)(*args, jnp.float32(0.9))
    lanes = [jnp.asarray(arg)[..., None] for arg in (*closed.consts, *args)] + [jnp.array([0.9, 0.95, 0.99])]
    out = jax.eval_shape(functools.partial(kernel, Threads(), jaxpr=closed.jaxpr, rank=1), *lanes)
    assert [each.shape for each in out] == [(3,)] * (len(args[0]) + 1)


# A mean drawn anew


def redrawn_rates(T, dim, v, **settings):
    """The average over means as well, by Gauss-Hermite quadrature in every entry, on all of S."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(2 * T + 1)  # exact to degree 4T + 1
    square, first = 0, 0
    for choice in np.ndindex(*(2 * T + 1,) * dim):
        step, expected = reference.expected_kronecker(np.sqrt(v) * nodes[list(choice)], **settings)
        weight = np.prod(weights[list(choice)]) / np.sqrt(2 * np.pi) ** dim
        square = square + weight * np.linalg.matrix_power(step, T)
        first = first + weight * np.linalg.matrix_power(expected, T)
    return reference.log_radius(first) / T, reference.log_radius(square) / (2 * T)


@pytest.fixture(scope="module")
def redrawn():
    """One program for one and two inputs."""

    @jax.jit
    def rates(T, dim, v, eta):
        shift = rj.shifts.switching(T, dim=dim, variance=v, max_dim=2)
        return both(shift, regression(dim=dim, samples=2, input_variance=0.3, max_dim=2), eta=eta, nodes=12)

    return rates


@pytest.mark.parametrize(("T", "dim"), [(1, 1), (3, 1), (6, 1), (1, 2), (3, 2)])
def test_average_over_means_against_quadrature(x64, redrawn, T, dim):
    for v, eta in ((0.4, 0.02), (2.0, 0.3)):
        settings = dict(mu=SETTINGS["mu"], eta=eta, samples=2, variance=0.3)
        ours = redrawn(np.float64(T), np.int64(dim), v, eta)
        assert [float(rate) for rate in ours] == pytest.approx(redrawn_rates(T, dim, v, **settings), abs=1e-9)


def test_a_new_mean_for_every_sample_is_the_baseline(x64, redrawn):
    settings = dict(mu=SETTINGS["mu"], eta=0.02, samples=2, variance=0.7)
    ours = redrawn(np.float64(0), np.int64(1), 0.4, 0.02)
    assert [float(rate) for rate in ours] == pytest.approx(product_rates([[0.0]], **settings), abs=1e-11)


def test_intervals_that_are_not_covered(x64, redrawn):
    """Not whole, or not below `nodes`."""
    finite = [np.isfinite(redrawn(np.float64(T), np.int64(1), 0.4, 0.02)).tolist() for T in (2.5, 12, 11)]
    assert finite == [[False, False], [False, False], [True, True]]


# Others


def test_along_a_path_of_its_own(x64):
    """A sine given step by step, without a law, grows like the periodic shift, up to 1/path_steps."""

    def inputs(key, k, state):
        return Inputs(0.5 * jnp.sin(2 * jnp.pi * k.astype(float) / 22)[:, None], jnp.zeros(k.shape)), state

    shift = Shift(init=lambda key: (), inputs=inputs)
    paths = dict(path_steps=20_000, num_paths=1)
    problem = regression(dim=1, samples=2)
    ours = jax.jit(lambda mu: both(shift, problem, mu=mu, eta=0.01, **paths))
    for mu in (0.99, 0.9):
        assert np.array(ours(mu)) == pytest.approx(rates(1 / 22, mu, 0.01, 2), abs=1e-3)


def test_standard_errors_are_those_of_the_mean_over_paths(x64):
    """Exact rates have none; four paths of AR(2) differ by their keys."""
    problem = regression(dim=1, samples=5)
    shift, key = rj.shifts.ar2(0.045), jax.random.key(7)
    settings = dict(mu=0.99, eta=0.01, path_steps=2000)

    @jax.jit
    def found(key):
        alone = [
            growth.mean_square_growth(shift, problem, key=each, num_paths=1, **settings)
            for each in jax.random.split(key, 4)
        ]
        return growth.mean_square_growth(shift, problem, key=key, **settings), [each.rate for each in alone]

    (rate, error), alone = found(key)
    assert float(rate) == pytest.approx(np.mean(alone), abs=1e-12)
    assert float(error) == pytest.approx(np.std(alone, ddof=1) / 2, abs=1e-12)
    sine = growth.mean_growth(rj.shifts.sinusoid(0.1), problem, mu=0.9, eta=0.01)
    assert float(sine.standard_error) == 0
    assert float(sine) == float(sine.rate)


def test_the_mean_of_a_step_that_is_too_large_grows(x64):
    """eta b = 2.4 overshoots by 1.4 a step without momentum; the ODE of the paper does not see it."""
    shift, problem = rj.shifts.sinusoid(0.1, amplitude=0.0), regression(dim=1, samples=1)
    exact, ode = (growth.mean_growth(shift, problem, mu=0.0, eta=1.2, discrete=each) for each in (True, False))
    assert float(exact) == pytest.approx(np.log(1.4), abs=1e-9)
    assert float(ode) < 0


# Simulated runs


def simulated(rng, means, num_runs, *, mu, eta, samples):
    """log of the mean of ||xi||^2 over the runs after all steps, from E xi xi^T = I, and its standard error."""
    dim = means.shape[1]
    error, velocity = rng.normal(size=(2, num_runs, dim + 1))
    for mean in means:
        x = mean + rng.normal(size=(num_runs, samples, dim))
        x = np.concatenate([x, np.ones((num_runs, samples, 1))], axis=2)
        residual = np.einsum("rsw,rw->rs", x, error)
        velocity = mu * velocity - 2 * eta * np.einsum("rs,rsw->rw", residual, x) / samples
        error = error + velocity
    squares = (error**2).sum(1) + (velocity**2).sum(1)
    return np.log(squares.mean()), squares.std() / squares.mean() / np.sqrt(num_runs)


@functools.partial(jax.jit, static_argnames="dim")
def predicted(means, mu, samples, *, dim):
    """The same in expectation, for means along the first input."""
    problem = regression(dim=dim, samples=samples, max_samples=5)
    followed = follow(rj.shifts.sinusoid(0.05, amplitude=np.eye(dim)[0]), problem)
    linear = mean_square_map(followed, rj.optimizers.heavy_ball(mu, 0.01))
    inputs = Inputs(means[:, None], jnp.zeros(means.shape))
    end = jax.lax.scan(lambda entries, one: (linear.step(entries, one), None), tuple(linear.start), inputs)[0]
    others = 0.0 if dim == 1 else (dim - 1) * (end[-3] + end[-1])
    return jnp.log(end[0] + end[4] + end[7] + end[9] + others)


def monte_carlo(num_runs, num_steps=200):
    """z-scores of five settings: one and three inputs, few and many samples."""
    settings = [(1, 20, 0.9, 1), (1, 20, 0.97, 5), (1, 20, 0.99, 5), (3, 20, 0.9, 2), (3, 20, 0.95, 5)]
    scores = []
    for seed, (dim, T, mu, samples) in enumerate(settings):
        means = np.zeros((num_steps, dim))
        means[:, 0] = 0.5 * np.sin(2 * np.pi * np.arange(num_steps) / T)
        rng = np.random.default_rng(seed)
        measured, error = simulated(rng, means, num_runs, mu=mu, eta=0.01, samples=samples)
        scores.append((measured - float(predicted(means[:, 0], mu, samples, dim=dim))) / error)
    return scores


def test_simulated_runs_grow_in_mean_square_as_predicted(x64):
    """1,000 runs of 200 steps; five normal scores exceed 4.5 by chance with probability below 4e-5."""
    scores = monte_carlo(1000)
    assert np.abs(scores).max() < 4.5, scores


# Bad input


@pytest.mark.parametrize(
    ("shift", "settings", "message"),
    [
        (lambda: rj.shifts.switching(2.5, dim=2, variance=0.1), {}, r"whole number of steps below nodes=64, got T=2.5"),
        (lambda: rj.shifts.switching(64, dim=2, variance=0.1), {}, r"got T=64; round T, or raise nodes"),
        (lambda: rj.shifts.switching(2, dim=2, variance=0.1), dict(nodes=129), r"nodes must be at most 128, got 129"),
        (lambda: rj.shifts.switching(2, dim=2, variance=0.1), dict(nodes=0), r"nodes must be a whole .* got 0; it is"),
        (
            lambda: rj.shifts.switching(2, dim=1, variance=0.1),
            {},
            r"draws 1 inputs but the problem has dim=2; give both",
        ),
        (lambda: rj.shifts.sinusoid(0.1, amplitude=[1.0] * 3), {}, r"moves 3 inputs but the problem has dim=2; give"),
        (lambda: rj.shifts.ar2(0.1), dict(num_paths=0), r"num_paths must be a whole .* got 0; the rate is a mean"),
        (lambda: rj.shifts.ar2(0.1), dict(path_steps=0), r"path_steps must be a whole .* got 0; it is the length"),
        (lambda: rj.shifts.sinusoid(0.1), dict(mu=2.0), r"mu must lie in \[0, 1\], got 2.0"),
    ],
)
def test_bad_input(shift, settings, message):
    for rate in (growth.mean_growth, growth.mean_square_growth):
        with pytest.raises(ValueError, match=message):
            rate(shift(), regression(dim=2, samples=1), **SETTINGS | settings)


def test_a_curved_mean_needs_a_plain_dim():
    with pytest.raises(ValueError, match=r"theory tracks every input of this setting.*; give dim as a plain number"):
        growth.mean_square_growth(circle(0.1), regression(dim=1, samples=1, max_dim=2), **SETTINGS)
