"""A linear optimizer read off optax: its update is traced on one weight and followed, operation by operation."""

from typing import Any

import jax
import jax.numpy as jnp

from resonance_jax.optimizers.following import Combination, Known, Refused, Value, follow, is_zero
from resonance_jax.optimizers.linear import Form, LinearOptimizer
from resonance_jax.optimizers.numbers import ONE, ZERO, Number, plus

GRADIENT, WEIGHT = "gradient", "weight"
REFUSAL = (
    "optimizer must be linear in the gradient and the same at every step, got one that {reason}; rj.train runs any "
    "optimizer, and rj.lyapunov measures how it grows"
)


def read(optimizer: Any) -> LinearOptimizer:
    """The numbers of an optax optimizer that is linear in the gradient, acts on all weights alike, and at every step.

    Args:
        optimizer: an `optax.GradientTransformation`: sgd, momentum of any kind, averages without debiasing, weight
            decay, constant rates, and chains of these. Hyperparameters may be traced.

    Returns:
        A `LinearOptimizer` with the buffers of optax, in the order in which they are computed. Buffers that no gradient
        reaches, and those that do not reach the weights, are left out.

    Raises:
        ValueError: what is not linear, as Adam or clipping, or changes from step to step, as schedules.

    >>> import optax
    >>> weight = read(optax.sgd(0.5, momentum=0.75, nesterov=True)).weight
    >>> weight.gradient.value, weight.weight.value, weight.new[0].value  # theta' = theta - 0.5 g - 0.375 s'
    (-0.5, 1.0, -0.375)
    """
    if isinstance(optimizer, LinearOptimizer):
        return optimizer
    if not (callable(getattr(optimizer, "init", None)) and callable(getattr(optimizer, "update", None))):
        raise ValueError(
            f"optimizer must be an optax.GradientTransformation, got {optimizer!r}; call its factory first, e.g. "
            "optax.sgd(0.01, momentum=0.9)"
        )
    zero = jnp.zeros((), jnp.result_type(float))
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        try:
            init, like = jax.make_jaxpr(optimizer.init, return_shape=True)(zero)
            leaves, tree = jax.tree.flatten(like)

            def update(gradient: Any, weight: Any, *state: Any) -> list[Any]:
                change, after = optimizer.update(gradient, tree.unflatten(state), weight)
                return [change, *jax.tree.leaves(after)]

            traced = jax.make_jaxpr(update)(zero, zero, *leaves)
        except (TypeError, IndexError) as error:
            reason = f"needs more than the gradient of one weight ({error})"
            raise ValueError(REFUSAL.format(reason=reason)) from error
        start = follow(init.jaxpr, init.consts, [Combination({WEIGHT: ONE})])[0]
        return _settled(traced, [_buffer_or_known(j, each) for j, each in enumerate(start)])


def _buffer_or_known(j: int, start: Value) -> Value:
    """What a leaf of the state may be, by what it starts at."""
    if isinstance(start, Combination) and start.of:
        return Refused("starts from the weights")
    if isinstance(start, Combination):
        return Combination({("old", j): ONE})
    if isinstance(start, Refused) or not jnp.issubdtype(jnp.result_type(start.value), jnp.floating):
        return start
    return Combination({("old", j): ONE}) if jnp.size(start.value) == 1 and is_zero(start) else start


def _settled(traced: Any, state: list[Value]) -> LinearOptimizer:
    """Follow the update until no leaf of the state turns out to be something else."""
    outvars = traced.jaxpr.outvars[1:]
    while True:
        inputs = [Combination({GRADIENT: ONE}), Combination({WEIGHT: ONE}), *state]
        names: dict[Any, Any] = {}
        for j, (each, variable) in enumerate(zip(state, outvars, strict=True)):
            if isinstance(each, Combination) and not hasattr(variable, "val"):
                names.setdefault(variable, ("new", j))
        (change, *after), named = follow(traced.jaxpr, traced.consts, inputs, names)
        forms = {j: named.get(("new", j), each) for j, each in enumerate(after)}
        settled = [_again(j, *pair) for j, pair in enumerate(zip(state, forms.values(), strict=True))]
        reached = _reached(settled, forms)
        settled = [
            Known(0.0) if isinstance(each, Combination) and j not in reached else each for j, each in enumerate(settled)
        ]
        if all(old is new for old, new in zip(state, settled, strict=True)):
            return _optimizer(change, {j: form for j, form in forms.items() if j in reached}, named)
        state = settled


def _again(j: int, before: Value, after: Value) -> Value:
    """What a leaf of the state is, now that its value after a step is known."""
    if isinstance(before, Refused) or before is after or (isinstance(before, Known) and before.steps):
        return before
    if isinstance(before, Combination):
        return (
            before
            if isinstance(after, Combination)
            else after._replace(steps=True)
            if isinstance(after, Known)
            else after
        )
    if isinstance(after, Known):
        return after._replace(steps=True)
    return after if isinstance(after, Refused) else Refused("has a buffer that does not start at 0")


def _reached(state: list[Value], forms: dict[int, Value]) -> set[int]:
    """Buffers that a gradient or a weight reaches, at once or through another buffer."""
    reached: set[int] = set()
    while True:
        more = {
            j
            for j, each in enumerate(state)
            if isinstance(each, Combination)
            and isinstance(form := forms[j], Combination)
            and any(name in (GRADIENT, WEIGHT) or name[1] in reached for name in form.of)
        }
        if more <= reached:
            return reached
        reached |= more


def _optimizer(change: Value, forms: dict[int, Value], named: dict[Any, Value]) -> LinearOptimizer:
    if isinstance(change, Known):
        change = Combination({}) if is_zero(change) else Refused("moves the weights without a gradient")
    if isinstance(change, Refused):
        raise ValueError(REFUSAL.format(reason=change.reason))
    used: set[int] = set()
    waiting = list(change.of)
    while waiting:
        name = waiting.pop()
        if not isinstance(name, str) and name[1] not in used:
            used.add(name[1])
            form = forms[name[1]]
            assert isinstance(form, Combination)
            waiting += form.of
    computed = [name[1] for name in named if name[1] in used]
    order = [*(j for j in sorted(used) if j not in computed), *computed]

    def form_of(value: Value, before: int, own: Number = ZERO) -> Form:
        assert isinstance(value, Combination)
        get = value.of.get
        return Form(
            get(GRADIENT, ZERO),
            plus(own, get(WEIGHT, ZERO)),
            tuple(get(("old", j), ZERO) for j in order),
            tuple(get(("new", j), ZERO) for j in order[:before]),
        )

    return LinearOptimizer(
        tuple(form_of(forms[j], i) for i, j in enumerate(order)), form_of(change, len(order), own=ONE)
    )
