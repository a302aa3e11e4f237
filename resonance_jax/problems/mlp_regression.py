"""Experiment 6: a network fits a nonlinear target on Gaussian inputs whose mean moves."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks, naming
from resonance_jax.problems.base import Batch, Noise, Problem
from resonance_jax.shifts.base import Shift
from resonance_jax.shifts.inputs import Inputs

if TYPE_CHECKING:
    from flax import linen as nn


def cosine_of_distance(x: Array) -> Array:
    """The paper's target, cos(pi |x|)."""
    return jnp.cos(jnp.pi * jnp.linalg.norm(x, axis=-1))


def mlp_regression(
    *,
    dim: int = 2,
    samples: int = 10,
    hidden: Sequence[int] = (20, 20),
    input_variance: ArrayLike = 0.1,
    noise_variance: ArrayLike = 0.1,
    loss_factor: ArrayLike = 2.0,
    noisy_test: bool = False,
    test_samples: int = 128,
    module: "nn.Module | None" = None,
    target: Callable[[Array], Array] = cosine_of_distance,
) -> Problem:
    """Fit  y = target(x) + epsilon  on `samples` draws a step of  x ~ N(m_k, c I).

    Args:
        dim: number of inputs.
        samples: draws per step.
        hidden: widths of the hidden layers.
        input_variance: c, of each input around the mean.
        noise_variance: variance of the observation noise epsilon.
        loss_factor: 2 for the squared error, 1 for half of it.
        noisy_test: whether the targets of the test set carry observation noise too.
        test_samples: size of the test set, drawn once per run from the stationary law of the shift.
        module: another flax network, inputs (n, dim) -> outputs (n, 1) or (n,); `hidden` is then not used.
        target: another function to fit, inputs (n, dim) -> (n,).

    Returns:
        A problem for `train`, which reports the mean test loss (squared error) of the last steps.

    Raises:
        ValueError: a number below 1, a negative variance, or a module or target of the wrong shape.

    >>> wide = mlp_regression(hidden=(100,), target=lambda x: x[:, 0] * x[:, 1])
    >>> wide.dim
    2
    """
    checks.at_least_one("dim", dim, "count the inputs")
    checks.at_least_one("samples", samples, "a step needs at least one sample")
    checks.at_least_one("test_samples", test_samples, "the loss is measured on them")
    if not isinstance(hidden, Sequence):
        raise ValueError(f"hidden must be a sequence of widths, got {hidden!r}; one layer of 20 is (20,)")
    for width in hidden:
        checks.at_least_one("each width in hidden", width, "give the widths of the hidden layers, e.g. (20, 20)")
    checks.between("input_variance", input_variance, 0, jnp.inf, "give a variance")
    checks.between("noise_variance", noise_variance, 0, jnp.inf, "give a variance")
    checks.between("loss_factor", loss_factor, 0, jnp.inf, "2 is the squared error, 1 half of it", open_low=True)
    dtype = jnp.result_type(float)
    if module is None:
        from resonance_jax.problems.mlp import MLP  # flax is slow to import

        module = MLP(tuple(hidden))
    network = module
    factor = jnp.asarray(loss_factor, dtype)
    _check_shapes(network, target, jax.ShapeDtypeStruct((samples, dim), dtype))

    def noise(key: Array, number: int) -> Noise:
        normals = jax.random.normal(key, (number, dim + 1), dtype)
        return Noise(normals[:, :dim], jnp.sqrt(jnp.asarray(noise_variance, dtype)) * normals[:, dim])

    def batch(drawn: Noise, inputs: Inputs) -> Batch:
        """Of one step, or with the inputs of a step for each sample."""
        scale = jnp.sqrt(jnp.asarray(input_variance, dtype) + inputs.variance)
        around = scale * drawn.z if scale.ndim == 0 else scale[:, None] * drawn.z
        assert drawn.eps is not None
        return Batch(jnp.broadcast_to(inputs.mean, drawn.z.shape) + around, drawn.eps)

    def init(key: Array, shift: Shift, shift_state: Any) -> tuple[Any, Batch]:
        if shift.stationary is None:
            raise ValueError(
                "the test set needs the stationary law of the shift; give the Shift a stationary(key, state) -> Inputs"
            )
        network_key, mean_key, noise_key = jax.random.split(key, 3)
        stationary = shift.stationary
        met = jax.vmap(lambda key: stationary(key, shift_state))(jax.random.split(mean_key, test_samples))
        test = batch(noise(noise_key, test_samples), met)
        if not noisy_test:
            test = test._replace(noise=jnp.zeros_like(test.noise))
        return network.init(network_key, test.inputs), test

    def squared_error(parameters: Any, batch: Batch) -> Array:
        outputs: Any = network.apply(parameters, batch.inputs)
        return jnp.mean((outputs.reshape(-1) - target(batch.inputs) - batch.noise) ** 2)

    def loss(parameters: Any, truth: Any, batch: Batch) -> Array:
        return factor / 2 * squared_error(parameters, batch)

    return Problem(
        dim,
        init,
        draw=lambda key, k: noise(key, samples),
        batch=batch,
        loss=loss,
        error=squared_error,
        label=naming.call(
            "mlp_regression", dim=dim, samples=samples, hidden=tuple(hidden) if module is None else None, module=module
        ),
    )


def _check_shapes(network: "nn.Module", target: Callable[[Array], Array], x: jax.ShapeDtypeStruct) -> None:
    rows = x.shape[0]
    outputs: Any = jax.eval_shape(lambda key, x: network.init_with_output(key, x)[0], jax.random.key(0), x)
    if outputs.shape not in ((rows,), (rows, 1)):
        raise ValueError(
            f"module must map inputs (n, {x.shape[1]}) to (n, 1) or (n,), got {outputs.shape} for n={rows}; "
            "end it with nn.Dense(1)"
        )
    targets = jax.eval_shape(target, x)
    if targets.shape != (rows,):
        raise ValueError(
            f"target must map inputs (n, {x.shape[1]}) to (n,), got {targets.shape} for n={rows}; one number per row"
        )
