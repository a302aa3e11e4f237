import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import resonance_jax as rj
from tests import reference

linear_regression, sinusoid = rj.problems.linear_regression, rj.shifts.sinusoid
ONE_INPUT = dict(dim=1, samples=20)


@functools.cache
def compiled(problem, num_steps, tail, amplitude, x64):
    """One program for all runs of a test: settings of the problem as items, f, mu and eta as arguments."""

    def run(key, f, mu, eta):
        shift = sinusoid(f, amplitude=amplitude)
        settings = dict(problem=linear_regression(**dict(problem)), num_steps=num_steps, tail=tail)
        return rj.oscillate(key, shift=shift, mu=mu, eta=eta, **settings)

    return jax.jit(run)


def ours(seed, f, problem, *, num_steps=10_000, tail=500, amplitude=0.5, mu, eta):
    run = compiled(tuple(problem.items()), num_steps, tail, amplitude, jax.config.jax_enable_x64)
    result = run(jax.random.key(seed), f, mu, eta)
    return float(result["log10_distance"]), float(result["growth_rate"])


def both(seed, f, problem, *, num_steps=10_000, tail=500, amplitude=0.5, factor=2.0, reduction="mean", mu, eta):
    """Our run and the NumPy loop on the same draws."""
    drawn = reference.draws(
        jax.random.key(seed), sinusoid(f, amplitude=amplitude), linear_regression(**problem), num_steps
    )
    theirs = reference.sgdm(*drawn, mu=mu, eta=eta, tail=tail, factor=factor, reduction=reduction)
    return ours(seed, f, problem, num_steps=num_steps, tail=tail, amplitude=amplitude, mu=mu, eta=eta), theirs


POINTS = {  # name: (f, mu, smallest and largest log10 distance that it stands for)
    "converged below 1e-100": (0.03, 0.95, -120, -100),
    "convergent": (0.03, 0.98, -60, -30),
    "neutral": (1 / 22, 0.965, -8, 3),
    "iid": (0.0, 0.99, -30, -15),
    "divergent": (1 / 22, 0.98, 5, 50),
    "diverged beyond 1e60": (0.0455, 0.999, 60, 80),
}


@pytest.mark.parametrize("name", POINTS)
def test_float64_against_numpy(x64, name):
    f, mu, low, high = POINTS[name]
    mine, theirs = both(0, f, ONE_INPUT, mu=mu, eta=0.01)
    assert low < theirs[0] < high
    assert mine[0] == pytest.approx(theirs[0], abs=1e-8)
    assert mine[1] == pytest.approx(theirs[1], abs=1e-11)


@pytest.mark.parametrize("name", POINTS)
def test_float32_against_numpy(name):
    f, mu, _, _ = POINTS[name]
    for seed in range(2):
        mine, theirs = both(seed, np.float32(f), ONE_INPUT, mu=np.float32(mu), eta=np.float32(0.01))
        assert mine[0] == pytest.approx(theirs[0], abs=1e-3)
        assert mine[1] == pytest.approx(theirs[1], abs=1e-6)


@pytest.mark.parametrize(("double", "tolerance"), [(True, 1e-8), (False, 1e-3)])
def test_beyond_1e70(double, tolerance):
    """The pixel of the first heatmap that grows fastest, at a slightly larger amplitude."""
    with jax.enable_x64(double):
        number = float if double else np.float32
        mine, theirs = both(0, number(0.0455), ONE_INPUT, amplitude=0.6, mu=number(0.999), eta=number(0.01))
    assert theirs[0] > 70
    assert mine[0] == pytest.approx(theirs[0], abs=tolerance)


@pytest.mark.parametrize(
    ("settings", "reference_settings"),
    [
        (dict(dim=3, samples=2), {}),
        (dict(dim=9, samples=5, input_variance=0.25), {}),
        (dict(dim=2, samples=4, bias=False), {}),
        (dict(dim=1, samples=3, reduction="sum"), dict(reduction="sum")),
        (dict(dim=1, samples=3, loss_factor=1.0), dict(factor=1.0)),
        (dict(dim=2, samples=3, noise_variance=0.5, weight_variance=2.0), {}),
    ],
)
def test_every_kind_of_problem(x64, settings, reference_settings):
    mine, theirs = both(3, 0.04, settings, num_steps=1013, tail=77, mu=0.93, eta=0.02, **reference_settings)
    assert mine == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(("num_steps", "tail"), [(1, 1), (24, 24), (25, 1), (26, 25), (60, 33), (100, 100)])
def test_every_length_of_run_and_tail(x64, num_steps, tail):
    mine, theirs = both(1, 0.1, ONE_INPUT, num_steps=num_steps, tail=tail, mu=0.9, eta=0.05)
    assert mine == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize(("noise_variance", "floor"), [(0.01, -2), (1e-30, -16), (1e-36, -19)])
def test_observation_noise_sets_a_floor(noise_variance, floor):
    """A run that converges without noise stays where the noise keeps it; noise is rescaled with the state."""
    problem = dict(dim=1, samples=5, noise_variance=noise_variance)
    mine, theirs = both(0, 0.03, problem, mu=0.9, eta=0.01)
    assert floor - 1.5 < theirs[0] < floor + 1.5
    assert mine[0] == pytest.approx(theirs[0], abs=1e-4)


