"""The guard as an optax transformation, and within other transformations of JAX and optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, PartitionSpec

import resonance_jax as rj
from resonance_jax.guard import ResonanceGuardState
from tests.guarding import follow, momentum_of, rising, sgd

pytestmark = pytest.mark.usefixtures("promotions_of_optax")

INNER = {  # name: factory, its hyperparameters, the name of its momentum
    "sgd": (optax.sgd, dict(learning_rate=1e-3, momentum=0.9), "momentum"),
    "adam": (optax.adam, dict(learning_rate=1e-2, b1=0.9), "b1"),
    "nadamw": (optax.nadamw, dict(learning_rate=1e-2, b1=0.9), "b1"),
    "lion": (optax.lion, dict(learning_rate=1e-3, b1=0.9), "b1"),
}
inners = pytest.mark.parametrize("inner", INNER)


def guarded(inner, **options):
    factory, hyperparams, name = INNER[inner]
    return rj.resonance_guard(optax.inject_hyperparams(factory)(**hyperparams), hyperparameter=name, **options)


# As an optax transformation; from optax's own tests of contributed optimizers


def parabola():
    final = jnp.array([1.0, -1.0, 1.0])
    return jnp.array([-1.0, 10.0, 1.0]), final, lambda weights: jnp.sum((weights - final) ** 2)


def rosenbrock():
    return jnp.zeros(2), jnp.ones(2), lambda w: (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2


def mixed():
    final = {"vector": jnp.array([1.0, -1.0, 2.0]), "inner": {"matrix": jnp.array([[1.0, 0.0], [-1.0, 1.0]])}}
    zeros = jax.tree.map(jnp.zeros_like, final)
    return zeros, final, lambda weights: optax.tree.norm(optax.tree.sub(weights, final), squared=True)


@inners
@pytest.mark.parametrize("target", [parabola, rosenbrock, mixed])
def test_converges(inner, target):
    """Step sizes, number of steps and tolerance of optax's tests."""
    weights, final, loss = target()
    optimizer = guarded(inner)
    state = optax.tree.map_params(optimizer, lambda leaf: leaf, optimizer.init(weights))

    def step(carry, _):
        updates, state = optimizer.update(jax.grad(loss)(carry[0]), carry[1], carry[0])
        return (optax.apply_updates(carry[0], updates), state), None

    (weights, _), _ = jax.jit(lambda *carry: jax.lax.scan(step, carry, length=30_000))(weights, state)
    jax.tree.map(lambda ours, theirs: np.testing.assert_allclose(ours, theirs, rtol=3e-2, atol=3e-2), weights, final)


@inners
def test_unknown_extra_arguments_pass_and_steps_compile_once(inner):
    weights, _, loss = rosenbrock()
    optimizer, traces = guarded(inner), []

    @jax.jit
    def step(weights, state):
        traces.append(weights)
        value, gradients = jax.value_and_grad(loss)(weights)
        updates, state = optimizer.update(gradients, state, weights, value=value, nobody_knows_this=1)
        return optax.apply_updates(weights, updates), state

    state = optimizer.init(weights)
    for _ in range(20):
        weights, state = step(weights, state)
    assert len(traces) == 1


def plateau(learning_rate, momentum):
    patient = optax.contrib.reduce_on_plateau(factor=0.5, patience=2, accumulation_size=1)
    return optax.chain(optax.sgd(learning_rate, momentum=momentum), patient)


def test_extra_arguments_reach_the_optimizer():
    """`reduce_on_plateau` halves the step size when the value that it is given stays the same."""
    optimizer = rj.resonance_guard(optax.inject_hyperparams(plateau)(learning_rate=0.1, momentum=0.9))
    weights = jnp.ones(2)
    state = optimizer.init(weights)
    for _ in range(6):
        _, state = optimizer.update(weights, state, weights, value=jnp.float32(1))
    assert float(optax.tree.get(state, "scale")) < 1
    with pytest.raises(TypeError, match="value"):
        optimizer.update(weights, state, weights)


@inners
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_updates_and_state_keep_their_dtypes(inner, dtype):
    """So that `lax.scan` and `lax.cond` take the state, and one compiled step serves all."""
    with jax.enable_x64(dtype == "float64"):
        optimizer = guarded(inner)
        weights = jnp.array([1.0, 2.0], dtype)
        state = jax.jit(optimizer.init)(weights)
        updates, after = jax.jit(optimizer.update)(weights, state, weights)
        assert updates.dtype == weights.dtype
        assert jax.tree.structure(after) == jax.tree.structure(state)
        assert jax.tree.map(jnp.shape, after) == jax.tree.map(jnp.shape, state)
        assert jax.tree.map(lambda leaf: leaf.dtype, after) == jax.tree.map(lambda leaf: leaf.dtype, state)
        assert state.damping.dtype == (jnp.float64 if dtype == "float64" else jnp.float32)


