"""Lyapunov exponents of training runs, against theory, maps that are known, another package and brute force."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from jax.flatten_util import ravel_pytree

import resonance_jax as rj
from resonance_jax.numerics.roots import with_flat_roots
from resonance_jax.problems import Problem
from resonance_jax.runs.training_step import training_step

KEY = jax.random.key(3)
LINEAR = dict(shift=rj.shifts.sinusoid(1 / 22), problem=rj.problems.linear_regression(dim=1, samples=2))
RNG = np.random.default_rng(0)
X = RNG.normal(size=(8, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1]


def spectrum(**settings):
    return jax.jit(lambda key: rj.lyapunov(key, **settings))(KEY)


def of_batches(rates):
    """Rate and standard error, the first batch left out."""
    kept = np.asarray(rates)[1:]
    return kept.mean(0), kept.std(0, ddof=1) / np.sqrt(len(kept))


def own_problem(parameters, loss):
    """Data that never change: a map."""
    return Problem(
        1,
        init=lambda key, shift, state: (parameters, ()),
        draw=lambda key, k: (),
        batch=lambda drawn, inputs: (),
        loss=lambda parameters, truth, batch: loss(parameters),
        error=lambda parameters, truth: loss(parameters),
    )


# Linear optimizers on least squares.


def test_sgdm_on_least_squares_is_the_theory():
    """The weights overflow float32 on the way; their perturbations do not depend on them."""
    settings = dict(mu=0.99, eta=0.01, num_steps=10_000)
    heavy_ball = optax.chain(optax.scale(-0.01), optax.trace(0.99))  # its trace is v, as in the theory

    @jax.jit
    def theory(key):
        return [
            theory(**LINEAR, **settings, key=key)
            for theory in (rj.theory.almost_sure_growth, rj.theory.lyapunov_spectrum)
        ]

    mine = spectrum(**LINEAR, optimizer=optax.sgd(0.01, momentum=0.99), num_steps=10_000, exponents=4)
    largest = spectrum(**LINEAR, optimizer=heavy_ball, num_steps=10_000)
    (same, every), (other, _) = theory(KEY), theory(jax.random.key(8))
    assert float(largest) > 0.01
    assert float(largest) == pytest.approx(float(same), abs=5e-6)  # the same draws
    assert float(largest.standard_error) == pytest.approx(float(same.standard_error), rel=1e-2)
    assert abs(float(largest) - float(other)) < 4 * np.hypot(largest.standard_error, other.standard_error)
    assert float(mine.rate[0]) == pytest.approx(float(largest), abs=1e-4)
    np.testing.assert_allclose(mine.rate, np.sort(every)[::-1], atol=2e-3)  # which has the first tenth, too
    assert float(mine.rate.sum()) == pytest.approx(2 * np.log(0.99), abs=1e-4)
    assert np.isfinite(mine.standard_error).all()


def test_a_sweep_and_what_is_forgotten():
    """SGD with a velocity that nothing is kept of: half the exponents are -inf."""

    def point(eta):
        return {
            "exponent": rj.lyapunov(KEY, **LINEAR, optimizer=optax.sgd(eta, momentum=0.0), num_steps=100, exponents=3)
        }

    data = rj.sweep(point, {"eta": [0.01, 0.02]})
    assert np.isfinite(data.exponent[:, :2]).all()
    assert np.isneginf(data.exponent[:, 2]).all()
    assert (data.exponent_standard_error[:, 2] == 0).all()


def test_hyperparameters_that_are_state_do_not_count():
    """A rate that every step hands on unchanged would be a neutral direction, with exponent 0."""
    plain = spectrum(**LINEAR, optimizer=optax.sgd(0.02), num_steps=np.int64(300), num_batches=np.int64(10))
    state = spectrum(**LINEAR, optimizer=optax.inject_hyperparams(optax.sgd)(learning_rate=0.02), num_steps=300)
    assert float(plain) < -0.001
    assert float(state) == pytest.approx(float(plain), rel=1e-3)


# Maps.


def henon(a=1.4, b=0.3):
    def update(gradient, state, parameters):
        x, y = parameters
        return jnp.stack([1 - a * x**2 + y, b * x]) - parameters, state

    return optax.GradientTransformation(lambda parameters: optax.EmptyState(), update)


def test_the_henon_map():
    problem = own_problem(jnp.array([0.1, 0.1]), jnp.sum)
    found = spectrum(problem=problem, optimizer=henon(), num_steps=50_000, exponents=2)
    np.testing.assert_allclose(found.rate, [0.4192, -1.6231], rtol=0.01)
    assert float(found.rate.sum()) == pytest.approx(np.log(0.3), abs=1e-5)


def test_a_map_that_leaves_the_floats():
    """x' = 3 x^2 from 2: finite for a few steps; then the rate of those, and no standard error."""

    def update(gradient, state, parameters):
        return 3 * parameters**2 - parameters, state

    squares = optax.GradientTransformation(lambda parameters: optax.EmptyState(), update)
    found = spectrum(problem=own_problem(jnp.array([2.0]), jnp.sum), optimizer=squares, num_steps=300)
    assert 1 < float(found) < 60
    assert np.isposinf(found.standard_error)
    late = spectrum(problem=own_problem(jnp.array([0.3334]), jnp.sum), optimizer=squares, num_steps=30)
    assert 0.1 < float(late) < 60


