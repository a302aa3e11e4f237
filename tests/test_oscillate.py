import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import resonance_jax as rj
from tests import reference

linear_regression, sinusoid = rj.problems.linear_regression, rj.shifts.sinusoid
ONE_INPUT = dict(dim=1, samples=20)


def compiled(problem, num_steps, tail):
    """A run and its draws; seed, f, mu, eta, amplitude and the numbers of the problem are traced."""

    def run(seed, f, mu, eta, amplitude=0.5, **traced):
        key, shift = jax.random.key(seed), sinusoid(f, amplitude=amplitude)
        parts = dict(shift=shift, problem=linear_regression(**problem, **traced), num_steps=num_steps)
        return rj.oscillate(key, mu=mu, eta=eta, tail=tail, **parts), reference.traced_draws(key, **parts)

    return run


def runs(problem, *, num_steps=10_000, tail=500, **cells):
    """Our runs, (cells, 2), and their draws, by one program; a value is an array over cells or one number for all."""
    cells = {name: np.asarray(value, None if name == "seed" else float) for name, value in cells.items()}
    cells = dict(zip(cells, np.broadcast_arrays(*cells.values()), strict=True))
    result, drawn = jax.jit(jax.vmap(lambda cell: compiled(problem, num_steps, tail)(**cell)))(cells)
    mine = np.stack([result["log10_distance"], result["growth_rate"]], axis=1).astype(float)
    return mine, list(zip(*(np.asarray(each, float) for each in drawn), strict=True))


def both(problem, *, num_steps=10_000, tail=500, factor=2.0, reduction="mean", **cells):
    """Our runs and the NumPy loop on the same draws, (cells, 2) each."""
    mine, drawn = runs(problem, num_steps=num_steps, tail=tail, **cells)
    number = jnp.result_type(float).type  # NumPy takes mu and eta as they are in the working precision
    mu, eta = (np.broadcast_to(np.asarray(cells[name], number), len(mine)) for name in ("mu", "eta"))
    theirs = [
        reference.sgdm(*each, mu=float(mu[i]), eta=float(eta[i]), tail=tail, factor=factor, reduction=reduction)
        for i, each in enumerate(drawn)
    ]
    return mine, np.array(theirs)


POINTS = {  # name: (f, mu, amplitude, smallest and largest log10 distance that it stands for)
    "converged below 1e-100": (0.03, 0.95, 0.5, -120, -100),
    "convergent": (0.03, 0.98, 0.5, -60, -30),
    "neutral": (1 / 22, 0.965, 0.5, -8, 3),
    "iid": (0.0, 0.99, 0.5, -30, -15),
    "divergent": (1 / 22, 0.98, 0.5, 5, 50),
    "diverged beyond 1e60": (0.0455, 0.999, 0.5, 60, 80),
    "beyond 1e70, at a slightly larger amplitude": (0.0455, 0.999, 0.6, 70, 100),
}
F, MU, AMPLITUDE, LOW, HIGH = np.array(list(POINTS.values())).T


def test_float64_against_numpy(x64):
    mine, theirs = both(ONE_INPUT, seed=0, f=F, mu=MU, amplitude=AMPLITUDE, eta=0.01)
    for name, low, high, ours, exact in zip(POINTS, LOW, HIGH, mine, theirs, strict=True):
        assert low < exact[0] < high, name
        assert ours[0] == pytest.approx(exact[0], abs=1e-8), name
        assert ours[1] == pytest.approx(exact[1], abs=1e-11), name


def test_float32_against_numpy():
    twice = {name: np.tile(values, 2) for name, values in dict(f=F, mu=MU, amplitude=AMPLITUDE).items()}
    mine, theirs = both(ONE_INPUT, seed=np.repeat([0, 1], len(F)), eta=0.01, **twice)
    for name, ours, exact in zip([*POINTS] * 2, mine, theirs, strict=True):
        assert ours[0] == pytest.approx(exact[0], abs=1e-3), name
        assert ours[1] == pytest.approx(exact[1], abs=1e-6), name
    assert theirs[len(F) - 1, 0] > 70


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
    cells = dict(seed=[3], f=0.04, mu=0.93, eta=0.02)
    mine, theirs = both(settings, num_steps=1000, tail=1000, **cells, **reference_settings)
    assert mine[0] == pytest.approx(theirs[0], abs=1e-9)