@pytest.mark.parametrize("noise_variance", [0.0, 1e-30, 1.0])
@pytest.mark.parametrize("eta", [1e-6, 1.0, 30.0, 1e4, 1e12])
@pytest.mark.parametrize("mu", [0.0, 1.0])
def test_finite_for_every_step_size(noise_variance, eta, mu):
    """Growth by many orders of magnitude a step. Oracle: the sum of log ||M_k xi|| along the run, in float64."""
    problem = dict(dim=2, samples=2, noise_variance=noise_variance)
    log10_distance, growth_rate = ours(2, 0.1, problem, num_steps=300, tail=40, mu=mu, eta=eta)
    x, eps, error = reference.draws(jax.random.key(2), sinusoid(0.1), linear_regression(**problem), 300)
    velocity, log_scale, start = np.zeros_like(error), 0.0, np.log(np.linalg.norm(error))
    for x_k, eps_k in zip(x, eps, strict=True):
        gradient = 2 * ((x_k @ error - eps_k * np.exp(-log_scale))[:, None] * x_k).mean(0)
        velocity = mu * velocity - eta * gradient
        error = error + velocity
        size = np.linalg.norm(np.concatenate([error, velocity]))
        error, velocity, log_scale = error / size, velocity / size, log_scale + np.log(size)
    assert growth_rate == pytest.approx((log_scale - start) / 300, rel=1e-4, abs=1e-6)
    assert np.isfinite(log10_distance)


def test_convergence_by_a_factor_of_fifty_a_step():
    """The best step size of plain SGD, many samples: 10^-1700 after 1,000 steps, whose blocks span 2^-120."""
    problem = dict(dim=1, samples=2000, bias=False)
    log10_distance, growth_rate = ours(4, 0.0, problem, num_steps=1000, tail=25, mu=0.0, eta=0.5)
    x, _, _ = reference.draws(jax.random.key(4), sinusoid(0.0), linear_regression(**problem), 1000)
    factors = np.log(np.abs(1 - (x[:, :, 0] ** 2).mean(1)))
    assert growth_rate == pytest.approx(factors.mean(), rel=0.05)  # v is as large as the error was a step before
    assert -2000 < log10_distance < -1500


def test_an_error_of_exactly_zero_is_finite():
    problem = dict(dim=1, samples=1, weight_variance=0.0)
    log10_distance, growth_rate = ours(0, 0.1, problem, num_steps=50, tail=5, mu=0.9, eta=0.1)
    assert -60 < log10_distance < -20
    assert np.isfinite(growth_rate)


def test_growth_follows_the_theory_with_many_samples():
    """10,000 samples a step are nearly the expected gradient: the rate is that of the discrete monodromy matrix."""
    problem = dict(dim=1, samples=10_000)
    _, growth_rate = ours(0, 1 / 22, problem, num_steps=4400, tail=10, mu=0.99, eta=0.01)
    rate = rj.theory.growth_rate(sinusoid(1 / 22), mu=0.99, eta=0.01, discrete=True)
    assert growth_rate == pytest.approx(float(rate), rel=0.02)


def test_draws_depend_on_the_seed_alone():
    """Cells of one seed share their noise: with an amplitude of 0, runs of all frequencies are the same run."""

    def run(key, f, amplitude):
        shift, problem = sinusoid(f, amplitude=amplitude), linear_regression(**ONE_INPUT)
        return rj.oscillate(key, shift=shift, problem=problem, mu=0.9, eta=0.01, num_steps=40, tail=20)["growth_rate"]

    still = jax.jit(jax.vmap(run, (None, 0, None)))(jax.random.key(7), jnp.array([0.0, 0.02, 0.3]), 0.0)
    assert len(np.unique(still)) == 1


def test_cell_key_differs_from_cell_to_cell():
    def data(*coordinates):
        return tuple(np.asarray(jax.random.key_data(rj.cell_key(7, *coordinates))).tolist())

    cells = [(), (0.9,), (0.9, 0.01), (0.01, 0.9), (1,), (16777216,), (16777217,)]
    assert len({data(*cell) for cell in cells}) == len(cells)
    assert data(0.0) == data(-0.0)
    assert jax.jit(lambda f: jax.random.key_data(rj.cell_key(7, f)))(0.9).tolist() == list(data(0.9))
    with jax.enable_x64(True):
        assert data(0.999) != data(0.999 + 1e-9)


def _run(**changes):
    settings = dict(shift=sinusoid(0.1), problem=linear_regression(**ONE_INPUT), mu=0.9, eta=0.01, num_steps=10, tail=5)
    key = changes.pop("key", jax.random.key(0))
    return rj.oscillate(key, **settings | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(tail=11), r"tail must be at most num_steps, got tail=11 > num_steps=10; shorten the tail"),
        (dict(tail=0), r"tail must be a whole number of at least 1, got 0"),
        (dict(num_steps=0), r"num_steps must be a whole number of at least 1, got 0; a run needs at least one step"),
        (dict(eta=0.0), r"eta must lie in \(0, inf\), got 0.0; give a positive step size"),
        (dict(eta=-1.0), r"eta must lie in \(0, inf\), got -1.0"),
        (dict(mu=1.1), r"mu must lie in \[0, 1\], got 1.1; momentum is the share"),
        (dict(mu=-0.1), r"mu must lie in \[0, 1\], got -0.1"),
        (dict(mu=np.ones(3)), r"mu must be one number, got shape \(3,\); put its values on an axis of rj.sweep"),
        (dict(mu=np.nan), r"mu must lie in \[0, 1\], got nan"),
        (dict(key=3), r"key must be one typed key, got 3; make it with jax.random.key\(seed\)"),
        (
            dict(shift=sinusoid(0.1, amplitude=[1.0, 1.0])),
            r"the shift moves 2 inputs but the problem has dim=1; give both",
        ),
    ],
)
def test_bad_input(changes, message):
    with pytest.raises(ValueError, match=message):
        _run(**changes)
