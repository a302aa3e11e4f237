"""Large constants of a traced program, taken out of it to become arguments.

What a function closes over is a constant of its traced program. Compiled as one, an array is printed into the program,
read by every pass of the compiler, and stored once more with each executable.

JAX keeps constants in three places: with the whole program; with each `jit` inside it, however deep in loops and
branches; and in the equations themselves, where `jax_use_simplified_jaxpr_constants` is set. In the first place they
only need another value. In the others the equations around them are bound again, so that JAX hands the new arguments
down. Inside primitives without a rule here, constants of a `jit` stay constants.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxpr_as_fun

from resonance_jax.fused import fused

LEAST_BYTES = 4096  # smaller constants cost a compiler nothing, and it can compute with them

Known = Mapping[Any, Any]  # key of a constant -> what stands for it
Opened = tuple[Any, Sequence[Any]]  # a traced program and its constants


def take_out(closed: ClosedJaxpr) -> tuple[Callable[..., list[Any]], list[Any], list[Any]]:
    """A program as a function of its large constants.

    Args:
        closed: from `jax.make_jaxpr`.

    Returns:
        A function of the large constants and then of the arguments of the program; the large constants; and the arrays
        that stay constants.

    >>> closed = jax.make_jaxpr(lambda x: x + np.ones(5000, np.float32))(1.0)
    >>> program, (ones,), _ = take_out(closed)
    >>> program(3 * ones, 1.0)[0][:2].tolist()
    [4.0, 4.0]
    """
    opened = _opened(closed)
    large = {_key(value): value for value in _constants(opened, _within_reach) if _is_large(value)}
    every = {_key(value): value for value in _constants(opened, _inner)}
    others = [value for key, value in every.items() if key not in large]
    if not large:
        return jaxpr_as_fun(closed), [], others

    def run(*args: Any) -> list[Any]:
        known = dict(zip(large, args[: len(large)], strict=True))
        return _evaluate(opened, args[len(large) :], known)

    return run, list(large.values()), others


def _constants(opened: Opened, inner: Callable[[Any], Iterator[Opened]]) -> Iterator[Any]:
    """All arrays among the constants, in the order of the program; some more than once."""
    jaxpr, consts = opened
    literals = (atom.val for eqn in jaxpr.eqns for atom in eqn.invars if isinstance(atom, Literal))
    returned = (atom.val for atom in jaxpr.outvars if isinstance(atom, Literal))
    yield from filter(_is_array, itertools.chain(consts, literals, returned))
    for eqn in jaxpr.eqns:
        for each in inner(eqn):
            yield from _constants(each, inner)


def _is_array(value: Any) -> bool:
    if isinstance(value, jax.core.Tracer):  # pyright: ignore[reportAttributeAccessIssue]
        return False
    return isinstance(value, np.ndarray | jax.Array) and value.ndim > 0


def _is_large(value: Any) -> bool:
    """Keys are not: they have no bytes of their own. Nor is an array that other processes have a part of."""
    if not _is_array(value) or is_key(value):
        return False
    return value.nbytes >= LEAST_BYTES and getattr(value, "is_fully_addressable", True)


def is_key(value: Any) -> bool:
    """Whether an array holds random keys."""
    return jnp.issubdtype(value.dtype, jax.dtypes.prng_key)


def _key(value: Any) -> Any:
    """What two constants have in common if they are one array: JAX makes a view of a NumPy array for each `jit`."""
    if not isinstance(value, np.ndarray):
        return id(value)
    return value.ctypes.data, value.shape, value.strides, str(value.dtype)


def _opened(jaxpr: Any) -> Opened:
    """Newer versions of JAX have one class for a program with and without its constants."""
    return getattr(jaxpr, "jaxpr", jaxpr), getattr(jaxpr, "consts", ())


def _inner(eqn: Any) -> Iterator[Opened]:
    """The programs inside an equation."""
    for value in eqn.params.values():
        for one in value if isinstance(value, tuple | list) else (value,):
            if isinstance(one, Jaxpr | ClosedJaxpr):
                jaxpr, consts = _opened(one)
                yield jaxpr, () if eqn.primitive.name == "fused" else consts  # its own constants are operands


def _within_reach(eqn: Any) -> Iterator[Opened]:
    """Those inside an equation that can be bound again."""
    if eqn.primitive.name in RULES and not eqn.params.get("rank"):  # `fused` under `vmap` stays as it is
        yield from _inner(eqn)


def _evaluate(opened: Opened, args: Sequence[Any], known: Known) -> list[Any]:
    """The program on its arguments, with what is known in the place of its large constants."""
    jaxpr, consts = opened

    def replaced(value: Any) -> Any:
        return known.get(_key(value), value) if _is_large(value) else value

    values = dict(zip(jaxpr.constvars, map(replaced, consts), strict=True))
    values |= zip(jaxpr.invars, args, strict=True)

    def read(atom: Any) -> Any:
        return replaced(atom.val) if isinstance(atom, Literal) else values[atom]

    for eqn in jaxpr.eqns:
        operands = [read(atom) for atom in eqn.invars]
        with eqn.ctx.manager:
            if any(_is_large(value) for each in _within_reach(eqn) for value in _constants(each, _within_reach)):
                results = RULES[eqn.primitive.name](functools.partial(_evaluate, known=known), eqn, operands)
            else:
                results = eqn.primitive.bind(*operands, **eqn.primitive.get_bind_params(eqn.params))
        values |= zip(eqn.outvars, results if eqn.primitive.multiple_results else [results], strict=True)
    return [read(atom) for atom in jaxpr.outvars]


# Equations with a program inside, bound again. What `evaluate` closes over, JAX makes an operand of theirs.

Evaluate = Callable[[Opened, Sequence[Any]], list[Any]]


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
    consts, start = operands[:num_consts], operands[num_consts : num_consts + num_carry]
    xs = operands[num_consts + num_carry :]

    def step(carry: list[Any], x: list[Any]) -> tuple[list[Any], list[Any]]:
        results = evaluate(_opened(body), [*consts, *carry, *x])
        return results[:num_carry], results[num_carry:]

    settings = {name: eqn.params[name] for name in ("length", "reverse", "unroll")}
    end, ys = jax.lax.scan(step, start, xs, **settings)
    return [*end, *ys]


def _while(evaluate: Evaluate, eqn: Any, operands: list[Any]) -> list[Any]:
    num_cond, num_body = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    of_cond, of_body = operands[:num_cond], operands[num_cond : num_cond + num_body]
    cond, body = _opened(eqn.params["cond_jaxpr"]), _opened(eqn.params["body_jaxpr"])
    return jax.lax.while_loop(
        lambda carry: evaluate(cond, [*of_cond, *carry])[0],
        lambda carry: evaluate(body, [*of_body, *carry]),
        operands[num_cond + num_body :],
    )


def _cond(evaluate: Evaluate, eqn: Any, operands: list[Any]) -> list[Any]:
    index, *others = operands
    branches = [functools.partial(lambda branch, *args: evaluate(branch, args), each) for each in _inner(eqn)]
    return jax.lax.switch(index, branches, *others)


def _checkpoint(evaluate: Evaluate, eqn: Any, operands: list[Any]) -> list[Any]:
    """Itself with more operands: in line, XLA would compute once what is to be computed again."""
    (body,) = _inner(eqn)
    first = jax.make_jaxpr(lambda *args: evaluate(body, args))(*operands)
    operands = [*first.consts, *operands]
    num_consts = len(first.consts)

    def without_constants(*args: Any) -> list[Any]:
        return jaxpr_as_fun(ClosedJaxpr(first.jaxpr, args[:num_consts]))(*args[num_consts:])

    inner = jax.make_jaxpr(without_constants)(*operands).jaxpr
    return eqn.primitive.bind(*operands, **(eqn.params | {"jaxpr": inner}))


def _fused(evaluate: Evaluate, eqn: Any, operands: list[Any]) -> list[Any]:
    jaxpr = eqn.params["jaxpr"]
    num_consts = len(jaxpr.constvars)
    return fused(lambda *args: evaluate((jaxpr, operands[:num_consts]), args))(*operands[num_consts:])


RULES: dict[str, Callable[[Evaluate, Any, list[Any]], list[Any]]] = {
    "jit": _call,
    "closed_call": _call,
    "custom_jvp_call": _call,
    "custom_vjp_call": _call,
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "remat2": _checkpoint,
    "fused": _fused,
}
