"""One step of training: what `train` repeats and `lyapunov` differentiates."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import optax
from jax import Array

from resonance_jax.problems.base import Problem


class Stepped(NamedTuple):
    """After a step."""

    loss: Array  # () before it
    parameters: Any
    optimizer_state: Any


Step = Callable[[Any, Any, Any, Any], Stepped]  # parameters, optimizer state, draws and inputs of the step


def check_optimizer(optimizer: Any) -> None:
    if not (callable(getattr(optimizer, "init", None)) and callable(getattr(optimizer, "update", None))):
        raise ValueError(
            f"optimizer must be an optax.GradientTransformation, got {optimizer!r}; "
            "call its factory first, e.g. optax.adam(0.01)"
        )


def initial_state(optimizer: optax.GradientTransformation, parameters: Any) -> Any:
    with jax.numpy_dtype_promotion("standard"):
        return optimizer.init(parameters)


def training_step(problem: Problem, truth: Any, update: Callable[..., tuple[Any, Any]]) -> Step:
    """The step on the samples that a problem makes of its draws and inputs.

    Args:
        problem: as of `train`.
        truth: from its `init`.
        update: of the optimizer: gradient, state, parameters, and the loss as `value` -> updates, state.
    """

    def step(parameters: Any, optimizer_state: Any, drawn: Any, inputs: Any) -> Stepped:
        batch = problem.batch(drawn, inputs)
        loss, gradient = jax.value_and_grad(problem.loss)(parameters, truth, batch)
        with jax.numpy_dtype_promotion("standard"):  # optax multiplies counts with rates
            updates, optimizer_state = update(gradient, optimizer_state, parameters, value=loss)
            parameters = optax.apply_updates(parameters, updates)
        return Stepped(loss, parameters, optimizer_state)

    return step