def network(parameters):
    hidden = jnp.tanh(jnp.asarray(X) @ parameters["in"])
    return jnp.mean((hidden @ parameters["out"] - jnp.asarray(Y)) ** 2)


WEIGHTS = {"in": RNG.normal(size=(2, 3)), "out": RNG.normal(size=3)}


def test_a_network_as_lyapax_has_it(x64):
    """Full batches, and a step size at which training is chaotic: two programs soon part, so within their errors."""
    lyapax = pytest.importorskip("lyapax")
    parameters = jax.tree.map(jnp.asarray, WEIGHTS)
    optimizer = optax.sgd(0.7, momentum=0.3)
    found = spectrum(problem=own_problem(parameters, network), optimizer=optimizer, num_steps=10_000, exponents=3)
    start, unravel = ravel_pytree((parameters, optimizer.init(parameters)))

    def step(flat):
        weights, state = unravel(flat)
        updates, state = optimizer.update(jax.grad(network)(weights), state, weights)
        return ravel_pytree((optax.apply_updates(weights, updates), state))[0]

    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        theirs = lyapax.lyapunov_spectrum(step, start, dt=1.0, n_steps=9000, k=3, t_transient=1000.0).exponents
    assert float(found.rate[0]) > 0.05
    assert (np.abs(found.rate - theirs) < 6 * found.standard_error + 1e-3).all()


# Adam.


def finite_differences(step, start, directions, num_steps, num_batches, h=1e-9):
    """Benettin's method on the bare step map, in NumPy: central differences and LAPACK's QR."""
    x, Q = np.asarray(start), np.linalg.qr(np.asarray(directions))[0]
    logs = []
    for k in range(num_steps):
        images = [(step(x + h * q, k) - step(x - h * q, k)) / (2 * h) for q in Q.T]
        Q, R = np.linalg.qr(np.stack([np.asarray(image) for image in images], axis=1))
        logs.append(np.log(np.abs(np.diag(R))))
        x = np.asarray(step(x, k))
    rate, error = of_batches(np.reshape(logs, (num_batches, -1, len(Q.T))).mean(1))
    order = np.argsort(-rate)
    return rate[order], error[order]


def test_adam_on_a_network_is_brute_force(x64):
    """A smooth network: where units die, v is 0, and differences to both sides do not exist."""
    shift = rj.shifts.switching(7, dim=1, variance=0.5)
    module = nn.Sequential([nn.Dense(2, param_dtype=float), nn.tanh, nn.Dense(1, param_dtype=float)])
    problem = rj.problems.mlp_regression(dim=1, samples=3, module=module)
    optimizer = optax.adam(0.02, b1=0.8, b2=0.9, eps=1e-3)
    found = spectrum(shift=shift, problem=problem, optimizer=optimizer, num_steps=60, exponents=3, num_batches=3)

    weights_key, start_key, shift_key, noise_key = jax.random.split(KEY, 4)
    state = shift.init(start_key)
    parameters, truth = problem.init(weights_key, shift, state)
    inputs, _ = shift.inputs(shift_key, jnp.arange(60, dtype=jnp.int32), state)
    adam_state = optimizer.init(parameters)
    start, unravel = ravel_pytree((parameters, adam_state[0].mu, adam_state[0].nu))
    one_step = training_step(problem, truth, optimizer.update)

    @jax.jit
    def step(flat, k):
        weights, mu, nu = unravel(flat)
        drawn = problem.draw(jax.random.fold_in(noise_key, k), k)
        adam = (adam_state[0]._replace(count=k, mu=mu, nu=nu), *adam_state[1:])
        after = one_step(weights, adam, drawn, jax.tree.map(lambda leaf: leaf[k], inputs))
        return ravel_pytree((after.parameters, after.optimizer_state[0].mu, after.optimizer_state[0].nu))[0]

    directions = jax.random.normal(jax.random.key(0), (start.size, 3))
    rate, error = finite_differences(lambda x, k: step(x, jnp.int32(k)), start, directions, 60, 3)
    np.testing.assert_allclose(found.rate, rate, atol=1e-4)
    np.testing.assert_allclose(found.standard_error, error, atol=1e-4)


