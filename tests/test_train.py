import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import resonance_jax as rj
from tests import reference

SWITCHING = functools.partial(rj.shifts.switching, dim=3, variance=0.5)
NOISY = dict(dim=3, samples=2, input_variance=0.25, noise_variance=0.1, weight_variance=0.25)


def settings(T=12, **problem):
    return dict(shift=SWITCHING(T), problem=rj.problems.linear_regression(**NOISY | problem), num_steps=400, tail=400)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_sgd_of_optax_is_oscillate(x64, reduction):
    """Two programs, autodiff on samples and the linear recursion on moments, compute the same run."""
    key, common = jax.random.key(3), settings(reduction=reduction) | dict(tail=60 if reduction == "mean" else 400)

    @jax.jit
    def both(key):
        trained = rj.train(key, optimizer=optax.sgd(0.01, momentum=0.9), **common)
        return trained, rj.oscillate(key, mu=0.9, eta=0.01, **common)

    trained, oscillated = both(key)
    assert np.log10(trained["distance"]) == pytest.approx(float(oscillated["log10_distance"]), abs=1e-9)
    assert trained["diverged_at"] == -1


def test_adam_is_the_numpy_loop(x64):
    """Rates and decay as arguments of a compiled function, so as tracers."""
    key, common = jax.random.key(1), settings()
    run = jax.jit(lambda eta, beta1: rj.train(key, optimizer=optax.adam(eta, b1=beta1), **common))
    drawn = reference.draws(key, common["shift"], common["problem"], common["num_steps"])
    for eta, beta1 in ((0.01, 0.9), (0.03, 0.99)):
        theirs = reference.adam(*drawn, eta=eta, beta1=beta1, tail=common["tail"])
        assert float(run(eta, beta1)["distance"]) == pytest.approx(theirs, rel=1e-9)


def test_hyperparameters_of_any_optimizer_are_axes():
    """One compiled program for four optimizers in a chain, against single runs."""

    def point(seed, eta, decay, T):
        optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(eta, weight_decay=decay))
        return rj.train(jax.random.key(seed), optimizer=optimizer, **settings(T))

    axes = dict(seed=np.arange(2), eta=[0.01, 0.02], decay=[0.0, 5.0], T=[0, 9])
    data = rj.sweep(point, axes)
    assert set(data) == {"distance", "growth_rate", "update_growth_rate", "diverged_at"}
    chosen = dict(seed=1, eta=0.02, decay=5.0, T=9)
    assert float(data.distance.sel(chosen)) == pytest.approx(float(jax.jit(point)(**chosen)["distance"]), rel=1e-4)
    assert float(data.distance.sel(decay=5.0).mean()) > float(data.distance.sel(decay=0.0).mean())


def test_divergence_is_recorded_and_poisons_nothing():
    """eta = 3 multiplies the error by about -5 a step, which overflows float32 within a hundred steps."""

    def point(seed, eta):
        common = settings(noise_variance=0.0, input_variance=1.0, samples=50) | dict(tail=20)
        return rj.train(jax.random.key(seed), optimizer=optax.sgd(eta), **common)

    data = rj.sweep(point, dict(seed=np.arange(3), eta=[0.01, 3.0]))
    assert (data.diverged_at.sel(eta=0.01) == -1).all()
    assert ((data.diverged_at.sel(eta=3.0) > 10) & (data.diverged_at.sel(eta=3.0) < 120)).all()
    assert np.isfinite(data.distance).all()
    assert data.distance.sel(eta=3.0).min() > 1e15
    assert np.isfinite(data.growth_rate).all()
    assert data.growth_rate.sel(eta=0.01).max() < 0
    assert ((data.growth_rate.sel(eta=3.0) > 0.3) & (data.growth_rate.sel(eta=3.0) < 6)).all()


