"""Linear optimizers read off optax, against optax itself, step by step in float64, and against NumPy's products."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import resonance_jax as rj
from resonance_jax.optimizers import modes
from resonance_jax.optimizers.stepping import stepping
from resonance_jax.runs.recursion import recursion
from tests import reference


def quasi_hyperbolic(eta, mu, nu):
    """A share nu of an average and 1 - nu of the gradient: two ways from the gradient to the weights."""
    average = optax.ema(mu, debias=False)

    def update(gradient, state, params=None):
        averaged, state = average.update(gradient, state, params)
        return jax.tree.map(lambda a, g: -eta * (nu * a + (1 - nu) * g), averaged, gradient), state

    return optax.GradientTransformation(average.init, update)


def two_speeds(eta, mu):
    """Two buffers side by side, each fed by the gradient."""

    def init(params):
        return jax.tree.map(jnp.zeros_like, (params, params))

    def update(gradient, state, params=None):
        fast, slow = (decay * each + gradient for decay, each in zip((mu, mu**3), state, strict=True))
        return -eta / 2 * (fast + slow), (fast, slow)

    return optax.GradientTransformation(init, update)


def delayed(eta):
    """The gradient of the step before: the newest one does not move the weights."""
    return optax.GradientTransformation(
        lambda params: jax.tree.map(jnp.zeros_like, params),
        lambda gradient, state, params=None: (-eta * state, gradient),
    )


def newest_taken_out(mu):
    """Momentum minus the gradient of the step itself: two ways to the weights that cancel."""
    momentum = optax.trace(mu)

    def update(gradient, state, params=None):
        moved, state = momentum.update(gradient, state, params)
        return jax.tree.map(jnp.subtract, moved, gradient), state

    return optax.GradientTransformation(momentum.init, update)


def counting():
    """State that no gradient reaches, and state that reaches no weight."""

    def init(params):
        return {"count": jnp.zeros((), jnp.int32), "unused": jnp.zeros(()), "norm": jnp.zeros(())}

    def update(gradient, state, params=None):
        return gradient, {
            "count": state["count"] + 1,
            "unused": 0.5 * state["unused"],
            "norm": jnp.sqrt(jnp.sum(gradient**2)),
        }

    return optax.GradientTransformation(init, update)


CHAINS = {
    "sgd": lambda eta, mu: optax.sgd(eta),
    "heavy ball": lambda eta, mu: optax.sgd(eta, momentum=mu),
    "nesterov": lambda eta, mu: optax.sgd(eta, momentum=mu, nesterov=True),
    "ema": lambda eta, mu: optax.chain(optax.ema(mu, debias=False), optax.scale(-10 * eta)),
    "two traces": lambda eta, mu: optax.chain(optax.trace(mu), optax.trace(0.5), optax.scale(-eta)),
    "trace of an average": lambda eta, mu: optax.chain(optax.ema(0.8, debias=False), optax.sgd(eta, mu)),
    "decay in the gradient": lambda eta, mu: optax.chain(optax.add_decayed_weights(0.1), optax.sgd(eta, mu)),
    "decay of the weights": lambda eta, mu: optax.chain(
        optax.trace(mu, nesterov=True), optax.add_decayed_weights(0.1), optax.scale(-eta)
    ),
    "injected": lambda eta, mu: optax.inject_hyperparams(optax.sgd)(learning_rate=eta, momentum=mu),
    "flattened": lambda eta, mu: optax.flatten(optax.sgd(eta, mu)),
    "masked": lambda eta, mu: optax.masked(optax.sgd(eta, mu), True),
    "named": lambda eta, mu: optax.named_chain(("momentum", optax.trace(mu)), ("rate", optax.scale(-eta))),
    "quasi-hyperbolic": lambda eta, mu: quasi_hyperbolic(10 * eta, mu, 0.7),
    "two speeds": two_speeds,
    "delayed": lambda eta, mu: delayed(eta),
    "without its newest gradient": lambda eta, mu: optax.chain(newest_taken_out(mu), optax.scale(-eta)),
    "counting": lambda eta, mu: optax.chain(counting(), optax.sgd(eta, mu)),
    "one variable twice": lambda eta, mu: optax.chain(optax.trace(mu), keeps_its_input(0.5), optax.scale(-eta)),
    "decay by shape": lambda eta, mu: optax.chain(
        optax.add_decayed_weights(0.1, mask=lambda p: jax.tree.map(lambda x: x.ndim == 1, p)), optax.sgd(eta, mu)
    ),
    "momentum of 0 in the state": lambda eta, mu: optax.inject_hyperparams(optax.sgd)(eta, momentum=0.0),
    "nothing": lambda eta, mu: optax.set_to_zero(),
}
BUFFERS = {"sgd": 0, "nothing": 0, "two traces": 2, "trace of an average": 2, "two speeds": 2, "one variable twice": 2}
ETA, MU = 0.05, 0.9


def arguments(factory):
    """What a factory of optax needs besides its defaults."""
    known = dict(learning_rate=0.01, key=0)
    parameters = inspect.signature(factory).parameters.values()
    return {name: value for name, value in known.items() if name in {each.name for each in parameters}}


def aliases():
    """Every optimizer of optax by name: all that `optax._src.alias` offers."""
    from optax._src import alias

    return (
        sorted(alias.__all__)
        if hasattr(alias, "__all__")
        else sorted(
            name
            for name, each in vars(alias).items()
            if inspect.isfunction(each)
            and each.__module__ == alias.__name__
            and not name.startswith("_")
            and hasattr(optax, name)
        )
    )


def trained_by_optax(optimizer, B, error, theta_star, num_steps):
    """theta - theta* after each step, in float64, one update of optax after another."""
    theta = jnp.asarray(error + theta_star)
    state, found = optimizer.init(theta), []
    for k in range(num_steps):
        gradient = jnp.asarray(B[k] @ (np.asarray(theta) - theta_star))
        updates, state = optimizer.update(gradient, state, theta)
        theta = optax.apply_updates(theta, updates)
        found.append(np.asarray(theta) - theta_star)
    return np.array(found)


@pytest.fixture(scope="module")
def quadratics():
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(12, 3, 3))
    return roots @ roots.transpose(0, 2, 1), rng.normal(size=3), rng.normal(size=3)


@pytest.mark.parametrize("name", CHAINS)
def test_steps_are_those_of_optax(x64, quadratics, name):
    """As matrices, with what pulls decaying weights to 0, and in the coordinates of a run."""
    B, error, theta_star = quadratics
    optimizer = CHAINS[name](ETA, MU)
    with jax.numpy_dtype_promotion("standard"):
        theirs = trained_by_optax(optimizer, B, error, theta_star, len(B))
    linear = rj.optimizers.read(optimizer)
    assert len(linear.buffers) == BUFFERS.get(name, 1)
    rows = linear.rows()
    drive = np.concatenate([(float(weight.value) - (i == 0)) * theta_star for i, (_, weight, _) in enumerate(rows)])
    state = np.concatenate([error, np.zeros(3 * len(linear.buffers))])
    stepped = stepping(linear)
    A = np.array([[float(each) for each in row] for row in stepped.matrix()])
    truth = np.array([float(row.truth) for row in (stepped.x, *stepped.buffers)])
    coordinates = np.zeros((len(A), 3))
    coordinates[0] = error
    for k in range(len(B)):
        state = np.asarray(linear.one_step(jnp.asarray(B[k]))) @ state + drive
        gradient = B[k] @ (coordinates[0] + stepped.reach * coordinates[1])
        coordinates = A @ coordinates + np.outer(truth, theta_star)
        coordinates[1] += float(stepped.gain) * gradient
        np.testing.assert_allclose(state[:3], theirs[k], rtol=0, atol=1e-12)
        np.testing.assert_allclose(coordinates[0] + stepped.reach * coordinates[1], theirs[k], rtol=0, atol=1e-12)
    assert stepped.decays == ("decay" in name)


def test_nothing_is_multiplied_by_0_or_1():
    """Of optax.sgd traced in a sweep, heavy ball costs what it costs when written by hand, and Nesterov one number."""

    def plain(row):
        return [each for each in (row.x, row.error, *row.buffers, row.truth, row.gradient) if isinstance(each, float)]

    def look(eta, mu):
        for optimizer, is_plain in ((optax.sgd(eta, mu), True), (optax.sgd(eta, mu, True), False)):
            found = stepping(rj.optimizers.read(optimizer))
            assert plain(found.x) == [1.0, 0.0, 1.0, 0.0, 0.0]
            assert plain(found.buffers[0]) == [0.0, 0.0, 0.0]
            assert isinstance(found.ahead, float) == is_plain
            assert len(found.buffers) == 1
        assert len(stepping(rj.optimizers.nesterov(mu, eta)).buffers) == 1
        return eta

    jax.eval_shape(look, 0.1, 0.9)


def common():
    return dict(shift=rj.shifts.sinusoid(0.1), num_steps=40, tail=40)


NOISY = dict(dim=2, samples=3, noise_variance=0.1)


@pytest.mark.filterwarnings("ignore:`optimistic_adam` is deprecated")
@pytest.mark.parametrize("name", [*CHAINS, *(f"optax.{alias}" for alias in aliases())])
def test_agrees_with_train_or_is_refused(x64, name):
    """Every optimizer of optax, and the chains above, on the same draws; hyperparameters traced."""
    problem, key = rj.problems.linear_regression(**NOISY), jax.random.key(3)
    if name in CHAINS:
        make, traced = CHAINS[name], (ETA, MU)
    else:
        factory = getattr(optax, name.removeprefix("optax."))
        make, traced = lambda *_: factory(**arguments(factory)), ()

    def both(*traced):
        optimizer = make(*traced)
        mine = rj.oscillate(key, problem=problem, optimizer=optimizer, **common())["log10_distance"]
        return mine, rj.train(key, problem=problem, optimizer=optimizer, **common())["distance"]

    if name in CHAINS or name == "optax.sgd":
        mine, theirs = jax.jit(both)(*traced)
        assert float(mine) == pytest.approx(np.log10(theirs), abs=1e-9)
    else:
        with pytest.raises(ValueError, match=r"linear in the gradient and the same at every step, got one that"):
            rj.oscillate(key, problem=problem, optimizer=make(*traced), **common())


def keeps_its_input(share):
    """What it stores is what the transformation before it stores: one variable in two places of the state."""
    return optax.GradientTransformation(jnp.zeros_like, lambda g, s, p=None: (g - share * s, g))


def scaled(factor):
    return optax.stateless(lambda g, p: jax.tree.map(lambda x: -0.01 * x * factor(x), g))


REFUSED = {
    "passes the gradient through 'sign'": lambda: optax.sign_sgd(0.1),
    "passes the gradient through 'max'": lambda: optax.chain(optax.clip(1.0), optax.sgd(0.1)),
    "multiplies the gradient with itself": lambda: optax.adagrad(0.1),
    "divides by 0": lambda: optax.stateless(lambda g, p: g / 0.0),
    "changes from step to step": lambda: optax.sgd(optax.linear_schedule(0.1, 0.01, 100), 0.9),
    "rounds to bfloat16": lambda: optax.sgd(0.1, 0.9, accumulator_dtype=jnp.bfloat16),
    "adds a number that is not 0": lambda: optax.stateless(lambda g, p: jax.tree.map(lambda x: x + 1, g)),
    "moves the weights without a gradient": lambda: optax.stateless(lambda g, p: jax.tree.map(jnp.ones_like, g)),
    "has a buffer that does not start at 0": lambda: optax.GradientTransformation(
        jnp.ones_like, lambda g, s, p=None: (s, g)
    ),
    "starts from the weights": lambda: optax.GradientTransformation(
        lambda p: p, lambda g, s, p=None: (-0.1 * (p - s), s + g)
    ),
    "treats weights differently": lambda: scaled(lambda x: jnp.arange(x.size, dtype=x.dtype)),
    "depends on the number of weights": lambda: scaled(lambda x: 1 / x.size),
    "cannot be traced on a few weights": optax.lbfgs,
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refusals_say_why(reason):
    with pytest.raises(ValueError, match=rf"got one that {reason}.*; rj.train runs any optimizer, and rj.lyapunov"):
        rj.optimizers.read(REFUSED[reason]())


def test_numbers_that_are_none_are_refused():
    with pytest.raises(ValueError, match=r"must be finite numbers, got NaN or infinity; give others"):
        rj.optimizers.read(optax.sgd(float("nan")))


def test_weights_that_decay_absurdly_do_not_end_in_silence():
    """-9 a step by decay alone, against the closed form; and a traced momentum of 10, which leaves a block."""
    problem = rj.problems.linear_regression(dim=1, samples=1, input_variance=0.0, bias=False)

    @jax.jit
    def run(decay, mu):
        optimizer = optax.chain(optax.add_decayed_weights(decay), optax.sgd(0.01, momentum=mu))
        settings = dict(problem=problem, num_steps=200, tail=1)
        return rj.oscillate(jax.random.key(0), optimizer=optimizer, record=2, **settings)

    _, theta_0 = problem.least_squares.weights(jax.random.split(jax.random.key(0), 4)[0])
    found = run(1000.0, 0.0)  # theta' = -9 theta, as nothing else moves it
    expected = 200 * np.log10(9) + np.log10(abs(float(theta_0[0])))
    assert float(found["log10_distance"]) == pytest.approx(expected, abs=1e-2)
    assert bool(found["diverged"])
    lost = run(0.1, 10.0)
    assert bool(lost["diverged"])
    assert all(np.isfinite(np.asarray(each)).all() for each in lost.values())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            dict(mu=0.9, eta=0.1, optimizer=optax.sgd(0.1)),
            r"give mu and eta .* or optimizer .*, got mu, eta, optimizer",
        ),
        (dict(mu=0.9), r"give mu and eta for SGD with momentum, or optimizer for another one, got mu"),
        (dict(), r"give mu and eta .*, got none of them"),
        (dict(optimizer=optax.sgd), r"optimizer must be an optax.GradientTransformation, got .*call its factory first"),
    ],
)
def test_one_optimizer_is_named(given, message):
    problem = rj.problems.linear_regression(dim=1, samples=2)
    for call in (
        lambda: rj.oscillate(jax.random.key(0), problem=problem, **common(), **given),
        lambda: rj.theory.mean_growth(common()["shift"], problem, **given),
        lambda: rj.theory.almost_sure_growth(common()["shift"], problem, **given),
        lambda: rj.theory.explain(common()["shift"], problem, **given),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_the_ode_is_for_heavy_ball():
    with pytest.raises(ValueError, match=r"the ODE is that of heavy-ball momentum, .* take discrete=True"):
        rj.theory.monodromy(rj.shifts.sinusoid(0.1), optimizer=optax.sgd(0.1), discrete=False)


def numpy_product(optimizer, T, amplitude):
    """The product over a period, from matrices of NumPy."""
    rows = reference.rows_of(optimizer)
    total = np.eye(2 * len(rows))
    for k in range(T):
        B = reference.gradient_matrix(amplitude * np.sin(2 * np.pi * k / T))
        total = reference.one_step_of(rows, B) @ total
    return total


def test_monodromy_of_forty_settings(x64):
    """Determinant and multipliers, of heavy ball, Nesterov, an average and two buffers, against NumPy's products."""
    rng = np.random.default_rng(1)
    names = ("heavy ball", "nesterov", "ema", "two traces")
    etas, mus, amplitudes = rng.uniform(0.005, 0.2, 10), rng.uniform(0.5, 0.99, 10), rng.uniform(0.1, 1.5, 10)
    T = rng.integers(2, 40, 10)
    for name in names:
        found = jax.jit(
            jax.vmap(
                lambda eta, mu, T, amplitude, name=name: rj.theory.monodromy(
                    rj.shifts.sinusoid(1 / T, amplitude=amplitude),
                    optimizer=CHAINS[name](eta, mu),
                )
            )
        )(etas, mus, T.astype(float), amplitudes)
        for i in range(10):
            exact = numpy_product(rj.optimizers.read(CHAINS[name](etas[i], mus[i])), T[i], amplitudes[i])
            scale = np.abs(exact).max()
            np.testing.assert_allclose(np.asarray(found[i]) / scale, exact / scale, atol=1e-11)
            buffers = len(exact) // 2 - 1
            det = {"heavy ball": mus[i], "ema": mus[i], "two traces": mus[i] * 0.5}.get(name)
            if det is not None:  # of one step and one weight, whatever B is
                assert np.linalg.slogdet(found[i])[1] == pytest.approx(2 * T[i] * np.log(det), abs=1e-5), (
                    name,
                    buffers,
                )
            mine, theirs = (np.sort_complex(np.linalg.eigvals(each)) for each in (np.asarray(found[i]), exact))
            np.testing.assert_allclose(np.sort(np.abs(mine)), np.sort(np.abs(theirs)), atol=1e-9 * max(1, scale))


