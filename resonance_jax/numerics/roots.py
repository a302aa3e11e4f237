"""Square roots that are flat at 0, inside a function that others wrote.

The derivative of sqrt at 0 is infinite, and times a perturbation of 0 it is NaN. Adam divides by sqrt(v) + eps, and v
is exactly 0 for a weight that never had a gradient; the right derivative there is that of m / eps. Adafactor multiplies
by v^(-1/2) with v = 1e-30 for such a weight, where the slope overflows float32.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from resonance_jax.numerics import logscale

CALLS = {"jit", "pjit", "closed_call"}


def with_flat_roots(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, in whose derivatives the slope of sqrt at 0 is 0.

    It is traced, and its square roots and powers are replaced, also those inside `jit` and `lax.cond`. Those inside
    loops, and in functions with a derivative of their own, stay as they are.

    >>> import jax.numpy as jnp
    >>> jax.grad(with_flat_roots(lambda v: v / (jnp.sqrt(v) + 0.1)))(0.0).item()
    10.0
    """

    def flat(*args: Any, **keywords: Any) -> Any:
        leaves, tree = jax.tree.flatten((args, keywords))

        def on_leaves(*leaves: Any) -> Any:
            args, keywords = tree.unflatten(leaves)
            return function(*args, **keywords)

        closed, shape = jax.make_jaxpr(on_leaves, return_shape=True)(*leaves)
        return jax.tree.unflatten(jax.tree.structure(shape), _evaluate(closed, leaves))

    return flat


def _evaluate(program: Any, args: Sequence[Any]) -> list[Any]:
    jaxpr, consts = getattr(program, "jaxpr", program), getattr(program, "consts", ())
    values = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for eqn in jaxpr.eqns:
        operands = [read(atom) for atom in eqn.invars]
        with eqn.ctx.manager:
            results = _results(eqn, operands)
        values |= zip(eqn.outvars, results, strict=True)
    return [read(atom) for atom in jaxpr.outvars]


def _results(eqn: Any, operands: list[Any]) -> Sequence[Any]:
    name = eqn.primitive.name
    if name == "sqrt" and jnp.issubdtype(eqn.invars[0].aval.dtype, jnp.floating):
        return [logscale.root(operands[0], 0.0)]
    if name == "pow" and all(jnp.issubdtype(atom.aval.dtype, jnp.floating) for atom in eqn.invars):
        return [_power(*operands)]
    if name in CALLS:
        (inner,) = (value for value in eqn.params.values() if isinstance(value, Jaxpr | ClosedJaxpr))
        return _evaluate(inner, operands)
    if name == "cond":
        branches = [lambda *args, branch=branch: _evaluate(branch, args) for branch in eqn.params["branches"]]
        return jax.lax.switch(operands[0], branches, *operands[1:])
    results = eqn.primitive.bind(*operands, **eqn.primitive.get_bind_params(eqn.params))
    return results if eqn.primitive.multiple_results else [results]


@jax.custom_jvp
def _power(x: Array, y: Array) -> Array:
    return jax.lax.pow(x, y)


@_power.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    """The perturbation is divided by x before it meets a large number, so that 0 stays 0; flat where x is 0."""
    (x, y), (of_x, of_y) = primals, tangents
    value = _power(x, y)
    along_x = jnp.where(x != 0, y * value * (of_x / jnp.where(x != 0, x, 1)), jnp.where(y == 1, of_x, 0))
    along_y = jnp.where(x > 0, value * jnp.log(jnp.where(x > 0, x, 1)) * of_y, 0)
    return value, along_x + along_y
