"""The kernels of a GPU, in Pallas' interpreter, against XLA on the same program."""

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.extend.core import jaxpr_as_fun
from jax.interpreters import mlir

import resonance_jax as rj
from resonance_jax.fused import fused, plain
from resonance_jax.fused.program import Unsupported, kernel
from resonance_jax.fused.threads import Threads
from resonance_jax.fused.tiles import Tiles

forms = sys.modules["resonance_jax.fused"]
VALUES = {"threads": Threads(), "tiles": Tiles("highest")}  # three products of TF32 are for a GPU


@pytest.fixture(autouse=True)
def on_a_cpu():
    """The interpreter and its reference run on the CPU, even on a machine with a GPU."""
    with jax.default_device(jax.devices("cpu")[0]):
        yield


def traced(function, *args):
    """Program and arguments of `function` on `args`, each followed by axes of lanes: (3, 1) and (1, 5) in turn."""
    closed = jax.make_jaxpr(function)(*args)
    assert not closed.consts
    rng = np.random.default_rng(0)
    lanes = [(3, 1) if i % 2 else (1, 5) for i in range(len(args))]
    batched = [
        jnp.asarray(arg[..., None, None] * rng.uniform(0.5, 1.5, sides), arg.dtype)
        for arg, sides in zip(args, lanes, strict=True)
    ]
    return closed.jaxpr, batched


def agree(values, function, *args):
    jaxpr, batched = traced(function, *args)
    for ours, theirs in zip(
        kernel(VALUES[values], *batched, jaxpr=jaxpr, rank=2, interpret=True),
        plain(*batched, jaxpr=jaxpr, rank=2),
        strict=True,
    ):
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        assert np.allclose(ours, theirs, rtol=2e-6, atol=1e-6)


A, X = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3), np.array([0.3, -0.7, 2.0], np.float32)
STREAM = np.linspace(0.1, 1.0, 21, dtype=np.float32).reshape(7, 3)


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize(
    "function",
    [
        lambda a, x: jnp.cos(a) + jnp.sqrt(jnp.abs(a)) * x[None, :] ** 2,
        lambda a, x: a @ x,
        lambda a, x: x @ a.T,
        lambda a, x: (a.T @ a, jnp.outer(x, x), a[None].transpose(2, 1, 0)),
        lambda a, x: (a.sum(0), a.max(1), a.min(), jnp.isfinite(a).all(), a[:, None, :].sum((0, 1))),
        lambda a, x: jnp.where(x > 0, x, 0.0) + jax.nn.relu(x),
        lambda a, x: jax.grad(lambda x: jnp.mean((a @ x) ** 2))(x),
        lambda a, x: (*jnp.unstack(a, axis=1), *jnp.unstack(a > 0), *jnp.unstack(x)),
        lambda a, x: (jnp.stack([x, 2 * x, 3 * x]), jnp.stack([x, 2 * x], axis=1), jnp.stack([x.sum(), a.sum()])),
        lambda a, x: (jnp.copy(a), jax.lax.stop_gradient(x) * x, jax.checkpoint(jnp.sin)(x), jnp.log2(jnp.abs(x))),
        lambda a, x: jax.grad(lambda x: jnp.sum(jnp.tanh(x)))(x),
    ],
)
def test_primitives(values, function):
    agree(values, function, A, X)


def test_matrix_products_on_tensor_cores():
    big = np.linspace(-1, 1, 400, dtype=np.float32).reshape(20, 20)
    agree("tiles", lambda a, b: a @ jnp.tanh(b), big, big.T)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, x: jnp.concatenate([a.ravel(), x]),
        lambda a, x: a[1:4:2, ::-1] * jnp.arange(3.0)[None],
        lambda a, x: (a.prod(1), (a > 0).any(0), x[0] * x[-1]),
        lambda a, x: jnp.split(a, [2, 3]),
        lambda a, x: jax.lax.pad(jnp.stack([x, -x]), x[0], [(1, 0, 1), (-1, 2, 0)]),
        lambda a, x: jax.grad(lambda x: x[0] * x[1] * jnp.sum(jnp.concatenate([x, x[1:]]) ** 2))(x),
    ],
)
def test_entries_move_freely_between_threads_only(function):
    agree("threads", function, A, X)
    with pytest.raises(Unsupported):
        agree("tiles", function, A, X)


@pytest.mark.parametrize("values", VALUES)
def test_loops(values):
    def nested(x, stream, scale):
        def step(carry, row):
            x, count = carry
            return (0.5 * x + scale * row, count + 1), None

        def block(carry, rows):
            return jax.lax.scan(step, carry, rows)

        (x, count), _ = jax.lax.scan(block, (x, jnp.int32(0)), stream)
        return jax.lax.fori_loop(0, 3, lambda i, x: x * 2 + i.astype(x.dtype), x), count

    agree(values, nested, X, np.stack([STREAM, STREAM[::-1]]), np.float32(0.3))


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize(
    "function",
    [
        lambda x, stream: jax.lax.scan(lambda x, row: (x + row, x), x, stream),  # keeps what it passes
        lambda x, stream: jax.lax.scan(lambda x, row: (x + row, None), x, stream, reverse=True)[0],
        lambda x, stream: jax.lax.scan(lambda x, row: (x + row, None), x, 2 * stream)[0],  # over what it computes
        lambda x, stream: jnp.sort(x),
    ],
)
def test_what_a_kernel_cannot_hold_is_refused(values, function):
    with pytest.raises(Unsupported):
        agree(values, function, X, STREAM)


