"""A function of named scalars at a list of points, as one compiled program of a fixed shape."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun

from resonance_jax import checks
from resonance_jax.numerics.estimate import Estimate

Rate = Callable[..., Any]  # named scalars -> scalar or Estimate, traceable


class Program(NamedTuple):
    """A rate that was traced once."""

    run: Callable[..., Any]  # an array (chunk,) for each name -> (chunk,); compiled on its first call
    ranges: list[tuple[str, checks.Range]]  # what the parts of the rate expect of its arguments


def program_of(rate: Rate, names: tuple[str, ...]) -> Program:
    """The rate over many points; a second call with the same rate does not trace or compile it again."""
    if not callable(rate):
        raise ValueError(f"rate must be a function of named scalars, got {rate!r}; pass the function, not its result")
    try:
        hash(rate)
    except TypeError as error:
        raise ValueError(f"rate must be hashable, got one with an {error}; wrap it in a function") from None
    try:
        inspect.signature(rate).bind(**dict.fromkeys(names))
    except TypeError as error:
        raise ValueError(
            f"rate must be a function of {' and '.join(names)}, got one of {inspect.signature(rate)}: {error}; "
            "call the ranges as the rate calls its arguments"
        ) from None
    return _trace(rate, names, jnp.result_type(float))


@functools.lru_cache(maxsize=64)
def _trace(rate: Rate, names: tuple[str, ...], dtype: Any) -> Program:
    ranges: list[tuple[str, checks.Range]] = []

    def one(*values: Any) -> Any:
        scalars = dict(zip(names, values, strict=True))
        with checks.watching(scalars) as found:
            value = rate(**scalars)
        value = value.rate if isinstance(value, Estimate) else value
        ranges.extend(found)
        scalar = isinstance(value, jax.Array | np.ndarray | np.generic | float) and jnp.shape(value) == ()
        if not scalar or not jnp.issubdtype(jnp.result_type(value), jnp.floating):
            raise ValueError(f"rate must return one real number, got {value}; return a scalar or an Estimate")
        return value

    try:
        traced = jax.make_jaxpr(one)(*(jax.ShapeDtypeStruct((), dtype) for _ in names))
    except jax.errors.ConcretizationTypeError as error:
        raise ValueError(
            f"rate needs a plain number for {' or '.join(names)}, in an `if` or as a shape; use jnp.where. "
            f"JAX says: {str(error).splitlines()[0]}"
        ) from error
    return Program(jax.jit(jax.vmap(lambda *values: jaxpr_as_fun(traced)(*values)[0])), ranges)


def evaluate(program: Program, points: Mapping[str, np.ndarray], *, chunk: int) -> np.ndarray:
    """The rate at each point, (n,), computed `chunk` points at a time.

    A chunk takes as long as its longest period, so keep points of like periods together.
    """
    dtype = jnp.result_type(float)
    num_points = len(next(iter(points.values())))
    outputs = []
    for start in range(0, num_points, chunk):
        parts = [column[start : start + chunk].astype(dtype) for column in points.values()]
        outputs.append(program.run(*(np.pad(part, (0, chunk - len(part)), mode="edge") for part in parts)))
    return np.concatenate([np.zeros(0), *jax.device_get(outputs)])[:num_points].astype(np.float64)
