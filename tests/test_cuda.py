"""Programs lowered for an NVIDIA GPU, without needing one: which become kernels, and what happens if one fails."""

import functools
import logging
import subprocess
import sys
import types
import warnings

import jax
import jax.numpy as jnp
import optax
import pytest
from jax import lax
from jax.sharding import AbstractDevice, AbstractMesh, NamedSharding, PartitionSpec, use_abstract_mesh

import resonance_jax as rj
from resonance_jax.fused import backend, fused, program
from resonance_jax.fused.program import ELEMENTWISE, SAME, inner_jaxprs, kernel
from resonance_jax.fused.threads import Threads
from resonance_jax.fused.tiles import Tiles

GPU = AbstractDevice(device_kind="NVIDIA H100", num_cores=None, platform="gpu")  # jax 0.11 and newer ask which one
KERNEL = "xla.gpu.triton"  # in the name of the custom call
X = jax.ShapeDtypeStruct((3,), jnp.float32)
N = jax.ShapeDtypeStruct((3,), jnp.int32)
A = jax.ShapeDtypeStruct((5, 3), jnp.float32)
FORMS = {"threads": Threads(), "tiles": Tiles()}


def lower(function, *shapes):
    """The program of `function` for a GPU, checked by MLIR's verifier; its text."""
    with use_abstract_mesh(AbstractMesh((), (), abstract_device=GPU)):
        lowered = jax.jit(function).trace(*shapes).lower(lowering_platforms=("cuda",))
    lowered.compiler_ir().operation.verify()
    return lowered.as_text()


def primitives(jaxpr):
    """Names of all primitives, those of inner programs too."""
    inner = [primitives(one) for eqn in jaxpr.eqns for one in inner_jaxprs(eqn)]
    return {eqn.primitive.name for eqn in jaxpr.eqns}.union(*inner)


# Every primitive that a kernel knows


# fmt: off
UNARY = [
    "abs", "neg", "sign", "floor", "ceil", "exp", "exp2", "expm1", "log", "log1p", "sqrt", "rsqrt", "cbrt", "square",
    "sin", "cos", "tan", "tanh", "logistic", "is_finite", "stop_gradient",
]
BINARY = ["pow", "add", "sub", "mul", "div", "rem", "max", "min", "eq", "ne", "gt", "ge", "lt", "le"]
# fmt: on
INTEGER = ["shift_left", "shift_right_arithmetic", "shift_right_logical"]
BITWISE = ["and", "or", "xor"]
OTHERS = {
    "integer_pow": lambda x: x**3,
    "not": lambda x: ~(x > 0),
    "add_any": jax.grad(lambda x: jnp.sum(x * jnp.sin(x))),
    "select_n": lambda x: jnp.where(x > 0, x, 2 * x),
    "clamp": lambda x: lax.clamp(0.0, x, 1.0),
    "convert_element_type": lambda x: x.astype(jnp.int32),
    "bitcast_convert_type": lambda x: lax.bitcast_convert_type(x, jnp.int32),
    "copy": jnp.copy,
}
NEWER = {"log2": jnp.log2, "one_minus_square": jax.grad(lambda x: jnp.sum(jnp.tanh(x)))}  # jax 0.12 has them
RULES = {
    "broadcast_in_dim": lambda a: jnp.broadcast_to(a, (2, *a.shape)),
    "reshape": lambda a: a.reshape(5, 1, 3),
    "squeeze": lambda a: lax.squeeze(a[:, None], (1,)),
    "transpose": lambda a: a.T,
    "slice": lambda a: a[1:, :2],
    "rev": lambda a: a[::-1],
    "concatenate": lambda a: jnp.concatenate([a, a]),
    "stack": lambda a: jnp.stack([a, -a]),
    "unstack": lambda a: jnp.unstack(a, axis=1),
    "split": lambda a: jnp.split(a, [2]),
    "pad": lambda a: lax.pad(a, 0.0, [(1, 0, 1), (0, 2, 0)]),
    "reduce_sum": lambda a: a.sum(0),
    "reduce_prod": lambda a: a.prod(1),
    "reduce_max": lambda a: a.max(0),
    "reduce_min": lambda a: a.min(),
    "reduce_and": lambda a: (a > 0).all(1),
    "reduce_or": lambda a: (a > 0).any(0),
    "dot_general": lambda a: a.T @ a,
}
BODIES = {
    **{name: (function, [A]) for name, function in RULES.items()},
    **{name: (function, [X]) for name, function in (OTHERS | NEWER).items()},
    **{name: (getattr(lax, name), [X]) for name in UNARY},
    **{name: (getattr(lax, name), [X, X]) for name in BINARY},
    **{name: (getattr(lax, name), [N, N]) for name in INTEGER},
    **{name: (getattr(lax, f"bitwise_{name}"), [N, N]) for name in BITWISE},
}


