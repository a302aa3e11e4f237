"""A measure for `optax.monitor`: for those who want to see a warning and change nothing."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import optax
from jax import Array

from resonance_jax import checks
from resonance_jax.guard import growing
from resonance_jax.guard.growing import Sizes


class MeasureResonanceState(NamedTuple):
    sizes: Sizes


def measure_resonance(momentum: float = 0.9, *, horizon: int | None = None) -> optax.GradientTransformationExtraArgs:
    """By how much gradients grow: a measure for `optax.monitor`, above 1 where `resonance_guard` would let go.

    Put the monitor first in the chain, where it sees the gradients as they come.

    Args:
        momentum: of the optimizer; in a long run the measure looks back over 1 / (1 - momentum) steps, at least 32.
        horizon: as of `resonance_guard`.

    >>> optimizer = optax.chain(optax.monitor({"growth": measure_resonance(0.9)}), optax.sgd(0.1, momentum=0.9))
    >>> weights = jnp.ones(3)
    >>> state = optimizer.init(weights)
    >>> for k in range(100):
    ...     updates, state = optimizer.update(1.05**k * weights, state)
    >>> float(optax.tree.get(state, "growth")) > 1
    True
    """
    checks.between("momentum", momentum, 0, 1, "a fraction kept from step to step")
    check_horizon(horizon)

    def init(params: Any) -> MeasureResonanceState:
        del params
        return MeasureResonanceState(growing.none_yet(jnp.result_type(float)))

    def update(updates: Any, state: Any, params: Any = None, **extra_args: Any) -> tuple[Array, MeasureResonanceState]:
        del params, extra_args
        dtype = state.sizes.usual.dtype
        damping = 1 - jnp.asarray(momentum, dtype)
        sizes = growing.add(state.sizes, growing.size_of(updates, dtype), damping, horizon)
        return growing.level(sizes, damping, horizon), MeasureResonanceState(sizes)

    return optax.GradientTransformationExtraArgs(init, update)


def check_horizon(horizon: int | None) -> None:
    if horizon is not None:
        checks.at_least_one("horizon", horizon, "it is a number of steps; leave it out to remember the whole run")