def test_large_programs_are_left_to_xla():
    jaxpr, args = traced(lambda a: jax.lax.fori_loop(0, 2, lambda i, a: a @ a, a), np.zeros((128, 128), np.float32))
    for values in VALUES.values():
        with pytest.raises(Unsupported):
            kernel(values, *args, jaxpr=jaxpr, rank=2, interpret=True)


def test_fused_is_the_function_under_every_transformation():
    @fused
    def f(x, y):
        return {"out": jax.lax.fori_loop(0, 3, lambda i, z: z * y + c, x)}

    c = 0.5
    x, y = jnp.linspace(0, 1, 4), jnp.linspace(1, 2, 3)

    def expected(x, y):
        return ((x * y + c) * y + c) * y + c

    assert np.allclose(f(x[1], y[1])["out"], expected(x[1], y[1]))
    both = jax.vmap(jax.vmap(f, (None, 0)), (0, None))
    assert np.allclose(jax.jit(both)(x, y)["out"], expected(x[:, None], y[None]))
    turned = jax.vmap(jax.vmap(f, (None, 0), 0), (0, None), 1)
    assert np.allclose(turned(x, y)["out"], expected(x[None], y[:, None]))
    assert np.allclose(jax.vmap(f, (0, None))(x[:1], y[0])["out"], expected(x[:1], y[0]))
    slope = jax.grad(lambda y: f(x[1], y)["out"])(y[1])
    assert np.allclose(slope, jax.grad(lambda y: expected(x[1], y))(y[1]))


def oscillated(seed, mu):
    """Usual step sizes, and an absurd one at the highest momentum."""
    return rj.oscillate(
        jax.random.key(seed), shift=rj.shifts.sinusoid(1 / 22), mu=mu, eta=jnp.where(mu > 0.98, 1e9, 0.01),
        problem=rj.problems.linear_regression(dim=1, samples=2, noise_variance=0.1), num_steps=40, tail=40,
    )  # fmt: skip


def trained(seed, mu):
    return rj.train(
        jax.random.key(seed), shift=rj.shifts.switching(5, dim=2, variance=0.4), optimizer=optax.adam(0.01, b1=mu),
        problem=rj.problems.linear_regression(dim=2, samples=2), num_steps=20, tail=20,
    )  # fmt: skip


def network(seed, mu):
    return rj.train(
        jax.random.key(seed), shift=rj.shifts.switching(5, dim=2, variance=0.4), optimizer=optax.sgd(0.01, mu),
        problem=rj.problems.mlp_regression(hidden=(20, 17), test_samples=20), num_steps=20, tail=20,
    )  # fmt: skip


def theory(seed, mu):
    psi = rj.theory.monodromy(rj.shifts.sinusoid(1 / 22), mu=mu, eta=0.01, rk4_steps=32)
    return {"log_rho": rj.theory.log_spectral_radius(psi)}


@pytest.mark.parametrize(
    ("point", "values"), [(oscillated, "threads"), (trained, "threads"), (network, "tiles"), (theory, "threads")]
)
def test_the_engine_inside_kernels(point, values):
    """Each kind of run takes the form that is meant for it, and gives the same result."""
    found = []

    def in_kernel(*args, jaxpr, rank):  # as a GPU chooses
        chosen = next(name for name in VALUES if _holds(VALUES[name], args, jaxpr, rank))
        found.append(chosen)
        return kernel(VALUES[chosen], *args, jaxpr=jaxpr, rank=rank, interpret=True)

    def run():
        traced_point = jax.make_jaxpr(point)(jnp.int32(0), jnp.float32(0.9))
        function = jax.vmap(jax.vmap(jaxpr_as_fun(traced_point), (None, 0)), (0, None))
        return jax.jit(function)(jnp.arange(2, dtype=jnp.int32), jnp.array([0.9, 0.95, 0.99]))

    on_cpu = run()
    mlir.register_lowering(forms._fused, mlir.lower_fun(in_kernel, multiple_results=True), platform="cpu")
    try:
        inside = run()
    finally:
        mlir.register_lowering(forms._fused, mlir.lower_fun(forms.tiled, multiple_results=True), platform="cpu")
    assert set(found) == {values}
    for ours, theirs in zip(inside, on_cpu, strict=True):
        assert np.allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def _holds(values, args, jaxpr, rank):
    try:
        jax.eval_shape(functools.partial(kernel, values, jaxpr=jaxpr, rank=rank), *args)
    except Unsupported:
        return False
    return True
