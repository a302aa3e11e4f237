"""When a run has diverged, in `train`, in `oscillate` and in a store."""

import jax
import numpy as np
import optax
import pytest

import resonance_jax as rj
from resonance_jax.jobs.layout import DIVERGED, OK
from resonance_jax.jobs.store import status_of
from resonance_jax.runs.divergence import says_diverged
from tests import reference

ONE_INPUT = dict(dim=1, samples=20)
CHECKED = 625  # steps from one check to the next, at most


def both(key, *, mu, eta=0.01, **common):
    """One run by both programs."""
    trained = rj.train(key, optimizer=optax.sgd(eta, momentum=mu), **common)
    return trained, rj.oscillate(key, mu=mu, eta=eta, **common)


def statuses(*runs):
    return [int(status_of({name: np.asarray(out) for name, out in run.items()}, 0, says_diverged)) for run in runs]


def distances(x, eps, error, *, mu, eta):
    """||theta_k - theta*|| of SGDm at the start and after every step, float64."""
    velocity, found = np.zeros_like(error), [np.linalg.norm(error)]
    for x_k, eps_k in zip(x, eps, strict=True):
        velocity = mu * velocity - eta * 2 * ((x_k @ error - eps_k)[:, None] * x_k).mean(0)
        error = error + velocity
        found.append(np.linalg.norm(error))
    return np.array(found)


def test_runs_are_those_of_a_loop():
    """A distance of 2e12 does not overflow, but has diverged; verdict, step and growth against NumPy in float64."""
    key, problem = jax.random.key(0), rj.problems.linear_regression(**ONE_INPUT)
    common = dict(shift=rj.shifts.sinusoid(1 / 22), problem=problem, num_steps=2500, tail=100)
    run = jax.jit(lambda mu, above: both(key, mu=mu, diverged_above=above, **common))
    drawn = reference.draws(key, common["shift"], problem, common["num_steps"])
    theta_star = np.linalg.norm(problem.least_squares.weights(jax.random.split(key, 4)[0])[0])
    seen = []
    for mu, above in ((0.99, 1e3), (0.99, 1e9), (0.99, 1e14), (0.9, 1e3)):
        found = distances(*drawn, mu=mu, eta=0.01)
        trained, oscillated = run(mu, above)
        limit = above * max(found[0], theta_star)
        at = int(trained["diverged_at"])
        seen.append(at >= 0)
        assert seen[-1] == bool(oscillated["diverged"]) == bool(found[-100:].mean() > limit)
        assert statuses(trained, oscillated) == [DIVERGED if seen[-1] else OK] * 2
        if seen[-1]:
            first = np.argmax(found > limit) - 1  # found[k + 1] comes after step k
            assert first <= at < first + CHECKED
            assert found[at + 1] > limit
        rate = np.log(max(found[-1], 1e-7) / found[0]) / common["num_steps"]  # the weights are rounded to 1e-7
        assert float(trained["growth_rate"]) == pytest.approx(rate, abs=1e-5 if mu == 0.99 else 2e-3)
    assert seen == [True, True, False, False]
    assert 1e12 < run(0.99, 1e3)[0]["distance"] < 1e13


def test_a_network_of_huge_finite_loss_has_diverged():
    run = jax.jit(
        lambda key: rj.train(
            key,
            shift=rj.shifts.switching(75, dim=2, variance=0.4),
            problem=rj.problems.mlp_regression(),
            optimizer=optax.sgd(0.1, momentum=0.99),
            num_steps=2000,
            tail=200,
        )
    )(jax.random.key(2))
    assert 1e9 < run["loss"] < 1e37  # without overflow
    assert run["diverged_at"] >= 0
    assert run["growth_rate"] > 0
    assert statuses(run) == [DIVERGED]


@pytest.mark.parametrize(
    "shift",
    [
        rj.shifts.sinusoid,
        lambda f: rj.shifts.ar2(f, joint_start=False),
        lambda f: rj.shifts.square_wave(1 / f, dim=1),
        lambda f: rj.shifts.switching(1 / f, dim=1, variance=0.05),
    ],
    ids=["sinusoid", "ar2", "square_wave", "switching"],
)
def test_transients_of_stable_runs_are_not_divergence(shift):
    """Runs that shrink according to `oscillate`, whose range is unlimited; nor is a large start divergence."""

    def point(seed, f, mu, weight_variance):
        problem = rj.problems.linear_regression(**ONE_INPUT, weight_variance=weight_variance)
        common = dict(shift=shift(f), problem=problem, num_steps=3000, tail=3000)
        trained, oscillated = both(jax.random.key(seed), mu=mu, eta=0.001, **common)
        return oscillated | {"diverged_at": trained["diverged_at"], "rate": trained["growth_rate"]}

    axes = dict(seed=np.arange(3), f=[1 / 14, 1 / 9], mu=[0.9, 0.99, 0.999], weight_variance=[0.25, 100.0])
    data = rj.sweep(point, axes)
    assert (data.growth_rate < 0).all()
    assert data.log10_distance.sel(weight_variance=100.0).max() > 0.5  # farther than 1 from theta*
    assert not data.diverged.any()
    assert (data.diverged_at == -1).all()
    assert (status_of({name: data[name].values for name in data}, 4, says_diverged) == OK).all()


def test_a_start_at_the_optimum_is_no_reference():
    """Noise drives such runs away from the optimum, infinitely far compared with an error of 0."""
    noisy = dict(dim=2, samples=3, noise_variance=0.1)
    origin = rj.problems.linear_regression(**noisy, weight_variance=0.0)
    problem = rj.problems.linear_regression(**noisy)

    def init(key, shift, shift_state):
        theta_star, _ = problem.least_squares.weights(key)
        return theta_star, theta_star

    common = dict(shift=rj.shifts.sinusoid(0.03), num_steps=400, tail=50)

    @jax.jit
    def run(key):
        warm = rj.train(key, optimizer=optax.adam(0.01), problem=problem._replace(init=init), **common)
        return warm, *both(key, mu=0.9, problem=origin, **common)

    runs = run(jax.random.key(0))
    assert statuses(*runs) == [OK, OK, OK]
    for one in runs[:2]:
        assert one["distance"] > 0.01
        assert np.isfinite(one["growth_rate"])
        assert one["growth_rate"] < 0.01


def test_a_first_step_that_overflows_grows():
    problem = rj.problems.linear_regression(**ONE_INPUT, weight_variance=100.0)
    common = dict(shift=rj.shifts.sinusoid(0.1), problem=problem, num_steps=20, tail=20)
    run = jax.jit(lambda key: rj.train(key, optimizer=optax.scale(-3e38), **common))(jax.random.key(0))
    assert run["diverged_at"] == 0
    assert 80 < run["growth_rate"] < 100
    assert np.isfinite(run["distance"])


def test_a_distance_is_finite_where_its_square_is_not():
    problem = rj.problems.linear_regression(**ONE_INPUT)
    assert float(problem.error(np.float32([3e30, 4e30]), np.zeros(2, np.float32))) == pytest.approx(5e30)
    with pytest.raises(ValueError, match=r"diverged_above must lie in \(1, inf\), got 0.5; a run has diverged where"):
        both(
            jax.random.key(0),
            mu=0.9,
            shift=rj.shifts.sinusoid(0.1),
            problem=problem,
            num_steps=9,
            tail=9,
            diverged_above=0.5,
        )
