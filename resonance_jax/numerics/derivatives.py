"""Derivatives that do not exist, or that JAX cannot compute, raise an error instead of returning a wrong number."""

import functools
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

FORWARD_ONLY = (
    "theory has a loop whose length depends on the period, and no derivative backwards through it; take jax.jvp or "
    "jax.jacfwd, a plain rk4_steps for growth_rate or monodromy, or a difference quotient"
)
NO_SLOPE = (
    "a rate over a whole number of steps has no derivative in the frequency or the interval, which it rounds to whole "
    "steps; take growth_rate or mean_growth with discrete=False, or a difference quotient"
)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def refused(value: Any, message: str) -> Any:
    """The value itself; differentiating it raises a ValueError.

    >>> float(refused(2.0, "a rounded number has no slope"))
    2.0
    """
    return value


@refused.defjvp
def _(message: str, primals: Any, tangents: Any) -> Any:
    raise ValueError(message)


def forward_only(tree: Any, message: str) -> Any:
    """The tree itself; `jax.jvp` and `jax.jacfwd` work, `jax.grad` and other reverse modes raise a ValueError.

    >>> jax.jacfwd(lambda x: forward_only(x, "only forward"))(1.0).item()
    1.0
    """
    return jax.tree.map(lambda leaf: _forward_only.bind(leaf, message=message), tree)


def _refuse(cotangent: Any, value: Any, *, message: str) -> Any:
    raise ValueError(message)


_forward_only = Primitive("forward_only")
_forward_only.def_impl(lambda value, *, message: value)
_forward_only.def_abstract_eval(lambda value, *, message: value)
batching.defvectorized(_forward_only)
ad.deflinear2(_forward_only, _refuse)
mlir.register_lowering(_forward_only, lambda ctx, value, *, message: [value])
