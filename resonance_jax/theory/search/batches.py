"""A growth rate at a list of points, by one compiled program for a fixed number of points."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from resonance_jax.engine.cell import Cell, trace
from resonance_jax.engine.programs import compile_chunk
from resonance_jax.numerics.estimate import Estimate

Rate = Callable[..., Any]  # named scalars -> scalar or Estimate, traceable


class _Point(NamedTuple):
    """A rate in the form of a point of a sweep; equal for the same rate, so that a second call does not trace."""

    rate: Rate

    def __call__(self, **scalars: Any) -> dict[str, Any]:
        value = self.rate(**scalars)
        value = value.rate if isinstance(value, Estimate) else value
        scalar = isinstance(value, jax.Array | np.ndarray | np.generic | float) and jnp.shape(value) == ()
        if not scalar or not jnp.issubdtype(jnp.result_type(value), jnp.floating):
            raise ValueError(f"rate must return one real number, got {value}; return a scalar or an Estimate")
        return {"rate": value}


def trace_rate(rate: Rate, names: tuple[str, ...]) -> Cell:
    """The rate as a traced cell; a second call with the same rate does not trace it again."""
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
    try:
        return trace(_Point(rate), tuple((name, jnp.result_type(float)) for name in names))
    except ValueError as error:
        if not isinstance(error.__cause__, jax.errors.ConcretizationTypeError):
            raise
        raise ValueError(
            f"rate needs a plain number for {' or '.join(names)}, in an `if` or as a shape; use jnp.where. "
            f"JAX says: {str(error.__cause__).splitlines()[0]}"
        ) from error.__cause__


def evaluate(cell: Cell, points: Mapping[str, np.ndarray], *, chunk: int) -> np.ndarray:
    """The rate at each point, (n,), computed `chunk` points at a time; the last ones are padded.

    A chunk takes as long as its longest period, so keep points of similar periods together.
    """
    program = compile_chunk(cell, (0,) * len(points), (chunk,), tuple(jax.local_devices()[:1]))
    num_points = len(next(iter(points.values())))
    outputs = []
    for start in range(0, num_points, chunk):
        parts = [points[name][start : start + chunk].astype(dtype) for name, dtype in cell.arguments]
        outputs += program(*(np.pad(part, (0, chunk - len(part)), mode="edge") for part in parts))
    return np.concatenate([np.zeros(0), *jax.device_get(outputs)])[:num_points].astype(np.float64)