def test_modes_are_the_roots_of_heavy_ball():
    b = np.array([0.5, 3.0, 40.0])
    found = np.sort_complex(modes.multipliers(rj.optimizers.heavy_ball(0.75, 0.125), b))
    for each, curvature in zip(found, b, strict=True):
        np.testing.assert_allclose(np.sort_complex(np.roots([1, -(1.75 - 0.125 * curvature), 0.75])), each, atol=1e-12)
    nesterov = rj.optimizers.read(optax.sgd(0.1, 0.9, nesterov=True))
    largest = modes.largest_step(nesterov, 2.0)  # |z| = 1 at eta b = 2 (1 + mu) / (1 + 2 mu)
    assert largest == pytest.approx(2 * 1.9 / 2.8 / 0.2, rel=1e-5)


def test_heavy_ball_and_nesterov_by_hand(x64):
    """The same multipliers as those read off optax."""
    b = np.linspace(0.1, 30.0, 7)
    for by_hand, kind in ((rj.optimizers.heavy_ball, False), (rj.optimizers.nesterov, True)):
        theirs = rj.optimizers.read(optax.sgd(0.05, momentum=0.9, nesterov=kind))
        mine, theirs = (np.sort_complex(modes.multipliers(each, b)) for each in (by_hand(0.9, 0.05), theirs))
        np.testing.assert_allclose(mine, theirs, atol=1e-12)


