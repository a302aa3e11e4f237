"""What a traced program does to linear combinations: operation by operation, with numbers that may be traced.

The program acts on a short array of weights. Coefficients are single numbers: what treats weights differently is
refused.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend.core import Jaxpr, Literal

from resonance_jax.optimizers.numbers import ONE, ZERO, Number, minus, number, over, plus, times

Atom = Any  # a name


class Known(NamedTuple):
    """A value that no gradient reaches: a hyperparameter, a count, a key."""

    value: Any
    steps: bool = False  # whether it changes from step to step
    alike: bool = True  # whether all its entries are known to be equal


class Combination(NamedTuple):
    """A linear combination of named quantities."""

    of: dict[Atom, Number]  # name -> coefficient


class Refused(NamedTuple):
    """Neither of the two."""

    reason: str


Value = Known | Combination | Refused
# Operations that leave the entries of an array what they are, or make equal numbers of equal ones.
ELEMENTWISE = (
    *("abs", "add", "add_any", "and", "ceil", "convert_element_type", "copy", "copy_p", "cos", "div", "eq", "exp"),
    *("floor", "ge", "gt", "integer_pow", "is_finite", "le", "log", "log1p", "lt", "max", "min", "mul", "ne", "neg"),
    *("not", "or", "pow", "rem", "round", "rsqrt", "select_n", "sign", "sin", "sqrt", "square", "sub", "tanh"),
)
SHAPING = (
    "reshape",
    "squeeze",
    "broadcast_in_dim",
    "transpose",
    "copy",
    "copy_p",
    "split",
    "concatenate",
    "expand_dims",
)
CALLS = ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "checkpoint", "remat")


def follow(
    jaxpr: Jaxpr, consts: Sequence[Any], inputs: Sequence[Value], names: Mapping[Any, Atom] | None = None
) -> tuple[list[Value], dict[Atom, Value]]:
    """What the program returns for these inputs.

    Args:
        jaxpr: the program.
        consts: its constants.
        inputs: its arguments.
        names: variable -> name, for results on the way that are to be taken as quantities of their own from then on.

    Returns:
        The outputs, and what each of the named results is made of.
    """
    named: dict[Atom, Value] = {}
    found: dict[Any, Value] = dict(zip(jaxpr.constvars, map(_constant, consts), strict=True))
    found |= dict(zip(jaxpr.invars, inputs, strict=True))

    def value_of(variable: Any) -> Value:
        return Known(variable.val) if isinstance(variable, Literal) else found[variable]

    for equation in jaxpr.eqns:
        results = _apply(equation, [value_of(variable) for variable in equation.invars])
        for variable, result in zip(equation.outvars, results, strict=True):
            name = (names or {}).get(variable)
            if name is not None and isinstance(result, Combination):
                named[name], found[variable] = result, Combination({name: ONE})
            else:
                found[variable] = result
    return [value_of(variable) for variable in jaxpr.outvars], named


def _constant(value: Any) -> Known:
    traced = isinstance(value, Tracer)
    return Known(value, alike=jnp.size(value) == 1 if traced else _alike(jnp.asarray(value)))


def is_zero(value: Known) -> bool:
    """Whether a value is known to be 0."""
    return not isinstance(value.value, Tracer) and value.alike and number(value.value).is_zero


def _apply(equation: Any, inputs: list[Value]) -> list[Value]:
    """The outputs of one operation."""
    name, outputs = equation.primitive.name, len(equation.outvars)
    refused: list[Value] = [each for each in inputs if isinstance(each, Refused)]
    if refused:
        return refused[:1] * outputs
    inner = next((equation.params[key] for key in ("jaxpr", "call_jaxpr") if key in equation.params), None)
    if name in CALLS and inner is not None:
        return follow(inner.jaxpr, inner.consts, inputs)[0]
    known = [each for each in inputs if isinstance(each, Known)]
    if len(known) == len(inputs):
        return _computed(equation, known)
    if any(each.steps for each in known):
        return [Refused("changes from step to step")] * outputs
    size = max(v.aval.size for v, each in zip(equation.invars, inputs, strict=True) if isinstance(each, Combination))
    whole = all(variable.aval.size == size for variable in equation.outvars)
    if not whole or not all(each.alike for each in known) or (name in SHAPING and len(inputs) > 1):
        return [Refused("treats weights differently")] * outputs
    result = RULES[name](equation, *inputs) if name in RULES else None
    return [result or Refused(f"passes the gradient through {name!r}")] * outputs


def _computed(equation: Any, known: list[Known]) -> list[Value]:
    """An operation on known values; those that are not traced stay plain, and one that changes nothing is left out."""
    same = equation.primitive.name in ("convert_element_type", "copy", "copy_p")
    if same and equation.invars[0].aval.dtype == equation.outvars[0].aval.dtype:
        return [known[0]]
    values, steps = [each.value for each in known], any(each.steps for each in known)
    traced = any(isinstance(each, Tracer) for each in values)
    with contextlib.nullcontext() if traced else jax.ensure_compile_time_eval():
        results = equation.primitive.bind(*map(jnp.asarray, values), **equation.params)
    shaping = equation.primitive.name in SHAPING and len(known) == 1
    kept = (shaping or equation.primitive.name in ELEMENTWISE) and all(each.alike for each in known)
    outputs = results if equation.primitive.multiple_results else [results]
    found: list[Value] = [Known(each, steps, kept or each.size == 1 if traced else _alike(each)) for each in outputs]
    return found


def _alike(value: Any) -> bool:
    """Whether all entries of a plain array are equal."""
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return value.size == 1
    entries = np.ravel(np.asarray(value))
    return entries.size > 0 and bool((entries == entries[0]).all())


# The operations that keep a combination linear. Each gets the equation and its inputs, at least one a combination, and
# returns None where it is not linear after all.


def _add(equation: Any, a: Value, b: Value, join: Callable[..., Number] = plus) -> Value | None:
    parts = [_as_combination(each) for each in (a, b)]
    if parts[0] is None or parts[1] is None:
        return Refused("adds a number that is not 0")
    first, second = parts[0].of, parts[1].of
    return _tidy({name: join(first.get(name, ZERO), second.get(name, ZERO)) for name in first | second})


def _multiply(equation: Any, a: Value, b: Value) -> Value | None:
    if isinstance(a, Combination) and isinstance(b, Combination):
        return Refused("multiplies the gradient with itself")
    combination, factor = (a, b) if isinstance(a, Combination) else (b, a)
    assert isinstance(combination, Combination)
    assert isinstance(factor, Known)
    return _tidy({name: times(each, number(factor.value)) for name, each in combination.of.items()})


def _divide(equation: Any, a: Value, b: Value) -> Value | None:
    if not isinstance(a, Combination) or not isinstance(b, Known):
        return None
    if is_zero(b):
        return Refused("divides by 0")
    return _tidy({name: over(each, number(b.value)) for name, each in a.of.items()})


def _negate(equation: Any, a: Value) -> Value | None:
    assert isinstance(a, Combination)
    return Combination({name: minus(ZERO, each) for name, each in a.of.items()})


def _convert(equation: Any, a: Value) -> Value | None:
    """Fewer digits are no linear operation."""
    to = equation.params["new_dtype"]
    enough = jnp.issubdtype(to, jnp.floating) and jnp.finfo(to).bits >= jnp.finfo(jnp.result_type(float)).bits
    return a if enough else Refused(f"rounds to {to}")


def _shape(equation: Any, *parts: Value) -> Value | None:
    return next(each for each in parts if isinstance(each, Combination))


def _power(equation: Any, a: Value) -> Value | None:
    return a if equation.params["y"] == 1 else None


def _select(equation: Any, chosen: Value, *cases: Value) -> Value | None:
    parts = [_as_combination(each) for each in cases]
    if not isinstance(chosen, Known) or any(part is None for part in parts) or len(cases) != 2:
        return None
    first, second = (part.of for part in parts if part is not None)
    if not isinstance(chosen.value, Tracer):
        return Combination(first if number(chosen.value).is_zero else second)
    pick = jnp.ravel(chosen.value)[0].astype(bool)

    def picked(name: Atom) -> Number:
        return number(jnp.where(pick, second.get(name, ZERO).value, first.get(name, ZERO).value))

    return Combination({name: picked(name) for name in first | second})


def _as_combination(value: Value) -> Combination | None:
    if isinstance(value, Combination):
        return value
    return Combination({}) if isinstance(value, Known) and is_zero(value) else None


def _tidy(of: dict[Atom, Any]) -> Combination:
    """Without what is known to be 0."""
    return Combination({name: each for name, each in of.items() if not each.is_zero})


RULES: dict[str, Callable[..., Value | None]] = {
    "add": _add,
    "add_any": _add,
    "sub": lambda equation, a, b: _add(equation, a, b, minus),
    "mul": _multiply,
    "div": _divide,
    "neg": _negate,
    "convert_element_type": _convert,
    "integer_pow": _power,
    "select_n": _select,
} | dict.fromkeys(SHAPING, _shape)