def test_every_length_of_run_and_tail(x64):
    """Runs of one seed are the beginnings of one run, on the same draws."""
    problem = linear_regression(**ONE_INPUT)
    common = dict(shift=sinusoid(0.1), problem=problem)
    drawn = reference.draws(jax.random.key(1), **common, num_steps=100)
    for num_steps, tail in ((1, 1), (24, 24), (25, 1), (26, 25), (60, 33), (100, 100)):
        run = functools.partial(rj.oscillate, mu=0.9, eta=0.05, num_steps=num_steps, tail=tail, **common)
        mine = jax.jit(run)(jax.random.key(1))
        x, eps, error = drawn
        theirs = reference.sgdm(x[:num_steps], eps[:num_steps], error, mu=0.9, eta=0.05, tail=tail)
        ours = float(mine["log10_distance"]), float(mine["growth_rate"])
        assert ours == pytest.approx(theirs, abs=1e-12), (num_steps, tail)


def test_observation_noise_sets_a_floor():
    """A run that would converge without noise ends at the level of the noise, which is rescaled with the state."""
    problem = dict(dim=1, samples=5)
    mine, theirs = both(problem, noise_variance=[0.01, 1e-30, 1e-36], seed=0, f=0.03, mu=0.9, eta=0.01)
    for floor, ours, exact in zip((-2, -16, -19), mine[:, 0], theirs[:, 0], strict=True):
        assert floor - 1.5 < exact < floor + 1.5
        assert ours == pytest.approx(exact, abs=1e-4)


EXTREMES = np.array(  # eta, mu, amplitude, input variance, weight variance; decades that the distance may be off
    [
        (1e-30, 0.9, 1e6, 1e12, 1.0, 1e-3),
        (1e-30, 1.0, 0.5, 1e-12, 1e-12, 1e-3),
        (1e-6, 0.0, 0.5, 1.0, 1.0, 1e-3),
        (1e-3, 0.99, 1e6, 1.0, 1e12, 1e-3),
        (1.0, 0.0, 0.5, 1.0, 1.0, 1e-3),
        (1.0, 1.0, 1e-3, 1e-12, 1e-12, 1e-3),
        (5.0, 0.9, 0.5, 1.0, 1.0, 0.2),  # eta tr B from 10 to 1000: see `oscillate`
        (30.0, 0.9, 0.5, 1.0, 1.0, 0.2),
        (1e3, 0.9, 0.5, 1.0, 1.0, 2e-3),
        (1e12, 0.5, 0.5, 1.0, 1e12, 2e-3),
    ]
)


@pytest.mark.parametrize(
    ("problem", "noisy", "num_steps", "tail"),
    [
        (dict(dim=2, samples=2), False, 130, 40),
        (dict(dim=3, samples=1, bias=False), True, 60, 60),
        (dict(dim=9, samples=1), False, 300, 300),  # seven weights and more are a vector
        (dict(dim=12, samples=2), True, 40, 1),
    ],
)
def test_range_is_unlimited(problem, noisy, num_steps, tail):
    """Growth by up to 10^25 a step. Oracle: mantissas and exponents, in NumPy and Python, on the same draws."""
    eta, mu, amplitude, input_variance, weight_variance, allowed = EXTREMES.T
    cells = dict(mu=mu, eta=eta, amplitude=amplitude, input_variance=input_variance, weight_variance=weight_variance)
    cells |= dict(noise_variance=10.0 ** np.linspace(-30, 6, len(eta))) if noisy else {}
    mine, drawn = runs(problem, num_steps=num_steps, tail=tail, seed=2, f=0.1, **cells)
    for (distance, growth), each, decades, *optimizer in zip(mine, drawn, allowed, mu, eta, strict=True):
        mu_of, eta_of = (float(np.float32(value)) for value in optimizer)
        expected_distance, expected_growth = reference.unlimited(*each, mu=mu_of, eta=eta_of, tail=tail)
        assert distance == pytest.approx(expected_distance, abs=decades), optimizer
        assert growth == pytest.approx(expected_growth, abs=2e-5), optimizer