@inners
def test_without_growth_the_optimizer_is_itself(inner):
    """Bit for bit: gradients of constant size in turning directions."""
    angles = jnp.arange(200.0)
    gradients = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
    factory, hyperparams, _ = INNER[inner]
    ours, states = follow(guarded(inner), gradients)
    theirs, _ = follow(optax.inject_hyperparams(factory)(**hyperparams), gradients)
    assert states.releases[-1] == 0
    np.testing.assert_array_equal(ours, theirs)


# Within other transformations of JAX and optax


def test_lanes_of_vmap_have_their_own_momentum():
    gradients = jnp.stack([rising(0.05), rising(0.0)])[:, :, None]
    _, states = jax.vmap(lambda lane: follow(sgd(), lane))(gradients)
    assert momentum_of(states).shape == (2, 200)
    assert float(momentum_of(states)[0, -1]) < 0.5
    assert float(momentum_of(states)[1, -1]) == np.float32(0.99)
    np.testing.assert_array_equal(states.releases[:, -1] > 0, [True, False])
    for lane in range(2):
        _, alone = follow(sgd(), gradients[lane])
        np.testing.assert_allclose(alone.damping, states.damping[lane], rtol=1e-6)


def test_the_ceiling_is_an_axis():
    """One compiled program for several momenta, as in `rj.sweep`."""

    def point(mu):
        _, states = follow(sgd(mu), rising(0.0)[:, None])
        return {"momentum": momentum_of(states)[-1], "ceiling": states.ceiling[-1]}

    data = rj.sweep(point, {"mu": np.array([0.5, 0.9])})
    np.testing.assert_allclose(data.momentum, [0.5, 0.9], rtol=1e-6)
    np.testing.assert_allclose(data.ceiling, [0.5, 0.9], rtol=1e-6)


def test_devices_of_shard_map_have_their_own_momentum():
    gradients = jnp.stack([rising(0.05), rising(0.0)])[:, :, None]

    def one(shard):
        _, states = follow(sgd(), shard[0])
        return momentum_of(states)[None]

    spec = PartitionSpec("lanes")
    mesh = Mesh(np.array(jax.devices()[:2]), ("lanes",))
    momenta = jax.jit(jax.shard_map(one, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))(gradients)
    assert float(momenta[0, -1]) < 0.5
    assert float(momenta[1, -1]) == np.float32(0.99)


def run(optimizer, tree_of_gradients):
    """State after all of them, step by step from Python, compiled once."""
    weights = jax.tree.map(lambda leaf: jnp.zeros_like(leaf[0]), tree_of_gradients)
    state, update = optimizer.init(weights), jax.jit(optimizer.update)
    for k in range(len(jax.tree.leaves(tree_of_gradients)[0])):
        _, state = update(jax.tree.map(lambda leaf, k=k: leaf[k], tree_of_gradients), state, weights)
    return state


def test_a_field_of_the_state_is_found_by_its_name():
    state = run(optax.chain(optax.clip_by_global_norm(1e6), sgd(), optax.scale(1.0)), rising(0.05)[:, None])
    assert float(optax.tree.get(state, "ceiling")) == np.float32(0.99)
    assert int(optax.tree.get(state, "releases")) >= 1
    assert float(optax.tree.get(state, "momentum")) < 0.5


def test_behind_a_clip_it_sees_clipped_gradients():
    state = run(optax.chain(optax.clip_by_global_norm(1.0), sgd()), rising(0.05)[:, None])
    assert int(optax.tree.get(state, "releases")) == 0


def test_accumulated_gradients_count_once():
    """With `MultiSteps` the guard sees the mean of two gradients, every other step."""
    gradients = rising(0.05)[:, None]
    state = run(optax.MultiSteps(sgd(), 2), gradients)
    _, states = follow(sgd(), gradients.reshape(100, 2, 1).mean(axis=1))
    inner = state.inner_opt_state
    assert isinstance(inner, ResonanceGuardState)
    assert int(inner.sizes.steps) == 100
    assert float(inner.damping) == pytest.approx(float(states.damping[-1]), rel=1e-5)


def test_behind_apply_if_finite_it_sees_no_infinity():
    gradients = rising(0.0).at[100].set(jnp.inf)[:, None]
    state = run(optax.apply_if_finite(sgd(), 3), gradients)
    assert float(optax.tree.get(state, "momentum")) == np.float32(0.99)


def test_masked_leaves_are_not_seen():
    state = run(
        optax.masked(sgd(), {"seen": True, "hidden": False}), {"seen": rising(0.0)[:, None], "hidden": rising(0.05)}
    )
    assert int(optax.tree.get(state, "releases")) == 0
    assert float(optax.tree.get(state, "usual")) == pytest.approx(1)


def test_parts_of_multi_transform_have_their_own_momentum():
    optimizer = optax.multi_transform({"one": sgd(0.99), "other": sgd(0.9)}, {"a": "one", "b": "other"})
    state = run(optimizer, {"a": rising(0.0)[:, None], "b": rising(0.05)})
    one, other = (state.inner_states[name].inner_state for name in ("one", "other"))
    assert float(momentum_of(one)) == np.float32(0.99)
    assert float(momentum_of(other)) < 0.5
    assert int(one.releases) == 0
    assert int(other.releases) >= 1
