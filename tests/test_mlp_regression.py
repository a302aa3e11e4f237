import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn

import resonance_jax as rj
from resonance_jax.problems.mlp_regression import cosine_of_distance
from resonance_jax.shifts import Inputs

KEY = jax.random.key(8)


def switching(T=7):
    return rj.shifts.switching(T, dim=2, variance=0.4)


@functools.cache
def started(noisy_test=False, test_samples=20_000):
    problem = rj.problems.mlp_regression(noisy_test=noisy_test, test_samples=test_samples)
    return problem, *jax.jit(lambda key: problem.init(key, switching(), ()))(KEY)


def test_network_is_2_20_20_1_with_he_initialisation():
    """Kernels are normal of variance 2 / fan_in: 440 of them in the two wide layers, standard error 7%."""
    _, parameters, _ = started()
    layers = parameters["params"]
    shapes = [layers[f"Dense_{i}"]["kernel"].shape for i in range(3)]
    assert shapes == [(2, 20), (20, 20), (20, 1)]
    assert all(not np.any(layers[f"Dense_{i}"]["bias"]) for i in range(3))
    assert np.var(layers["Dense_1"]["kernel"]) == pytest.approx(2 / 20, rel=0.35)


def test_loss_is_that_of_a_numpy_network(x64):
    problem = rj.problems.mlp_regression(loss_factor=1.0)

    @jax.jit
    def started_and_measured(key):
        parameters, test = problem.init(key, switching(), ())
        batch = problem.batch(problem.draw(key, 0), Inputs(jnp.array([0.3, -0.2]), jnp.array(0.0)))
        return parameters, test, batch, problem.loss(parameters, test, batch), problem.error(parameters, test)

    parameters, test, batch, loss, error = started_and_measured(KEY)

    def squared_error(batch):
        x = np.asarray(batch.inputs)
        target = np.cos(np.pi * np.sqrt((x**2).sum(1))) + np.asarray(batch.noise)
        for i in range(3):
            layer = parameters["params"][f"Dense_{i}"]
            x = x @ np.asarray(layer["kernel"]) + np.asarray(layer["bias"])
            x = np.maximum(x, 0) if i < 2 else x
        return np.mean((x[:, 0] - target) ** 2)

    assert float(loss) == pytest.approx(squared_error(batch) / 2, rel=1e-12)
    assert float(error) == pytest.approx(squared_error(test), rel=1e-12)


def test_test_set_follows_the_stationary_law():
    """x ~ N(0, (0.1 + 0.4) I): 40,000 entries, standard errors 0.35% of the scale and 0.7% of the variance."""
    problem = rj.problems.mlp_regression(test_samples=20_000)
    inputs = jax.jit(lambda key: [problem.init(key, switching(T), ())[1].inputs for T in (0, 7)])(KEY)
    for each in inputs:
        assert np.abs(np.mean(each, axis=0)).max() < 5 * np.sqrt(0.5 / 20_000)
        assert np.cov(each.T) == pytest.approx(0.5 * np.eye(2), abs=5 * 0.5 * np.sqrt(2 / 20_000))


def test_noise_of_the_test_set_is_a_switch():
    """Squared error with noise is that without plus its variance, 0.1, within 5 standard errors of 20,000 samples."""
    problem, parameters, clean = started()
    _, _, noisy = started(noisy_test=True)
    assert not np.any(clean.noise)
    assert np.var(noisy.noise) == pytest.approx(0.1, rel=0.05)
    error = jax.jit(problem.error)
    gap = float(error(parameters, noisy)) - float(error(parameters, clean))
    assert gap == pytest.approx(0.1, abs=5 * (0.1 * np.sqrt(2) + 2 * np.sqrt(0.1)) / np.sqrt(20_000))


