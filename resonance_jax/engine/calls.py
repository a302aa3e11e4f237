"""A call outside of any program, as one compiled program: the second identical call compiles nothing."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from resonance_jax import checks
from resonance_jax.engine.constants import is_key, take_out
from resonance_jax.engine.executables import compiled

Function = TypeVar("Function", bound=Callable[..., Any])


class _Output(NamedTuple):
    """Where an array of a result lies among the outputs of the program."""

    number: int


def as_program(*traced: str) -> Callable[[Function], Function]:
    """Make direct calls of a function run as one compiled program; within a program it is traced as it is.

    Args:
        traced: arguments that become arguments of the program, where they are floats or keys: other values of theirs
            compile nothing either. The rest is part of the program.

    >>> @as_program("x")
    ... def double(x, *, label):
    ...     return {label: 2.0 * x}
    >>> float(double(3.0, label="twice")["twice"])
    6.0
    """

    def decorate(function: Any) -> Any:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def called(*args: Any, **named: Any) -> Any:
            if not _directly():
                return function(*args, **named)
            given = signature.bind(*args, **named).arguments
            numbers = {name: given.pop(name) for name in traced if _is_number(given.get(name))}
            result = _run(function, given, numbers)
            return function(*args, **named) if result is None else result[0]

        return called

    return decorate


def _directly() -> bool:
    """Whether a call is made outside of any program, and may be made one. Those who look for NaNs need single steps."""
    config: Any = jax.config
    if config.jax_disable_jit or config.jax_debug_nans or config.jax_debug_infs:
        return False
    return not isinstance(jnp.zeros(()), Tracer)


def _is_number(value: Any) -> bool:
    """Whether it is one float, or one typed key."""
    if isinstance(value, Tracer) or not isinstance(value, float | np.generic | np.ndarray | jax.Array):
        return False
    return np.ndim(value) == 0 and (jnp.issubdtype(jnp.result_type(value), jnp.floating) or is_key(value))


def _run(function: Any, fixed: dict[str, Any], numbers: dict[str, Any]) -> list[Any] | None:
    """The result in a list; None if what the function closes over belongs to a transformation around it."""
    result: Any = None

    def program(traced: dict[str, Any]) -> list[Any]:
        nonlocal result
        with checks.watching(traced) as found:
            output = function(**fixed, **traced)
        ranges.extend(found)
        leaves, tree = jax.tree.flatten(output)
        outputs = [leaf for leaf in leaves if isinstance(leaf, jax.Array)]
        count = iter(range(len(outputs)))
        result = tree, [_Output(next(count)) if isinstance(leaf, jax.Array) else leaf for leaf in leaves]
        return outputs

    ranges: list[tuple[str, checks.Range]] = []
    try:
        closed = jax.make_jaxpr(program)(numbers)
    except ValueError as error:
        error.__notes__ = [note for note in getattr(error, "__notes__", ()) if "JAX has removed" not in note]
        raise
    for name, expected in ranges:
        expected.check(np.asarray(numbers[name]))
    run, large, small = take_out(closed)
    if any(isinstance(each, Tracer) for each in (*closed.consts, *large, *small)):
        return None
    values = [*large, *jax.tree.leaves(numbers)]
    lowered = jax.jit(run).lower(*values)
    devices = sorted({device for each in values if isinstance(each, jax.Array) for device in each.devices()}, key=str)
    default: Any = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    here = default if isinstance(default, jax.Device) else jax.devices()[0]
    outputs = compiled(lowered, constants=small, devices=devices or [here], what=function.__name__).executable(*values)
    tree, leaves = result
    return [jax.tree.unflatten(tree, [outputs[x.number] if isinstance(x, _Output) else x for x in leaves])]