def test_every_primitive_has_a_body():
    assert set(BODIES) == ELEMENTWISE | SAME | set(FORMS["threads"].rules)
    for name in BODIES.keys() - NEWER.keys():
        function, args = BODIES[name]
        assert name in primitives(jax.make_jaxpr(function)(*args).jaxpr)


def holds(form, name):
    return name in FORMS[form].rules or name not in RULES


@pytest.mark.parametrize(
    ("form", "name"), [(form, name) for form in FORMS for name in sorted(BODIES) if holds(form, name)]
)
def test_primitives(form, name):
    """Each form alone, so that no other form takes over if it fails."""
    function, args = BODIES[name]
    jaxpr = jax.make_jaxpr(function)(*args).jaxpr
    lanes = [jax.ShapeDtypeStruct((*arg.shape, 5), arg.dtype) for arg in args]
    with backend.quiet():
        assert KERNEL in lower(functools.partial(kernel, FORMS[form], jaxpr=jaxpr, rank=1), *lanes)


# Every program of the engine


@pytest.fixture
def forms(caplog):
    """A function that returns the forms that programs took so far."""
    caplog.set_level(logging.DEBUG, "resonance_jax.fused")
    return lambda: {each.args[0] for each in caplog.records if " takes " in each.getMessage()}


def grid(point):
    return jax.vmap(jax.vmap(point, (None, 0)), (0, None))


GRID = (jax.ShapeDtypeStruct((2,), jnp.int32), jax.ShapeDtypeStruct((3,), jnp.float32))
SINUSOID = rj.shifts.sinusoid(1 / 22)
SWITCHING = rj.shifts.switching(5, dim=2, variance=0.4)
regression = functools.partial(rj.problems.linear_regression, samples=2)
SIZES = dict(num_steps=60, tail=20)


def oscillated(dim, **problem):
    def point(seed, mu):
        shift = rj.shifts.switching(5, dim=dim, variance=0.4)
        return rj.oscillate(
            jax.random.key(seed), shift=shift, problem=regression(dim=dim, **problem), mu=mu, eta=0.01, **SIZES
        )

    return point


def trained(optimizer, problem):
    def point(seed, mu):
        return rj.train(jax.random.key(seed), shift=SWITCHING, problem=problem, optimizer=optimizer(mu), **SIZES)

    return point


def own_problem(samples=10):
    """Unpacked weights, and a loss with tanh: newer versions of JAX have primitives for these and their gradients."""

    def loss(theta, truth, x):
        slope, other = theta
        return jnp.mean(jnp.logaddexp(0, -(jnp.tanh(x[:, 0] * slope) + x[:, 1] * other) * jnp.sign(x @ truth)))

    return rj.problems.Problem(
        dim=2,
        init=lambda key, shift, state: (jnp.zeros(2), jnp.eye(2)[0]),
        draw=lambda key, k: jax.random.normal(key, (samples, 2)),
        batch=lambda z, inputs: inputs.mean[None, :] + jnp.sqrt(1 + inputs.variance) * z,
        loss=loss,
        error=lambda theta, truth: jnp.linalg.norm(theta - truth),
        measure="distance",
    )


def theory(function, *args, **settings):
    return lambda seed, mu: function(*args, mu=mu, eta=0.01, **settings)


def estimated(shift, dim):
    def point(seed, mu):
        key = jax.random.key(seed)
        return rj.theory.almost_sure_growth(shift, regression(dim=dim), mu=mu, eta=0.01, key=key, num_steps=300)

    return point