def test_convergence_by_a_factor_of_fifty_a_step():
    """The best step size of plain SGD, many samples: 10^-1700 after 1,000 steps, whose blocks span 2^-120."""
    problem = dict(dim=1, samples=2000, bias=False)
    mine, drawn = runs(problem, num_steps=1000, tail=25, seed=[4], f=0.0, mu=0.0, eta=0.5)
    log10_distance, growth_rate = mine[0]
    factors = np.log(np.abs(1 - (drawn[0][0][:, :, 0] ** 2).mean(1)))
    assert growth_rate == pytest.approx(factors.mean(), rel=0.05)  # v is as large as the error was a step before
    assert -2000 < log10_distance < -1500


def test_an_error_of_exactly_zero_is_finite():
    problem = dict(dim=1, samples=1, weight_variance=0.0)
    mine, _ = runs(problem, num_steps=50, tail=50, seed=[0], f=0.1, mu=0.9, eta=0.1)
    log10_distance, growth_rate = mine[0]
    assert -60 < log10_distance < -20
    assert np.isfinite(growth_rate)


def test_growth_follows_the_theory_with_many_samples():
    """10,000 samples a step are nearly the expected gradient: the rate is that of the discrete monodromy matrix."""
    settings = dict(problem=linear_regression(dim=1, samples=10_000), num_steps=4400, tail=4400)

    @jax.jit
    def rates(f, mu, eta):
        run = rj.oscillate(jax.random.key(0), shift=sinusoid(f), mu=mu, eta=eta, **settings)
        return run["growth_rate"], rj.theory.growth_rate(sinusoid(f), mu=mu, eta=eta, discrete=True)

    measured, predicted = rates(1 / 22, 0.99, 0.01)
    assert float(measured) == pytest.approx(float(predicted), rel=0.02)


def test_draws_depend_on_the_seed_alone():
    """Cells of one seed share their noise: with an amplitude of 0, runs of all frequencies are the same run."""

    def run(key, f, amplitude):
        shift, problem = sinusoid(f, amplitude=amplitude), linear_regression(**ONE_INPUT)
        return rj.oscillate(key, shift=shift, problem=problem, mu=0.9, eta=0.01, num_steps=40, tail=40)["growth_rate"]

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


def test_snapshots_are_the_ends_of_shorter_runs(x64):
    """Curves of unlimited range, over a labelled dimension; without snapshots nothing changes."""
    parts = dict(shift=sinusoid(1 / 8), problem=linear_regression(**ONE_INPUT), mu=0.95, eta=0.9)

    @jax.jit
    def runs(key):
        whole = rj.oscillate(key, num_steps=7000, tail=100, record=4, **parts)
        return whole, [rj.oscillate(key, num_steps=n, tail=1, **parts) for n in (1750, 3500, 5250, 7000)]

    whole, ends = runs(jax.random.key(2))
    curve = np.asarray(whole["log10_distance_curve"])
    assert whole["log10_distance_curve"].dims == ("step",)
    assert whole["log10_distance_curve"].coords == ((1750, 3500, 5250, 7000),)
    assert curve == pytest.approx([float(end["log10_distance"]) for end in ends], abs=1e-9)
    assert curve[-1] > 100  # beyond float32
    assert np.mean(np.asarray(whole["growth_curve"])) == pytest.approx(float(whole["growth_rate"]), rel=1e-9)
    assert float(whole["growth_rate"]) == pytest.approx(float(ends[-1]["growth_rate"]), rel=1e-12)
    data = rj.sweep(
        lambda mu: rj.oscillate(jax.random.key(0), **parts | dict(mu=mu), num_steps=10, tail=2, record=4),
        dict(mu=[0.1, 0.2]),
    )
    assert data.log10_distance_curve.dims == ("mu", "step")
    assert data.step.values.tolist() == [2, 5, 8, 10]
    assert data.log10_distance_curve.sel(step=10).values == pytest.approx(data.log10_distance_curve[:, -1].values)
