"""What the guard does to noise, to growth and to a run that resonates."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import resonance_jax as rj
from tests.guarding import follow, heavy, injected, momentum_of, rising, sgd

pytestmark = pytest.mark.usefixtures("promotions_of_optax")


@functools.partial(jax.jit, static_argnums=0)
def releases_of(optimizer, lanes):
    """How often each lane let go, for gradients of shape (lanes, steps, weights)."""

    def one(gradients):
        def step(state, gradient):
            return optimizer.update(gradient, state, gradient)[1], None

        return jax.lax.scan(step, optimizer.init(gradients[0]), gradients)[0].releases

    return jax.vmap(one)(lanes)


def one_normal():
    return jax.random.normal(jax.random.key(3), (50, 20_000, 1))


def ten_weights_one_sample():
    error, inputs = (jax.random.normal(jax.random.key(seed), (50, 20_000, dim)) for seed, dim in ((12, 1), (11, 10)))
    return error * inputs


@pytest.mark.parametrize("momentum", [0.9, 0.99])
@pytest.mark.parametrize("noise", [one_normal, ten_weights_one_sample])
def test_noise_is_not_growth(noise, momentum):
    """Fifty runs of 20,000 steps: at most two let go. (Gradients of one weight on one sample are noisier still.)"""
    assert int((releases_of(sgd(momentum), noise()) > 0).sum()) <= 2


@pytest.mark.parametrize(("rate", "factor"), [(0.003, 5), (0.03, 10), (0.3, 250)])
def test_growth_from_the_first_step_is_noticed(rate, factor):
    """The mean of the run is then a part of the last size; at 30% a step, 18 steps are the fewest that tell."""
    _, states = follow(sgd(), rising(rate, int(np.log(factor) / rate))[:, None])
    assert int(states.releases[-1]) >= 1


@pytest.mark.parametrize("before", [100, 1_000, 10_000])
@pytest.mark.parametrize(("rate", "factor"), [(0.003, 5), (0.03, 5), (0.3, 25)])
def test_growth_after_a_quiet_time_is_noticed_sooner(rate, factor, before):
    gradients = rising(rate, int(np.log(factor) / rate), before)
    _, states = follow(sgd(), gradients[:, None])
    assert int(states.releases[-1]) >= 1
    assert not states.releasing[:before].any()


@pytest.mark.parametrize("ceiling", [0.0, 0.3, 0.9, 0.99, 1.0])
def test_momentum_lies_between_zero_and_the_ceiling(ceiling):
    gradients = jnp.concatenate([rising(0.2, 60), heavy(1, 500), rising(-0.1, 100), jnp.zeros(50), rising(0.5, 40)])
    _, states = follow(sgd(ceiling), gradients[:, None])
    momenta = np.asarray(momentum_of(states))
    assert (momenta >= 0).all()
    assert (momenta <= np.float32(ceiling)).all()
    assert (np.asarray(states.ceiling) == np.float32(ceiling)).all()


def test_after_the_first_release_half_of_the_excess_is_gone_when_the_steps_double():
    """Growth from step 500 to 540, then a steady size: the excess at step 2 k is half that at step k."""
    grown = rising(0.05, 40, before=500)
    gradients = jnp.concatenate([grown, jnp.full(4000, 1.0)])
    _, states = follow(sgd(), gradients[:, None])
    assert int(states.releases[-1]) == 1
    quiet = int(np.flatnonzero(states.releasing)[-1]) + 2
    excess = np.asarray(states.damping) - (1 - 0.99)
    assert excess[quiet] > 0.01
    for k in (quiet, 2 * quiet):  # entry k - 1 is step k
        assert excess[2 * k - 1] == pytest.approx(excess[k - 1] / 2, rel=0.01)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_only_relative_sizes_count(scale):
    gradients = jnp.concatenate([0.1 * heavy(2, 300, 3), rising(0.03)[:, None] * jnp.ones(3)])
    _, states = follow(sgd(), gradients)
    _, scaled = follow(sgd(), scale * gradients)
    assert int(states.releases[-1]) > 0
    np.testing.assert_array_equal(scaled.releases, states.releases)
    np.testing.assert_array_equal(scaled.releasing, states.releasing)
    np.testing.assert_allclose(scaled.damping, states.damping, rtol=1e-4)


def test_zero_gradients_change_nothing():
    weights, states = follow(sgd(), jnp.zeros((100, 2)))
    assert (np.asarray(weights) == 0).all()
    assert (np.asarray(momentum_of(states)) == np.float32(0.99)).all()
    assert int(states.releases[-1]) == 0
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(states))


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("at", [0, 100])
def test_a_gradient_that_is_not_finite_takes_all_momentum(bad, at):
    """And is left out of the averages; momentum comes back from there as after a release."""
    gradients = rising(0.0).at[at].set(bad)
    _, states = follow(sgd(), gradients[:, None])
    assert float(momentum_of(states)[at]) == 0
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(states.sizes))
    assert np.isfinite(states.damping).all()
    assert float(states.sizes.usual[-1]) == pytest.approx(1)
    assert (np.diff(momentum_of(states)[at:]) >= 0).all()
    assert float(momentum_of(states)[-1]) > 0.4


def test_with_a_horizon_momentum_returns_within_some_horizons():
    horizon = 200
    gradients = jnp.concatenate([rising(0.05, 60, before=10 * horizon), jnp.full(4 * horizon, 1.0)])
    with_horizon, without = (follow(sgd(horizon=each), gradients[:, None])[1] for each in (horizon, None))
    excess, lasting = (np.asarray(states.damping) - (1 - 0.99) for states in (with_horizon, without))
    assert int(with_horizon.releases[-1]) == 1
    assert int(without.releases[-1]) == 1
    assert excess[-1] < 0.05 * excess.max()
    assert lasting[-1] > 0.5 * lasting.max()


# Against the problem it is for


def trained(f, optimizer, num_steps):
    return rj.train(
        jax.random.key(0),
        shift=rj.shifts.sinusoid(f, amplitude=0.5),
        problem=rj.problems.linear_regression(dim=1, samples=20),
        optimizer=optimizer,
        num_steps=num_steps,
        tail=500,
    )


def log10_distances(f, num_steps):
    """Of the plain and of the guarded run."""
    optimizers = injected(0.99, 0.01), sgd(0.99, learning_rate=0.01)
    runs = [jax.jit(lambda f, each=each: trained(f, each, num_steps))(f) for each in optimizers]
    return [np.log10(float(run["distance"])) for run in runs]


def test_resonance_is_stopped(x64):
    plain, ours = log10_distances(1 / 22, 10_000)
    assert plain > 10
    assert ours < -3


def test_where_nothing_resonates_nothing_is_lost(x64):
    """4,000 steps, after which the distance is still above the rounding errors of float64."""
    plain, ours = log10_distances(0.0, 4_000)
    assert -14 < plain < -4
    assert ours == pytest.approx(plain, abs=0.01)
