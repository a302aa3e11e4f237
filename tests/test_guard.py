"""The guard's rule against a plain loop, what it refuses, and its measure."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import resonance_jax as rj
from resonance_jax.guard.growing import ENOUGH, ERRORS, FEWEST, HALF_MORE, SHARE, SURELY
from resonance_jax.guard.wrapper import GRIP
from tests.guarding import follow, heavy, injected, momentum_of, rising, sgd

pytestmark = pytest.mark.usefixtures("promotions_of_optax")

# The rule


def the_rule(gradients, momentum, horizon):
    """Plain Python, from the description: the state after each gradient."""
    least = damping = 1 - momentum
    usual = spread = recent = lagged = 0.0
    steps, releases, releasing, states = 0, 0, False, []
    for gradient in gradients:
        size = math.sqrt(sum(float(entry) ** 2 for entry in gradient))
        if math.isfinite(size):
            steps += 1
            covered = min(steps, horizon)
            window = max(min(max(1 / least, ENOUGH), covered / SHARE), FEWEST)  # steps of the recent mean
            share = 1 / min(window, covered)
            usual += (size - usual) / covered
            spread += (abs(size - usual) - spread) / covered
            recent += share * (size - recent)
            lagged += share * (recent - lagged)
        explained = min(HALF_MORE * usual + ERRORS * math.sqrt(share / 2) * spread, SURELY * usual)
        grows = steps > 2 * FEWEST and recent > explained > 0
        releases += grows and not releasing
        releasing = grows
        if not math.isfinite(size):
            damping = 1.0
        elif grows:
            damping = min(1.0, damping + GRIP * share * (damping + share * max(recent / lagged - 1, 0)))
        else:
            damping = least + (damping - least) * (1 - 1 / (max(releases, 1) * (covered + 1)))
        states.append((usual, spread, recent, lagged, damping, releases, releasing))
    return [np.array(column) for column in zip(*states, strict=True)]


def shrink_grow_jitter():
    rng = np.random.default_rng(5)
    rises = np.concatenate([np.full(100, -0.02), np.full(100, 0.03), np.zeros(400)])
    return np.exp(np.cumsum(rises))[:, None] * rng.normal(1, 0.3, size=(600, 3))


@pytest.mark.parametrize("horizon", [None, 80])
def test_the_rule_is_the_plain_loop(x64, horizon):
    gradients, eta = shrink_grow_jitter(), 0.01
    weights, states = follow(sgd(0.95, learning_rate=eta, horizon=horizon), jnp.asarray(gradients))
    usual, spread, recent, lagged, damping, releases, releasing = the_rule(gradients, 0.95, horizon or 600)
    assert releases[-1] >= 1
    assert damping.max() > 0.1
    assert damping[-1] < damping.max()
    for ours, theirs in zip((*states.sizes[1:], states.damping), (usual, spread, recent, lagged, damping), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    np.testing.assert_array_equal(states.releases, releases)
    np.testing.assert_array_equal(states.releasing, releasing)
    np.testing.assert_allclose(momentum_of(states), 1 - damping, rtol=1e-9)

    weight, velocity = np.zeros(3), np.zeros(3)
    for k, gradient in enumerate(gradients):  # the damping that a step finds was set by the one before
        velocity = (1 - damping[k - 1] if k else 0.95) * velocity + gradient
        weight = weight - eta * velocity
        np.testing.assert_allclose(weights[k], weight, rtol=1e-9, atol=1e-12)


def test_the_usual_size_is_the_mean_of_the_run(x64):
    gradients = shrink_grow_jitter()
    _, states = follow(sgd(), jnp.asarray(gradients))
    sizes = np.linalg.norm(gradients, axis=1)
    np.testing.assert_allclose(states.sizes.usual, np.cumsum(sizes) / np.arange(1, 601), rtol=1e-9)


def test_own_code_promotes_nothing():
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        optimizer, measure = sgd(horizon=20), rj.measure_resonance(0.99, horizon=20)
        weights = {"a": jnp.ones((2, 3)), "b": jnp.ones((4,))}
        jax.jit(optimizer.update)(weights, optimizer.init(weights), weights)
        jax.jit(measure.update)(weights, measure.init(weights), weights)


# What it refuses


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rj.resonance_guard(optax.sgd), "optimizer must be an optax transformation, got <function sgd"),
        (lambda: rj.resonance_guard(0.9), r"optimizer must be an optax transformation, got 0\.9; call its factory"),
        (lambda: sgd(horizon=0), "horizon must be a whole number of at least 1, got 0; it is a number of steps"),
        (lambda: sgd(horizon=2.5), r"horizon must be a whole number of at least 1, got 2\.5"),
        (lambda: rj.measure_resonance(0.9, horizon=0), "horizon must be a whole number of at least 1, got 0"),
        (lambda: rj.measure_resonance(1.5), r"momentum must lie in \[0, 1\], got 1\.5; a fraction kept"),
    ],
)
def test_what_it_cannot_be_made_of(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("optimizer", "options", "message"),
    [
        (
            optax.sgd(0.1, momentum=0.9),
            {},
            r"optimizer must be made by optax\.inject_hyperparams, so that its momentum can change, got a state of "
            r"type tuple; write optax\.inject_hyperparams",
        ),
        (
            optax.inject_hyperparams(optax.adam)(0.1, b1=0.9),
            {},
            "hyperparameter must be one that the optimizer was given as a number, one of .*b1.*, got 'momentum'; name",
        ),
        (injected(), {"hyperparameter": "b1"}, "one of .*learning_rate, momentum.*, got 'b1'"),
        (injected(None), {}, "given as a number, one of learning_rate, got 'momentum'; name its momentum, and give"),
        (injected(lambda k: 0.9), {}, "momentum must be a number, got a schedule; .*give the largest value instead"),
        (injected(1.5), {}, r"momentum must lie in \[0, 1\], got 1\.5; momentum is the fraction of the last update"),
        (injected(-0.1), {}, r"momentum must lie in \[0, 1\], got -0\.1"),
    ],
)
def test_optimizers_whose_momentum_it_cannot_set(optimizer, options, message):
    with pytest.raises(ValueError, match=message):
        rj.resonance_guard(optimizer, **options).init(jnp.ones(2))


# The measure


def measured(gradients, momentum=0.99, **options):
    """What `optax.monitor` holds after each gradient."""
    optimizer = optax.chain(
        optax.monitor({"growth": rj.measure_resonance(momentum, **options)}), optax.sgd(0.1, momentum=momentum)
    )
    weights = jnp.zeros_like(gradients[0])
    _, state = optimizer.update(gradients[0], optimizer.init(weights), weights)  # optax adds the measurements here

    def step(state, gradient):
        _, state = optimizer.update(gradient, state, weights)
        return state, optax.tree.get(state, "growth")

    return jnp.append(optax.tree.get(state, "growth"), jax.lax.scan(step, state, gradients[1:])[1])


def test_the_measure_is_above_one_under_growth_only():
    assert float(measured(rising(0.03)[:, None])[-1]) > 1
    assert float(measured(heavy(3, 2_000, 1)).max()) <= 1
    assert float(measured(jnp.zeros((50, 1))).max()) == 0


@pytest.mark.parametrize("horizon", [None, 150])
def test_the_measure_passes_one_where_the_guard_first_lets_go(horizon):
    let_go = []
    for seed, rate in enumerate((0.0, 0.02, 0.1)):
        gradients = rising(rate)[:, None] * (1 + 0.3 * heavy(seed, 200, 2))
        _, states = follow(sgd(horizon=horizon), gradients)
        above = np.asarray(measured(gradients, horizon=horizon)) > 1
        let_go.append(bool(states.releases[-1] > 0))
        assert above.any() == let_go[-1]
        assert above.argmax() == np.asarray(states.releasing).argmax()
    assert let_go == [False, True, True]


def test_a_state_can_be_donated():
    optimizer, weights = sgd(), jnp.ones((3,))
    step = jax.jit(lambda g, state: optimizer.update(g, state, g), donate_argnums=1)
    with jax.numpy_dtype_promotion("standard"):
        state = step(weights, step(weights, optimizer.init(weights))[1])[1]
    assert int(state.sizes.steps) == 2


def test_weights_in_bfloat16():
    state = sgd(0.5).init(jnp.ones((3,), jnp.bfloat16))
    assert state.damping.dtype == jnp.float32
    assert float(state.ceiling) == 0.5


def test_a_whole_number_as_momentum_is_refused():
    with pytest.raises(ValueError, match=r"momentum must be a float.* got 1; write 1\.0"):
        rj.resonance_guard(optax.inject_hyperparams(optax.sgd)(0.1, momentum=1)).init(jnp.ones((3,)))


def test_heavy_tails_are_forgotten():
    """One weight, one sample. Of 100 runs ten let go, once; the mean momentum of the worst is 0.89."""

    def run(key):
        sizes = jnp.prod(jax.random.normal(key, (20_000, 2)), axis=1)
        optimizer = sgd(0.9)

        def step(state, gradient):
            state = optimizer.update(gradient[None], state, gradient[None])[1]
            return state, 1 - state.damping

        state, momenta = jax.lax.scan(step, optimizer.init(sizes[:1]), sizes)
        return state.releases, momenta.mean()

    with jax.numpy_dtype_promotion("standard"):
        releases, momenta = jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(7), 100))
    assert int((releases > 0).sum()) <= 20  # 10 expected; a binomial exceeds 20 once in a thousand seeds
    assert float(momenta.min()) > 0.88