network = rj.problems.mlp_regression(hidden=(20, 17), test_samples=20)
AR2 = rj.shifts.ar2(1 / 22)
ENGINE = {
    "oscillate": (oscillated(1, noise_variance=0.1), {"Threads"}),
    "oscillate, more than six weights": (oscillated(6), {"Threads"}),
    "sgd": (trained(lambda mu: optax.sgd(0.01, mu), regression(dim=2)), {"Threads"}),
    "nesterov": (trained(lambda mu: optax.sgd(0.01, mu, nesterov=True), regression(dim=2)), {"Threads"}),
    "adam": (trained(lambda mu: optax.adam(0.01, mu), regression(dim=2)), {"Threads"}),
    "adam on an own problem": (trained(lambda mu: optax.adam(0.01, mu), own_problem()), {"Threads"}),
    "sgd on a network": (trained(lambda mu: optax.sgd(0.01, mu), network), {"Tiles"}),
    "adam on a network": (trained(lambda mu: optax.adam(0.01, mu), network), {"Tiles"}),
    "growth_rate": (theory(rj.theory.growth_rate, SINUSOID), {"Threads"}),
    "growth_rate, discrete": (theory(rj.theory.growth_rate, SINUSOID, discrete=True), {"Threads"}),
    "monodromy": (theory(rj.theory.monodromy, SINUSOID), {"Threads"}),
    "mean": (theory(rj.theory.mean_growth, SINUSOID, regression(dim=1)), {"Threads"}),
    "mean, switching": (theory(rj.theory.mean_growth, SWITCHING, regression(dim=2)), {"Threads"}),
    "mean, AR(2)": (theory(rj.theory.mean_growth, AR2, regression(dim=1)), {"Threads"}),
    "mean square": (theory(rj.theory.mean_square_growth, SINUSOID, regression(dim=5)), {"Threads", "Tiles"}),
    "mean square, switching": (theory(rj.theory.mean_square_growth, SWITCHING, regression(dim=2)), {"Threads"}),
    "mean square, AR(2)": (theory(rj.theory.mean_square_growth, AR2, regression(dim=1)), {"Threads"}),
    "almost sure": (estimated(SINUSOID, 1), {"Threads"}),
    "almost sure, AR(2)": (estimated(AR2, 1), {"Threads"}),
    "spectral radius of a large matrix": (
        lambda seed, mu: rj.theory.log_spectral_radius(mu * jnp.ones((13, 13))), {"Tiles"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENGINE)
def test_the_engine(name, forms):
    """Every fused part of a point takes the form that is meant for it."""
    point, expected = ENGINE[name]
    assert KERNEL in lower(grid(point), *GRID)
    assert forms() == expected


def test_double_precision(x64, forms):
    text = lower(grid(oscillated(1)), GRID[0], jax.ShapeDtypeStruct((3,), jnp.float64))
    assert KERNEL in text
    assert forms() == {"Threads"}


# Where a form fails


@fused
def looped(x):
    return lax.fori_loop(0, 3, lambda _, y: jnp.sin(y), x)


LANES = jax.ShapeDtypeStruct((5,), jnp.float32)


def test_lanes_shared_by_devices(forms):
    """`sweep` itself splits a grid over the GPUs."""
    mesh, split = AbstractMesh((2,), ("devices",), abstract_device=GPU), PartitionSpec("devices")
    shared = jax.shard_map(jax.vmap(looped), mesh=mesh, in_specs=split, out_specs=split, check_vma=False)
    lanes = jax.ShapeDtypeStruct((6,), jnp.float32, sharding=NamedSharding(mesh, split))
    assert KERNEL in jax.jit(shared).trace(lanes).lower(lowering_platforms=("cuda",)).as_text()
    assert forms() == {"Threads"}


def test_what_the_backend_cannot_lower_stays_with_xla(monkeypatch, forms, caplog):
    """Triton has no rule for erf, which shows only when the kernel is lowered, in the middle of a function."""
    monkeypatch.setattr(program, "ELEMENTWISE", ELEMENTWISE | {"erf"})
    text = lower(jax.vmap(fused(lambda x: lax.erf(jnp.sin(x)))), LANES)
    assert "erf" in text
    assert KERNEL not in text
    assert forms() == {"XLA"}
    failed = [each for each in caplog.records if each.levelno == logging.INFO]
    assert [each.args[0] for each in failed] == ["Threads", "Tiles"]
    assert all("erf" in each.getMessage() for each in failed)


def test_the_next_form_takes_over(monkeypatch, forms):
    def broken(self, jaxpr):
        raise RuntimeError("no")

    monkeypatch.setattr(Threads, "check", broken)
    assert KERNEL in lower(jax.vmap(looped), LANES)
    assert forms() == {"Tiles"}


def test_an_interrupt_is_not_swallowed(monkeypatch):
    def interrupted(self, jaxpr):
        raise KeyboardInterrupt

    monkeypatch.setattr(Threads, "check", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lower(jax.vmap(looped), LANES)


def test_users_see_no_warning_of_the_backend():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert KERNEL in lower(jax.vmap(looped), LANES)
    assert not seen


def test_a_backend_without_what_we_use(monkeypatch, forms):
    from jax.experimental import pallas

    monkeypatch.setattr(pallas, "triton", types.ModuleType("triton"))
    assert KERNEL not in lower(jax.vmap(looped), LANES)
    assert forms() == {"XLA"}


SCRIPT = """
import sys
sys.modules[sys.argv[1]] = None
import jax, resonance_jax
assert sys.modules.get("jax.experimental.pallas") is None, "imported before it is used"
from jax.sharding import AbstractDevice, AbstractMesh, use_abstract_mesh
from resonance_jax.fused import fused
gpu = AbstractDevice(device_kind="NVIDIA H100", num_cores=None, platform="gpu")
with use_abstract_mesh(AbstractMesh((), (), abstract_device=gpu)):
    print(jax.jit(jax.vmap(fused(jax.numpy.sin))).trace(jax.numpy.ones(5)).lower(lowering_platforms=("cuda",)).as_text())
"""


@pytest.mark.parametrize("absent", ["jax.experimental.pallas.triton", "jax.experimental.pallas"])
def test_a_jax_without_the_backend(absent):
    """The package can be imported, and XLA takes the programs for a GPU."""
    found = subprocess.run([sys.executable, "-c", SCRIPT, absent], capture_output=True, text=True, check=True)
    assert "stablehlo.sine" in found.stdout
    assert KERNEL not in found.stdout
    assert not found.stderr