def test_training_lowers_the_loss_and_equals_a_plain_loop():
    """`train` against the same steps written one by one, with optax as a user would."""
    problem = rj.problems.mlp_regression()
    optimizer, shift = optax.sgd(0.01, momentum=0.95), switching()
    common = dict(shift=shift, problem=problem, optimizer=optimizer, tail=10)
    run = jax.jit(lambda key: rj.train(key, num_steps=300, **common))(jax.random.key(0))

    weights_key, start_key, shift_key, noise_key = jax.random.split(jax.random.key(0), 4)

    @jax.jit
    def begin():
        parameters, test = problem.init(weights_key, shift, shift.init(start_key))
        inputs, _ = shift.inputs(shift_key, jnp.arange(300), ())
        return parameters, optimizer.init(parameters), test, problem.error(parameters, test), inputs

    parameters, state, test, loss, inputs = begin()
    losses = [loss]

    @jax.jit
    def step(parameters, state, k):
        of_step = jax.tree.map(lambda leaf: leaf[k], inputs)
        batch = problem.batch(problem.draw(jax.random.fold_in(noise_key, k), k), of_step)
        updates, state = optimizer.update(jax.grad(problem.loss)(parameters, test, batch), state)
        parameters = optax.apply_updates(parameters, updates)
        return parameters, state, problem.error(parameters, test)

    for k in range(300):
        parameters, state, loss = step(parameters, state, k)
        losses.append(loss)
    assert float(run["loss"]) == pytest.approx(float(np.mean(losses[-10:])), rel=1e-3)
    assert run["loss"] < 0.9 * losses[0]


def test_any_module_and_target():
    class Cubic(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(1, use_bias=False)(x**3)[:, 0]

    problem = rj.problems.mlp_regression(dim=3, module=Cubic(), target=lambda x: (2 * x**3).sum(-1), noise_variance=0.0)
    shift = rj.shifts.switching(5, dim=3, variance=0.5)
    adam = optax.adam(0.05)
    settings = dict(shift=shift, problem=problem, optimizer=adam, num_steps=600, tail=20)
    run = jax.jit(lambda key: rj.train(key, **settings))(KEY)
    assert run["loss"] < 1e-3  # the target lies in the model


def test_stationary_law_is_the_law_of_the_means():
    """Mean square of 4,000 stationary draws against that of a trajectory of 60,000 steps (many periods)."""
    shifts = dict(
        sinusoid=rj.shifts.sinusoid(0.03),
        square_wave=rj.shifts.square_wave(30, dim=2),
        ar2=rj.shifts.ar2(0.03),
        switching=rj.shifts.switching(3, dim=2, variance=0.4),
    )

    def drawn_and_visited(shift, key):
        state = shift.init(key)
        drawn = jax.vmap(lambda key: shift.stationary(key, state).mean)(jax.random.split(key, 4000))
        return drawn, shift.inputs(key, jnp.arange(60_000), state)[0].mean

    results = jax.jit(lambda key: {name: drawn_and_visited(shift, key) for name, shift in shifts.items()})(KEY)
    for name, (drawn, visited) in jax.device_get(results).items():
        assert drawn.shape[1:] == visited.shape[1:], name
        assert np.mean(drawn**2) == pytest.approx(np.mean(visited**2), rel=0.15), name
        assert np.abs(np.mean(drawn)) < 0.05, name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(samples=0), r"samples must be a whole number of at least 1, got 0"),
        (dict(hidden=20), r"hidden must be a sequence of widths, got 20; one layer of 20 is \(20,\)"),
        (dict(hidden=(20, 0)), r"each width in hidden must be a whole number of at least 1, got 0"),
        (dict(noise_variance=-0.1), r"noise_variance must lie in \[0, inf\), got -0.1; give a variance"),
        (dict(module=nn.Dense(2)), r"module must map inputs \(n, 2\) to \(n, 1\) or \(n,\), got \(10, 2\) for n=10"),
        (dict(target=lambda x: x), r"target must map inputs \(n, 2\) to \(n,\), got \(10, 2\) for n=10"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        rj.problems.mlp_regression(**arguments)


def test_a_shift_without_a_stationary_law_is_named():
    shift = switching()._replace(stationary=None)
    with pytest.raises(ValueError, match=r"give the Shift a stationary\(key, state\) -> Inputs"):
        rj.problems.mlp_regression().init(KEY, shift, ())


def test_target_of_the_paper():
    assert np.allclose(cosine_of_distance(jnp.array([[0.0, 0.0], [0.6, 0.8], [1.5, 2.0]])), [1, -1, 0], atol=1e-6)
