"""`resonance_guard`: an optimizer whose momentum lets go while gradients grow."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import optax
from jax import Array

from resonance_jax import checks
from resonance_jax.guard import growing
from resonance_jax.guard.growing import Sizes
from resonance_jax.guard.measure import check_horizon

GRIP = 4.0  # a release multiplies the damping by exp(4) within one recent part, and adds four times the growth rate


class ResonanceGuardState(NamedTuple):
    """State of `resonance_guard`; `optax.tree.get(state, "releases")` reads a field of it."""

    sizes: Sizes  # of the gradients
    damping: Array  # (), 1 - momentum of the next step
    ceiling: Array  # (), the momentum that was asked for
    releasing: Array  # (), bool; whether gradients grow now
    releases: Array  # (), int32; how often it began to let go
    inner_state: Any


def resonance_guard(
    optimizer: optax.GradientTransformation, *, hyperparameter: str = "momentum", horizon: int | None = None
) -> optax.GradientTransformationExtraArgs:
    """The optimizer, with a momentum that lets go while gradients grow, and comes back slowly.

    Momentum and data that drift can excite each other: the gradients then grow exponentially. With momentum mu they
    grow by s - (1 - mu) / 2 a step, where s is what the drift pumps in, so that enough damping, 1 - mu, stops them. The
    guard looks at the size of each gradient. While the mean of the last part of the run exceeds that of the whole run
    by more than noise explains, it raises the damping. Otherwise the damping that it added dies away as
    k ** (-1 / n) with the steps k: at the first release (n = 1) half of it is gone when the steps have doubled, later
    ones last longer. docs/guard.md has the rule in full, what it was measured on, and where it fails.

    Momentum 0 is the most it can do. Choose a step size at which the optimizer is stable without momentum: at a larger
    one the guard does not help, and may let go of the momentum that kept the run.

    Args:
        optimizer: made by `optax.inject_hyperparams`, so that its momentum can change from step to step without a new
            compilation.
        hyperparameter: the name of its momentum: `momentum` of `optax.sgd`, `b1` of `optax.adam`. A number, not a
            schedule. What was given is the most momentum there will be.
        horizon: how many steps it remembers at most; None: the whole run. For streams without an end: after 10^6 steps
            a guard without horizon takes another 10^6 to trust again.

    Returns:
        An optax transformation with state `ResonanceGuardState`; use it in place of the optimizer.

    Raises:
        ValueError: at `init`, an optimizer without such a hyperparameter.

    >>> sgd = optax.inject_hyperparams(optax.sgd)(learning_rate=0.1, momentum=0.99)
    >>> optimizer = resonance_guard(sgd)
    >>> weights = jnp.ones(3)
    >>> state = optimizer.init(weights)
    >>> for k in range(100):  # gradients that grow by 5% a step
    ...     updates, state = optimizer.update(1.05**k * weights, state, weights)
    >>> bool(optax.tree.get(state, "momentum") < 0.5), bool(optax.tree.get(state, "releases") > 0)
    (True, True)
    """
    check_horizon(horizon)
    if not (callable(getattr(optimizer, "init", None)) and callable(getattr(optimizer, "update", None))):
        raise ValueError(
            f"optimizer must be an optax transformation, got {optimizer!r}; call its factory first, e.g. "
            "optax.inject_hyperparams(optax.sgd)(0.01, momentum=0.9)"
        )
    inner: Any = optax.with_extra_args_support(optimizer)

    def init(params: Any) -> ResonanceGuardState:
        inner_state = inner.init(params)
        momentum = _momentum(inner_state, hyperparameter)
        ceiling = jnp.array(momentum, jnp.promote_types(momentum.dtype, jnp.float32))  # a buffer of its own: donatable
        checks.between(hyperparameter, ceiling, 0, 1, "momentum is the fraction of the last update that is kept")
        return ResonanceGuardState(
            growing.none_yet(ceiling.dtype),
            1 - ceiling,
            ceiling,
            jnp.zeros((), bool),
            jnp.zeros((), jnp.int32),
            inner_state,
        )

    def update(updates: Any, state: Any, params: Any = None, **extra_args: Any) -> tuple[Any, ResonanceGuardState]:
        size = growing.size_of(updates, state.damping.dtype)
        stepped, inner_state = inner.update(updates, state.inner_state, params, **extra_args)
        least = 1 - state.ceiling
        sizes = growing.add(state.sizes, size, least, horizon)
        releasing = growing.level(sizes, least, horizon) > 1
        releases = state.releases + (releasing & ~state.releasing).astype(jnp.int32)
        damping = jnp.where(releasing, _more(sizes, state, horizon), _less(sizes, state, horizon))
        damping = jnp.where(jnp.isfinite(size), damping, 1)
        momentum = inner_state.hyperparams[hyperparameter]
        in_force = jnp.where(damping > least, 1 - damping, state.ceiling).astype(momentum.dtype)  # else to the last bit
        return stepped, ResonanceGuardState(
            sizes,
            damping,
            state.ceiling,
            releasing,
            releases,
            inner_state._replace(hyperparams=inner_state.hyperparams | {hyperparameter: in_force}),
        )

    return optax.GradientTransformationExtraArgs(init, update)


def _more(sizes: Sizes, state: ResonanceGuardState, horizon: int | None) -> Array:
    """Growth at a rate r ends with 2 r more damping; 4 r turn it into its opposite, within the recent part."""
    least = 1 - state.ceiling
    missing = state.damping + growing.rate(sizes, least, horizon)
    return jnp.minimum(state.damping + GRIP * growing.recent_share(sizes, least, horizon) * missing, 1)


def _less(sizes: Sizes, state: ResonanceGuardState, horizon: int | None) -> Array:
    """What was added dies away as a power of the steps, the more slowly the more often it was needed."""
    times = jnp.maximum(state.releases, 1).astype(state.damping.dtype)
    gone = 1 / (times * (growing.remembered(sizes, horizon) + 1))
    least = 1 - state.ceiling
    return least + (1 - gone) * (state.damping - least)


def _momentum(inner_state: Any, name: str) -> Array:
    """The hyperparameter as the optimizer holds it; ValueError if there is none that could change."""
    hyperparams = getattr(inner_state, "hyperparams", None)
    if hyperparams is None:
        raise ValueError(
            "optimizer must be made by optax.inject_hyperparams, so that its momentum can change, got a state of type "
            f"{type(inner_state).__name__}; write optax.inject_hyperparams(optax.sgd)(0.01, momentum=0.9)"
        )
    if name not in hyperparams:
        raise ValueError(
            f"hyperparameter must be one that the optimizer was given as a number, one of {', '.join(hyperparams)}, "
            f"got {name!r}; name its momentum, and give it a value"
        )
    if name in getattr(inner_state, "hyperparams_states", {}):
        raise ValueError(
            f"{name} must be a number, got a schedule; the guard needs to set it, so give the largest value instead"
        )
    momentum = jnp.asarray(hyperparams[name])
    if not jnp.issubdtype(momentum.dtype, jnp.floating):
        raise ValueError(
            f"{name} must be a float, so that it can take any value, got {momentum}; write {float(momentum)}"
        )
    return momentum
