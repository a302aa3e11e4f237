"""Remedies against resonance that the guard is compared with: each makes an optimizer of a momentum and a step size."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

import resonance_jax as rj

SECOND_MOMENT = 0.999  # b2 of Adam, table of experiment 5
TUTORIAL = 0.9  # momentum, the default of most tutorials
RESET_EVERY = 100  # steps
LARGEST_GRADIENT = 1.0  # a usual norm to clip at
TOLERATED = 10  # gradients in a row that are not finite

Remedy = Callable[[Any, Any, bool], optax.GradientTransformation]  # momentum, step size, whether of Adam or of SGD
Forget = Callable[[Any, Any, Array], Array]  # gradient, last update, steps done -> whether to forget the momentum


class ForgettingState(NamedTuple):
    """State of `forgetting`."""

    last: Any  # update
    steps: Array  # (), int32
    inner_state: Any


def forgetting(optimizer: optax.GradientTransformation, buffer: str, when: Forget) -> optax.GradientTransformation:
    """The optimizer, with its momentum buffer set to 0 before some of the steps.

    Args:
        optimizer: with momentum.
        buffer: name of the buffer in its state: `trace` of `optax.sgd`, `mu` of `optax.adam`.
        when: of the gradient, the last update and the steps done.
    """

    def init(params: Any) -> ForgettingState:
        return ForgettingState(jax.tree.map(jnp.zeros_like, params), jnp.zeros((), jnp.int32), optimizer.init(params))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, ForgettingState]:
        forget = when(updates, state.last, state.steps)
        kept = jax.tree.map(lambda leaf: jnp.where(forget, 0, leaf), optax.tree.get(state.inner_state, buffer))
        inner_state = optax.tree.set(state.inner_state, **{buffer: kept})
        updates, inner_state = optimizer.update(updates, inner_state, params)
        return updates, ForgettingState(updates, state.steps + 1, inner_state)

    return optax.GradientTransformation(init, update)


def uphill(gradient: Any, last: Any, steps: Array) -> Array:
    """Whether the last update went up the gradient: the gradient scheme of O'Donoghue and Candes (2015)."""
    products = jax.tree.map(lambda one, other: jnp.sum(one * other), gradient, last)
    return jax.tree.reduce(jnp.add, products) > 0


def regularly(gradient: Any, last: Any, steps: Array) -> Array:
    return steps % RESET_EVERY == 0


def _plain(momentum: Any, eta: Any, adam: bool, **settings: Any) -> optax.GradientTransformation:
    if adam:
        return optax.adam(eta, b1=momentum, b2=SECOND_MOMENT, **settings)
    return optax.sgd(eta, momentum=momentum, **settings)


def _no_momentum(momentum: Any, eta: Any, adam: bool) -> optax.GradientTransformation:
    return _plain(0.0, eta, adam)


def _at_most_tutorial(momentum: Any, eta: Any, adam: bool) -> optax.GradientTransformation:
    return _plain(jnp.minimum(momentum, TUTORIAL), eta, adam)


def _clipping(momentum: Any, eta: Any, adam: bool) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(LARGEST_GRADIENT), _plain(momentum, eta, adam))


def _forgetting(momentum: Any, eta: Any, adam: bool, when: Forget) -> optax.GradientTransformation:
    return forgetting(_plain(momentum, eta, adam), "mu" if adam else "trace", when)


def _plateau(momentum: Any, eta: Any, adam: bool) -> optax.GradientTransformation:
    """A smaller step size where the loss stops falling; it needs the loss of the step as `value`."""
    smaller = optax.contrib.reduce_on_plateau(factor=0.5, patience=10, accumulation_size=100)
    return optax.chain(_plain(momentum, eta, adam), smaller)


def _if_finite(momentum: Any, eta: Any, adam: bool) -> optax.GradientTransformation:
    return optax.apply_if_finite(_plain(momentum, eta, adam), TOLERATED)


def _guard(momentum: Any, eta: Any, adam: bool) -> optax.GradientTransformation:
    if adam:
        inner = optax.inject_hyperparams(optax.adam)(eta, b1=momentum, b2=SECOND_MOMENT)
        return rj.resonance_guard(inner, hyperparameter="b1")
    return rj.resonance_guard(optax.inject_hyperparams(optax.sgd)(eta, momentum=momentum))


REMEDIES: dict[str, Remedy] = {
    "none": _plain,
    "no momentum": _no_momentum,
    "momentum 0.9": _at_most_tutorial,
    "Nesterov": functools.partial(_plain, nesterov=True),
    "clipping": _clipping,
    "restart": functools.partial(_forgetting, when=uphill),
    "plateau": _plateau,
    "apply if finite": _if_finite,
    "reset": functools.partial(_forgetting, when=regularly),
    "guard": _guard,
}