def test_adam_on_a_dead_unit(x64):
    """Its gradient is exactly 0: its weight is neutral, and its m and v decay. The others do not know of it."""
    optimizer = functools.partial(optax.adam, 0.01, b1=0.9, b2=0.99)

    def loss(parameters):
        inputs = jnp.asarray(X[:, 0])
        alive = jnp.tanh(parameters["alive"][0] * inputs) * parameters["alive"][1]
        dead = jax.nn.relu(parameters["dead"][0] * inputs - 100) if "dead" in parameters else 0.0
        return jnp.mean((alive + dead - jnp.asarray(Y)) ** 2)

    alive = {"alive": jnp.array([0.3, 0.7])}
    common = dict(optimizer=optimizer(), num_steps=1000)
    without = spectrum(problem=own_problem(alive, loss), exponents=6, **common)
    with_dead = spectrum(problem=own_problem(alive | {"dead": jnp.array([0.5])}, loss), exponents=9, **common)
    expected = np.sort([*without.rate, 0, np.log(0.9), np.log(0.99)])[::-1]
    assert np.isfinite(with_dead.rate).all()
    np.testing.assert_allclose(with_dead.rate, expected, atol=5e-3)


def test_adafactor_on_a_dead_unit():
    """It multiplies by v^(-1/2) with v = 1e-30: the slope overflows float32, but the perturbation of v is 0."""

    def loss(parameters):
        return jnp.sum(jnp.square(parameters["alive"] - 1)) + jax.nn.relu(parameters["dead"] - 100)

    parameters = {"alive": jnp.array([0.3, 0.7]), "dead": jnp.array(0.5)}
    optimizer = optax.adafactor(0.01, multiply_by_parameter_scale=False)
    found = spectrum(problem=own_problem(parameters, loss), optimizer=optimizer, num_steps=3000)
    assert np.isfinite(found.standard_error)
    assert float(found) == pytest.approx(0, abs=1e-4)


def test_derivatives_of_roots_and_powers():
    x, along = jnp.array([0.3, 2.0]), jnp.array([1.0, -0.5])
    for function in (jnp.sqrt, lambda x: x**-0.5, lambda x: x**2.5, lambda x: x**x, jax.jit(jnp.sqrt)):
        np.testing.assert_allclose(
            jax.jvp(with_flat_roots(function), (x,), (along,)), jax.jvp(function, (x,), (along,)), rtol=1e-5
        )
    nothing, one = jnp.zeros(1), jnp.ones(1)
    assert jax.jvp(with_flat_roots(lambda x: x**0.5), (nothing,), (one,))[1].item() == 0
    assert jax.jvp(with_flat_roots(lambda x: x**-0.5), (1e-30 * one,), (nothing,))[1].item() == 0


# Errors.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(exponents=0), r"exponents must be a whole number of at least 1, got 0; it counts directions"),
        (dict(exponents=5), r"exponents must be at most 4, the floating-point entries of .*, got 5; ask for fewer"),
        (
            dict(num_batches=2),
            r"num_batches must be a whole number of at least 3 that divides num_steps=100, got 2; one",
        ),
        (dict(num_batches=7), r"num_batches must be .* divides num_steps=100, got 7"),
        (
            dict(optimizer=optax.adam),
            r"optimizer must be an optax.GradientTransformation, got .*call its factory first",
        ),
        (dict(num_steps=0), r"num_steps must be a whole number of at least 1, got 0; a run needs"),
        (dict(shift=rj.shifts.square_wave(9, dim=2)), r"the shift moves 2 inputs but the problem has dim=1"),
    ],
)
def test_bad_input(arguments, message):
    settings = LINEAR | dict(optimizer=optax.sgd(0.1, momentum=0.9), num_steps=100) | arguments
    with pytest.raises(ValueError, match=message):
        rj.lyapunov(KEY, **settings)
