"""One cell of a grid: the point, traced on scalars."""

import functools
import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from resonance_jax import checks
from resonance_jax.engine.arrays import SharedArray, digest_of, share
from resonance_jax.engine.axes import Point
from resonance_jax.engine.constants import is_key, take_out
from resonance_jax.numerics.labelled import Labelled


class Static(NamedTuple):
    """An argument that the point gets as a plain Python value."""

    name: str
    value: Any
    text: str  # what `repr` says: True and 1 are equal, and two programs all the same


class Cell(NamedTuple):
    """The traced program of one cell."""

    arguments: tuple[tuple[str, Any], ...]  # name and dtype, in the order of the axes
    arrays: tuple[SharedArray, ...]  # the large arrays that the point closes over
    constants: tuple[Any, ...]  # the small ones, which are part of the program
    program: Callable[..., list[Any]]  # large arrays, then scalars -> outputs
    outputs: dict[str, jax.ShapeDtypeStruct]
    labels: dict[str, dict[str, np.ndarray]]  # output -> its own dimensions and their coordinates, where it has names
    ranges: list[tuple[str, checks.Range]]  # what the point's parts expect of its arguments

    def __hash__(self) -> int:
        return id(self.program)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.program is other.program


def trace(point: Point, arguments: tuple[tuple[str, Any], ...], static: tuple[Static, ...] = ()) -> Cell:
    """Trace the point once, on scalars. Everything later works on the traced program, whatever the shape of the grid.

    Args:
        point: function of named scalars.
        arguments: name and dtype of each scalar.
        static: arguments that stay plain values.

    Raises:
        ValueError: a point that does not return a dict of arrays, or needs the value of a scalar.
    """
    return _trace(point, arguments, static, jnp.result_type(float))


@functools.lru_cache(maxsize=256)
def _trace(point: Point, arguments: tuple[tuple[str, Any], ...], static: tuple[Static, ...], precision: Any) -> Cell:
    """The working precision is part of the key: another one is another program."""

    def checked(**scalars: Any) -> dict[str, Any]:
        with checks.watching(scalars) as found:
            outputs = point(**scalars, **{each.name: each.value for each in static})
        ranges.extend(found)
        if not isinstance(outputs, dict) or not outputs:
            raise ValueError(f"point must return a dict of arrays, got {outputs!r}; return e.g. {{'loss': loss}}")
        outputs = {name: each for parts in map(_parts, outputs.items()) for name, each in parts.items()}
        labels.update({name: _labels(name, each) for name, each in outputs.items() if isinstance(each, Labelled)})
        outputs = {name: each.values if isinstance(each, Labelled) else each for name, each in outputs.items()}
        for name, output in outputs.items():
            if not isinstance(name, str) or not isinstance(output, jax.Array | np.ndarray | np.generic | int | float):
                raise ValueError(
                    f"point must return a dict of arrays, got {type(output).__name__} under {name!r}; "
                    "return scalars or arrays of fixed shape under string names"
                )
        return {name: jnp.asarray(output) for name, output in outputs.items()}

    ranges: list[tuple[str, checks.Range]] = []
    labels: dict[str, dict[str, np.ndarray]] = {}
    scalars = {name: jax.ShapeDtypeStruct((), dtype) for name, dtype in arguments}
    try:
        jaxpr, outputs = jax.make_jaxpr(checked, return_shape=True)(**scalars)
    except jax.errors.ConcretizationTypeError as error:
        raise ValueError(
            "a value of an axis is needed as a plain number: in an `if`, as a shape, or as a hyperparameter that its "
            f"optimizer cannot trace. The axes are {', '.join(scalars)}. Use jnp.where, or take it off the axes and "
            f"sweep once for each of its values. JAX says: {str(error).splitlines()[0]}"
        ) from error
    run, large, small = take_out(jaxpr)
    in_order = sorted(scalars)  # the traced program takes its arguments, as it gives its outputs, by sorted name

    def program(*values: Any) -> list[Any]:
        by_name = dict(zip(scalars, values[len(large) :], strict=True))
        return run(*values[: len(large)], *(by_name[name] for name in in_order))

    outputs = dict(sorted(outputs.items()))
    return Cell(arguments, tuple(map(share, large)), tuple(small), program, outputs, labels, ranges)


def _parts(output: tuple[Any, Any]) -> dict[Any, Any]:
    """A named tuple as one output for each field: the first under the name itself, the others behind it."""
    name, value = output
    fields = getattr(value, "_fields", ())
    return {name if i == 0 else f"{name}_{field}": value[i] for i, field in enumerate(fields)} or {name: value}


def _labels(name: Any, output: Labelled) -> dict[str, np.ndarray]:
    """The dimensions of an output and their coordinates; ValueError unless there is one for each axis."""
    coordinates = dict(zip(output.dims, map(np.asarray, output.coords), strict=False))
    named = tuple(len(each) for each in coordinates.values())
    if len(output.dims) != len(output.coords) or named != np.shape(output.values):
        raise ValueError(
            f"the Labelled output {name!r} must have a name and a coordinate for each axis of its values, of shape "
            f"{np.shape(output.values)}, got {output.dims} with coordinates of the lengths "
            f"{tuple(map(len, output.coords))}; give as many numbers as the axis has entries"
        )
    return coordinates


@functools.lru_cache(maxsize=256)
def digest(cell: Cell) -> str:
    """SHA-256 of what a cell computes, the same in every process and on every device.

    Of the program as it is lowered for one cell on a CPU, and of the arrays that the point closes over: it changes with
    the point, with all that it calls, and with these arrays, and not with a comment.
    """
    arrays = [array.like() for array in cell.arrays]
    scalars = [jax.ShapeDtypeStruct((), dtype) for _, dtype in cell.arguments]
    text = jax.jit(cell.program).trace(*arrays, *scalars).lower(lowering_platforms=("cpu",)).as_text()
    # Small constants are in the text, but not where `jax_use_simplified_jaxpr_constants` is set.
    small = [digest_of(np.asarray(jax.random.key_data(each) if is_key(each) else each)) for each in cell.constants]
    return hashlib.sha256("".join([text, *(array.digest for array in cell.arrays), *small]).encode()).hexdigest()
