"""A linear optimizer read off optax: its update is traced on a few weights and followed, operation by operation."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from resonance_jax.optimizers.following import Combination, Known, Refused, Value, follow, is_zero
from resonance_jax.optimizers.linear import Form, LinearOptimizer
from resonance_jax.optimizers.numbers import ONE, ZERO, Number, plus

GRADIENT, WEIGHT = "gradient", "weight"
WEIGHTS = 2  # that an update is traced on
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
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        try:
            (init, update), other = (_traced(optimizer, number) for number in (WEIGHTS, WEIGHTS + 1))
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise ValueError(REFUSAL.format(reason=f"cannot be traced on a few weights ({error})")) from error
        if [_outline(each.jaxpr) for each in (init, update)] != [_outline(each.jaxpr) for each in other]:
            raise ValueError(REFUSAL.format(reason="depends on the number of weights"))
        start = follow(init.jaxpr, init.consts, [Combination({WEIGHT: ONE})])[0]
        state = [_buffer_or_known(j, each) for j, each in enumerate(start)]
        found = _settled(update, state)
    if not all(np.isfinite(each.factor) for row in found.rows() for each in (row[0], row[1], *row[2])):
        raise ValueError(
            "the hyperparameters of the optimizer must be finite numbers, got NaN or infinity; give others"
        )
    return found


def _traced(optimizer: Any, number: int) -> tuple[Any, Any]:
    """`init` and `update` on so many weights."""
    zeros = jnp.zeros((number,), jnp.result_type(float))
    init, like = jax.make_jaxpr(optimizer.init, return_shape=True)(zeros)
    leaves, tree = jax.tree.flatten(like)

    def update(gradient: Any, weight: Any, *state: Any) -> list[Any]:
        change, after = optimizer.update(gradient, tree.unflatten(state), weight)
        if jax.tree.structure(after) != tree:
            raise ValueError("a step changes the form of its state")
        return [change, *jax.tree.leaves(after)]

    return init, jax.make_jaxpr(update)(zeros, zeros, *leaves)


def _outline(jaxpr: Any) -> list[Any]:
    """The operations of a program and the plain numbers in it, whatever the shapes."""
    found: list[Any] = [len(jaxpr.constvars)]
    for equation in jaxpr.eqns:
        literals = [float(each.val) for each in equation.invars if isinstance(each, Literal) and np.size(each.val) == 1]
        inner = [_outline(getattr(each, "jaxpr", each)) for each in equation.params.values() if _is_program(each)]
        found.append((equation.primitive.name, [repr(each) for each in literals], inner))
    return found


def _is_program(value: Any) -> bool:
    return hasattr(getattr(value, "jaxpr", value), "eqns")


def _buffer_or_known(j: int, start: Value) -> Value:
    """What a leaf of the state may be, by what it starts at."""
    if isinstance(start, Combination) and start.of:
        return Refused("starts from the weights")
    if isinstance(start, Combination):
        return Combination({("old", j): ONE})
    if isinstance(start, Refused) or not jnp.issubdtype(jnp.result_type(start.value), jnp.floating):
        return start
    return Combination({("old", j): ONE}) if jnp.size(start.value) == WEIGHTS and is_zero(start) else start


def _settled(traced: Any, state: list[Value]) -> LinearOptimizer:
    """Follow the update until no leaf of the state turns out to be something else."""
    outvars = traced.jaxpr.outvars[1:]
    while True:
        inputs = [Combination({GRADIENT: ONE}), Combination({WEIGHT: ONE}), *state]
        names: dict[Any, Any] = {}
        for j, (each, variable) in enumerate(zip(state, outvars, strict=True)):
            if isinstance(each, Combination) and _is_variable(variable):
                names.setdefault(variable, ("new", j))
        (change, *after), named = follow(traced.jaxpr, traced.consts, inputs, names)
        # Two leaves may be one variable: each then is what the variable is made of.
        forms = {
            j: named.get(names.get(outvars[j]), each) if _is_variable(outvars[j]) else each
            for j, each in enumerate(after)
        }
        settled = [_again(*pair) for pair in zip(state, forms.values(), strict=True)]
        reached = _reached(settled, forms)
        settled = [
            Known(0.0) if isinstance(each, Combination) and j not in reached else each for j, each in enumerate(settled)
        ]
        if all(old is new for old, new in zip(state, settled, strict=True)):
            order = {name: i for i, name in enumerate(named)}
            places = {j: order.get(names.get(outvars[j]), -1) if _is_variable(outvars[j]) else -1 for j in reached}
            return _optimizer(change, {j: forms[j] for j in reached}, places)
        state = settled


def _is_variable(variable: Any) -> bool:
    """Whether an output is a variable, not a number."""
    return not isinstance(variable, Literal)


def _again(before: Value, after: Value) -> Value:
    """What a leaf of the state is, now that its value after a step is known."""
    if isinstance(before, Refused) or before is after or (isinstance(before, Known) and before.steps):
        return before
    if isinstance(after, Known):
        return after._replace(steps=True)
    if isinstance(after, Refused) or isinstance(before, Combination):
        return after if isinstance(after, Refused) else before
    return Refused("has a buffer that does not start at 0")


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


def _optimizer(change: Value, forms: dict[int, Value], places: dict[int, int]) -> LinearOptimizer:
    """Of what a step adds to the weights and makes of the buffers; `places` say in which order they are computed."""
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
    order = sorted(used, key=lambda j: (places[j], j))

    def form_of(value: Value, before: int, own: Number = ZERO) -> Form:
        assert isinstance(value, Combination)
        assert all(isinstance(name, str) or name[0] == "old" or name[1] in order[:before] for name in value.of)
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
