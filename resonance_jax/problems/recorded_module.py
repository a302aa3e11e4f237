"""A network fits recorded rows."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax.problems.base import Problem, Stream
from resonance_jax.problems.orders import Order

if TYPE_CHECKING:
    from flax import linen as nn

MEASURED = (
    4096  # rows, spread over all of them, on which the loss is measured; measuring all would cost more than a step
)


def recorded_module(
    module: "nn.Module",
    loss: Callable[[Array, Array], Array] | None,
    values: np.ndarray,
    targets: np.ndarray | None,
    samples: int,
    order: Order,
    label: str,
) -> Problem:
    """The problem that `recorded` documents, for a module."""
    if targets is None:
        raise ValueError("a module needs targets to fit, got none; give targets, one for each row")
    dtype = jnp.result_type(float)
    table, wanted = jnp.asarray(values), jnp.asarray(targets, dtype)
    num_rows = len(values)
    each_loss = _square if loss is None else loss
    _check(module, each_loss, jax.ShapeDtypeStruct((samples, values.shape[1]), dtype))
    spread = np.unique(np.linspace(0, num_rows - 1, min(num_rows, MEASURED)).astype(int))
    test = (table[spread], wanted[spread])

    def inputs(key: Array, k: Array, state: Any) -> tuple[tuple[Array, Array], Any]:
        rows, state = order.rows(key, k, state, num_rows, samples)
        return (table[rows], wanted[rows]), state

    def init(key: Array, source: Stream, state: Any) -> tuple[Any, tuple[()]]:
        return module.init(key, table[:samples]), ()

    def mean_loss(parameters: Any, rows: tuple[Array, Array]) -> Array:
        x, y = rows
        outputs: Any = module.apply(parameters, x)
        return jnp.mean(each_loss(outputs.reshape(-1), y))

    return Problem(
        dim=values.shape[1],
        init=init,
        draw=lambda key, k: (),
        batch=lambda drawn, rows: rows,
        loss=lambda parameters, truth, rows: mean_loss(parameters, rows),
        error=lambda parameters, truth: mean_loss(parameters, test),
        stream=Stream(lambda key: order.init(key, num_rows), inputs),
        label=label,
    )


def _square(outputs: Array, targets: Array) -> Array:
    return (outputs - targets) ** 2


def _check(module: "nn.Module", loss: Callable[[Array, Array], Array], x: jax.ShapeDtypeStruct) -> None:
    rows = x.shape[0]
    outputs: Any = jax.eval_shape(lambda key, x: module.init_with_output(key, x)[0], jax.random.key(0), x)
    if outputs.shape not in ((rows,), (rows, 1)):
        raise ValueError(
            f"module must map rows (n, {x.shape[1]}) to (n, 1) or (n,), got {outputs.shape} for n={rows}; end it with "
            "nn.Dense(1)"
        )
    each = jax.ShapeDtypeStruct((rows,), x.dtype)
    found = jax.eval_shape(loss, each, each)
    if found.shape != (rows,):
        raise ValueError(
            f"loss must map outputs and targets (n,) to losses (n,), got {found.shape} for n={rows}; do not average it"
        )