def test_diverged_at_is_the_step_of_the_loop():
    """One weight, no noise: e_k = (1 - 2 eta)^k e_0 leaves the range of float32 at a step that is known."""
    problem = rj.problems.linear_regression(dim=1, samples=1, input_variance=0.0)
    settings = dict(shift=rj.shifts.sinusoid(0.0), problem=problem, optimizer=optax.sgd(50.0), num_steps=100, tail=1)
    run = jax.jit(lambda key: rj.train(key, **settings))(jax.random.key(0))
    theta_star, theta_0 = problem.least_squares.weights(jax.random.split(jax.random.key(0), 4)[0])
    e, k = np.float32(theta_0[1] - theta_star[1]), 0
    with np.errstate(over="ignore"):
        while np.isfinite(e * e):  # the loss overflows before the weight does
            e, k = np.float32(e * -99), k + 1
    assert int(run["diverged_at"]) == k
    assert np.isfinite(run["distance"])
    error = np.asarray(theta_0 - theta_star, float)
    end = np.hypot(error[0], error[1] * 99.0**k)  # the other weight stands still
    assert float(run["growth_rate"]) == pytest.approx(np.log(end / np.linalg.norm(error)) / k, rel=1e-5)


def test_updates_grow_as_the_error_does():
    """One input without noise or motion: the slope's error is multiplied by 1 - 2 eta in every step."""

    def point(eta):
        drawn = rj.problems.linear_regression(dim=1, samples=1, bias=False)
        ones = jnp.ones((1, 1))
        problem = drawn._replace(batch=lambda *of_step: drawn.batch(*of_step)._replace(inputs=ones))
        return rj.train(jax.random.key(0), problem=problem, optimizer=optax.sgd(eta), num_steps=200, tail=100, record=4)

    eta = np.array([0.005, 0.02, 1.01, 1.3, 30.0])  # the last leaves float32 in its first block
    data = rj.sweep(point, {"eta": eta})
    np.testing.assert_allclose(data.update_growth_rate, np.log(np.abs(1 - 2 * eta)), rtol=2e-3)
    assert (data.diverged_at >= 0).values.tolist() == [False, False, False, True, True]
    assert all(np.isfinite(data[name]).all() for name in data)
    np.testing.assert_allclose(data.growth_curve[:4, 0], np.log(np.abs(1 - 2 * eta[:4])), rtol=2e-3)


def test_snapshots_are_the_ends_of_shorter_runs():
    """`tail=1` makes the error of the last step the output."""
    common = settings() | dict(optimizer=optax.adam(0.02))
    run = jax.jit(lambda key: rj.train(key, **common | dict(record=7, tail=150)))(jax.random.key(1))
    curve = run["distance_curve"]
    assert curve.dims == ("step",)
    assert curve.coords == ((57, 114, 171, 229, 286, 343, 400),)
    shorter = common | dict(num_steps=229, tail=1)
    end = jax.jit(lambda key: rj.train(key, **shorter)["distance"])(jax.random.key(1))
    assert float(np.asarray(curve)[3]) == pytest.approx(float(end), rel=1e-4)
    plain = jax.jit(lambda key: rj.train(key, **common | dict(tail=150)))(jax.random.key(1))
    assert float(run["distance"]) == pytest.approx(float(plain["distance"]), rel=1e-5)
    steps = np.diff([0, *curve.coords[0]])
    assert float(np.asarray(run["growth_curve"]) @ steps) == pytest.approx(400 * float(run["growth_rate"]), rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(record=401), r"record must lie between 0 and num_steps=400, got 401; a step has at most one snapshot"),
        (dict(record=-1), r"record must lie between 0 and num_steps=400, got -1"),
        (dict(record=2.0), r"record must be a plain whole number, got 2.0; it counts snapshots of a run"),
        (dict(optimizer=optax.sgd), r"optimizer must be an optax.GradientTransformation, got .*call its factory first"),
        (dict(tail=900), r"tail must be at most num_steps, got tail=900 > num_steps=400; shorten the tail"),
        (dict(tail=0), r"tail must be a whole number of at least 1, got 0"),
        (dict(diverged_above=1.0), r"diverged_above must lie in \(1, inf\), got 1.0; a run has diverged where it grew"),
        (dict(num_steps=0), r"num_steps must be a whole number of at least 1, got 0; a run needs"),
        (dict(shift=rj.shifts.square_wave(9, dim=2)), r"the shift moves 2 inputs but the problem has dim=3"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        rj.train(jax.random.key(0), **settings() | dict(optimizer=optax.sgd(0.1)) | arguments)


def test_a_hyperparameter_that_cannot_be_traced_names_the_remedy():
    def point(nesterov):
        return rj.train(jax.random.key(0), optimizer=optax.sgd(0.1, momentum=0.9, nesterov=nesterov), **settings())

    with pytest.raises(ValueError, match=r"a value of an axis .*nesterov.* take it off the axes"):
        rj.sweep(point, dict(nesterov=[0, 1]))