def test_a_step_size_of_0_moves_nothing():
    def run(eta):
        return rj.oscillate(
            jax.random.key(0),
            problem=rj.problems.linear_regression(dim=1, samples=2),
            **common(),
            optimizer=optax.sgd(eta, momentum=0.9, nesterov=True),
        )

    found = jax.jit(run)(0.0)
    assert abs(float(found["growth_rate"])) < 1e-6


def test_recursion_keeps_other_buffers(x64):
    """Three coordinates a weight, beyond the range of floats: growth of a run against NumPy with logarithms."""
    problem = rj.problems.linear_regression(dim=1, samples=2)
    optimizer = rj.optimizers.read(CHAINS["two traces"](0.5, 0.9))
    key = jax.random.key(5)
    start, advance, phase_space = recursion(
        key, source=rj.shifts.sinusoid(0.1), problem=problem.least_squares, optimizer=optimizer
    )
    end = jax.jit(lambda run: phase_space(advance(run, 2000)))(start)
    x, _, error = reference.draws(key, rj.shifts.sinusoid(0.1), problem, 2000)
    state, size, rows = np.concatenate([error, np.zeros(4)]), 0.0, reference.rows_of(optimizer)
    for x_k in x:
        B = 2 * x_k.T @ x_k / len(x_k)
        state = reference.one_step_of(rows, B) @ state
        size += np.log(np.linalg.norm(state))
        state = state / np.linalg.norm(state)
    assert size > 710  # beyond float64
    mine = rj.logscale.log_norm(rj.logscale.Scaled(end.mantissa[0], end.exponent))
    assert float(mine) == pytest.approx(size + np.log(np.linalg.norm(state[:2])), rel=1e-9)
