"""Large constants of a traced program, taken out of it to become arguments.

What a function closes over is a constant of its traced program. Compiled as one, an array is printed into the program,
read by every pass of the compiler, and stored once more with each executable.

JAX keeps constants in three places: with the whole program; with each `jit` inside it, however deep in loops and
branches; and in the equations themselves, where `jax_use_simplified_jaxpr_constants` is set. In the first place they
only need another value. In the others the equations around them are bound again, so that JAX hands the new arguments
down. Inside `jax.checkpoint` and primitives of other packages, constants of a `jit` stay constants.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxpr_as_fun

from resonance_jax.fused import fused

LEAST_BYTES = 4096  # smaller constants cost a compiler nothing, and it can compute with them

Known = Mapping[Any, Any]  # key of a constant -> what stands for it


def take_out(closed: ClosedJaxpr) -> tuple[Callable[..., list[Any]], list[Any]]:
    """A program as a function of its large constants.

    Args:
        closed: from `jax.make_jaxpr`.

    Returns:
        A function of the large constants and then of the arguments of the program, and the large constants.

    >>> closed = jax.make_jaxpr(lambda x: x + np.ones(5000, np.float32))(1.0)
    >>> program, (ones,) = take_out(closed)
    >>> program(3 * ones, 1.0)[0][:2].tolist()
    [4.0, 4.0]
    """
    found = _found(closed)
    if not found:
        return jaxpr_as_fun(closed), []

    def run(*args: Any) -> list[Any]:
        known = dict(zip(found, args[: len(found)], strict=True))
        return _evaluate(closed, args[len(found) :], known)

    return run, list(found.values())


def _is_large(value: Any) -> bool:
    if isinstance(value, jax.core.Tracer) or not isinstance(value, np.ndarray | jax.Array):
        return False
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):  # keys: they have no bytes of their own
        return False
    return value.nbytes >= LEAST_BYTES and getattr(value, "is_fully_addressable", True)


def _key(value: Any) -> Any:
    """What two constants have in common if they are one array: JAX makes a view of a NumPy array for each `jit`."""
    if not isinstance(value, np.ndarray):
        return id(value)
    return value.ctypes.data, value.shape, value.strides, str(value.dtype)


def _found(closed: Any) -> dict[Any, Any]:
    """Key -> large constant, each once, in the order of the program."""
    jaxpr, consts = _opened(closed)
    return {_key(value): value for value in consts if _is_large(value)} | _found_in_equations(jaxpr)


def _found_in_equations(jaxpr: Any) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for eqn in jaxpr.eqns:
        found |= _literals(eqn.invars) | _found_inside(eqn)
    return found | _literals(jaxpr.outvars)


def _literals(atoms: Sequence[Any]) -> dict[Any, Any]:
    return {_key(atom.val): atom.val for atom in atoms if isinstance(atom, Literal) and _is_large(atom.val)}


def _found_inside(eqn: Any) -> dict[Any, Any]:
    """Those of the programs inside an equation that can be bound again."""
    found: dict[Any, Any] = {}
    if eqn.primitive.name == "fused":  # its own constants are operands already
        return _found_in_equations(eqn.params["jaxpr"]) if eqn.params["rank"] == 0 else {}
    if eqn.primitive.name in RULES:
        for inner in _inner(eqn):
            found |= _found(inner)
    return found


def _opened(jaxpr: Any) -> tuple[Any, Sequence[Any]]:
    """A traced program and its constants; newer versions of JAX have one class for both."""
    return getattr(jaxpr, "jaxpr", jaxpr), getattr(jaxpr, "consts", ())


def _inner(eqn: Any) -> Iterator[Any]:
    for value in eqn.params.values():
        for one in value if isinstance(value, tuple | list) else (value,):
            if isinstance(one, Jaxpr | ClosedJaxpr):
                yield one


def _evaluate(closed: Any, args: Sequence[Any], known: Known) -> list[Any]:
    """The program on its arguments, with what is known in the place of its large constants."""
    jaxpr, consts = _opened(closed)

    def replaced(value: Any) -> Any:
        return known.get(_key(value), value) if _is_large(value) else value

    values = dict(zip(jaxpr.constvars, map(replaced, consts), strict=True))
    values |= zip(jaxpr.invars, args, strict=True)

    def read(atom: Any) -> Any:
        return replaced(atom.val) if isinstance(atom, Literal) else values[atom]

    for eqn in jaxpr.eqns:
        operands = [read(atom) for atom in eqn.invars]
        with eqn.ctx.manager:
            if _found_inside(eqn):
                results = RULES[eqn.primitive.name](functools.partial(_evaluate, known=known), eqn, operands)
            else:
                results = eqn.primitive.bind(*operands, **eqn.primitive.get_bind_params(eqn.params))
        values |= zip(eqn.outvars, results if eqn.primitive.multiple_results else [results], strict=True)
    return [read(atom) for atom in jaxpr.outvars]


# Equations with a program inside, bound again. What `evaluate` closes over, JAX makes an operand of theirs.

Evaluate = Callable[[Any, Sequence[Any]], list[Any]]


def _call(evaluate: Evaluate, eqn: Any, operands: list[Any]) -> list[Any]:
    """In line: nothing differentiates the program any more, and XLA takes calls in line as well."""
    (inner,) = _inner(eqn)
    return evaluate(inner, operands)


def _scan(evaluate: Evaluate, eqn: Any, operands: list[Any]) -> list[Any]:
    body = eqn.params["jaxpr"]
    # Constants, then the carry, then what it runs over: that has one axis more than the body sees, in and out.
    num_xs = sum(np.ndim(one) != aval.ndim for one, aval in zip(operands, body.in_avals, strict=True))
    num_carry = sum(var.aval.ndim == aval.ndim for var, aval in zip(eqn.outvars, body.out_avals, strict=True))
    num_consts = len(operands) - num_carry - num_xs
    consts, start, xs = (
        operands[:num_consts],
        operands[num_consts : -num_xs or None],
        operands[len(operands) - num_xs :],
    )

    def step(carry: list[Any], x: list[Any]) -> tuple[list[Any], list[Any]]:
        results = evaluate(body, [*consts, *carry, *x])
        return results[:num_carry], results[num_carry:]

    settings = {name: eqn.params[name] for name in ("length", "reverse", "unroll")}
    end, ys = jax.lax.scan(step, start, xs, **settings)
    return [*end, *ys]


def _while(evaluate: Evaluate, eqn: Any, operands: list[Any]) -> list[Any]:
    num_cond, num_body = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    of_cond, of_body = operands[:num_cond], operands[num_cond : num_cond + num_body]
    return jax.lax.while_loop(
        lambda carry: evaluate(eqn.params["cond_jaxpr"], [*of_cond, *carry])[0],
        lambda carry: evaluate(eqn.params["body_jaxpr"], [*of_body, *carry]),
        operands[num_cond + num_body :],
    )


def _cond(evaluate: Evaluate, eqn: Any, operands: list[Any]) -> list[Any]:
    index, *others = operands
    branches = [functools.partial(lambda branch, *args: evaluate(branch, args), one) for one in eqn.params["branches"]]
    return jax.lax.switch(index, branches, *others)


def _fused(evaluate: Evaluate, eqn: Any, operands: list[Any]) -> list[Any]:
    jaxpr = eqn.params["jaxpr"]
    num_consts = len(jaxpr.constvars)
    closed = ClosedJaxpr(jaxpr, operands[:num_consts])
    return fused(lambda *args: evaluate(closed, args))(*operands[num_consts:])


RULES: dict[str, Callable[[Evaluate, Any, list[Any]], list[Any]]] = {
    "jit": _call,
    "closed_call": _call,
    "custom_jvp_call": _call,
    "custom_vjp_call": _call,
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "fused": _fused,
}
