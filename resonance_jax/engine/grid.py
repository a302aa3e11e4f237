"""All cells of a sweep: a point on the product of its axes, traced and checked."""

import hashlib
import itertools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from resonance_jax.engine.axes import Axis, Point, Values, check_axes
from resonance_jax.engine.cell import Cell, Static, digest, trace
from resonance_jax.engine.shapes import Index, Shape, chunk_shape


class Numbers(NamedTuple):
    """The numbers of an axis as the programs take them."""

    values: np.ndarray  # in the working precision
    dim: int  # dimension of the grid that they lie along
    mapped: int | None  # dimension of a program; None where its dimension is static: one number for a whole chunk


class Grid(NamedTuple):
    """A point on the product of its dimensions, nothing compiled yet.

    A dimension with a static axis is walked along, program by program; the others are computed a chunk at a time.
    """

    axes: tuple[Axis, ...]
    dims: tuple[str, ...]  # in the order of the axes, those that share one counted once
    shape: Shape
    cells: dict[tuple[int, ...], Cell]  # position along the static dimensions -> what is computed there
    output_dims: dict[str, tuple[str, ...]]  # of each output, the dimensions of the grid first
    labels: dict[str, np.ndarray]  # dimension of an output that has a coordinate -> the coordinate
    static: tuple[bool, ...]  # which dimensions are walked along
    numbers: tuple[Numbers, ...]  # of the axes that are not static, in their order

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def whole(self) -> Index:
        return tuple(slice(0, n) for n in self.shape)

    @property
    def outputs(self) -> dict[str, jax.ShapeDtypeStruct]:
        """Shape and dtype of what a cell returns, the same for all."""
        return next(iter(self.cells.values())).outputs

    @property
    def coordinates(self) -> dict[str, tuple[str, np.ndarray]]:
        """Name of an axis, or of a labelled dimension of an output -> its dimension and its labels."""
        axes = {axis.name: (axis.dim, axis.labels) for axis in self.axes}
        return axes | {dim: (dim, labels) for dim, labels in self.labels.items()}

    @property
    def mapped(self) -> tuple[int | None, ...]:
        """Which dimension of a program each argument varies along."""
        return tuple(each.mapped for each in self.numbers)

    def inner(self, shape: tuple[Any, ...]) -> tuple[Any, ...]:
        """Of a shape or an index, what concerns a program: all but the static dimensions."""
        return tuple(n for n, static in zip(shape, self.static, strict=True) if not static)

    def outer(self, shape: Shape) -> Shape:
        """The shape of a chunk in the grid: one along the static dimensions."""
        sides = iter(shape)
        return tuple(1 if static else next(sides) for static in self.static)

    def chunk_shape(self, limit: int) -> Shape:
        """Shape of a chunk of at most `limit` cells."""
        return self.outer(chunk_shape(self.inner(self.shape), limit))

    def key(self, index: Index) -> tuple[int, ...]:
        """Position of a chunk along the static dimensions."""
        return tuple(s.start for s, static in zip(index, self.static, strict=True) if static)

    def digest(self) -> str:
        """SHA-256 of what the cells compute."""
        each = [digest(cell) for cell in self.cells.values()]
        return each[0] if len(each) == 1 else hashlib.sha256("".join(each).encode()).hexdigest()


def prepare(point: Point, axes: Mapping[str, Values]) -> Grid:
    """Check the axes against the point and the ranges of its parts, and trace it once for each static value.

    Args:
        point: function of named scalars that returns a dict of arrays.
        axes: name of an argument -> its values.

    Raises:
        ValueError: axes that do not fit the point or each other, or a point that does not return the same dict of
            arrays for all static values.
    """
    checked = check_axes(point, axes)
    sizes = {axis.dim: len(axis.labels) for axis in checked}
    static_axes = [axis for axis in checked if axis.static is not None]
    dynamic = [(axis, axis.numbers) for axis in checked if axis.static is None]
    arguments = tuple((axis.name, values.dtype) for axis, values in dynamic)
    static_dims = [dim for dim in sizes if any(axis.dim == dim for axis in static_axes)]
    cells: dict[tuple[int, ...], Cell] = {}
    for position in itertools.product(*(range(sizes[dim]) for dim in static_dims)):
        values = [(axis.name, (axis.static or ())[position[static_dims.index(axis.dim)]]) for axis in static_axes]
        cells[position] = trace(point, arguments, tuple(Static(name, value, repr(value)) for name, value in values))
    _check_agreement(static_axes, static_dims, cells)
    labels = {axis.name: axis.labels for axis in checked}
    dim_of = {axis.name: axis.dim for axis in checked}
    for position, cell in cells.items():
        here = dict(zip(static_dims, position, strict=True))
        for name, expected in cell.ranges:
            expected.check(labels[name][here.get(dim_of[name], slice(None))])

    first = next(iter(cells.values()))
    outputs = first.outputs
    own = {
        name: tuple(first.labels.get(name) or (f"{name}_{i}" for i in range(len(out.shape))))
        for name, out in outputs.items()
    }
    names = {*labels, *sizes}
    clash = (set(outputs) & names) | ({d for each in own.values() for d in each} & {*names, *outputs})
    if clash:
        raise ValueError(f"outputs, their dimensions and axes share the names {sorted(clash)}; rename the outputs")
    own_labels = _labels_of(first)
    output_dims = {name: (*sizes, *each) for name, each in own.items()}
    dims = tuple(sizes)
    mapped = [dim for dim in dims if dim not in static_dims]
    numbers = [
        Numbers(values, dims.index(axis.dim), mapped.index(axis.dim) if axis.dim in mapped else None)
        for axis, values in dynamic
    ]
    static = tuple(dim in static_dims for dim in dims)
    return Grid(checked, dims, tuple(sizes.values()), cells, output_dims, own_labels, static, tuple(numbers))


def _labels_of(cell: Cell) -> dict[str, np.ndarray]:
    """Coordinates of the labelled dimensions; ValueError where two outputs have different ones along one dimension."""
    found: dict[str, tuple[str, np.ndarray]] = {}
    for name, coordinates in cell.labels.items():
        for dim, labels in coordinates.items():
            other, theirs = found.setdefault(dim, (name, labels))
            if not np.array_equal(labels, theirs):
                raise ValueError(
                    f"outputs {other!r} and {name!r} share the dimension {dim!r} and must have the same coordinate, "
                    f"got {_text(theirs)} and {_text(labels)}; give one of the dimensions another name"
                )
    return {dim: labels for dim, (_, labels) in found.items()}


def _text(labels: np.ndarray) -> str:
    return f"{len(labels)} values from {labels[0]:g} to {labels[-1]:g}" if len(labels) else "no values"


def _check_agreement(static_axes: list[Axis], static_dims: list[str], cells: Mapping[tuple[int, ...], Cell]) -> None:
    """ValueError unless the outputs have the same names, shapes and dtypes for all static values."""

    def at(position: tuple[int, ...]) -> str:
        labels = ((axis.name, axis.labels[position[static_dims.index(axis.dim)]].item()) for axis in static_axes)
        return ", ".join(f"{name}={label!r}" for name, label in labels)

    def described(cell: Cell, name: str) -> str:
        out = cell.outputs.get(name)
        along = ", ".join(f"{dim} ({_text(labels)})" for dim, labels in cell.labels.get(name, {}).items())
        return "nothing" if out is None else f"{out.dtype} of shape {out.shape}{along and f' along {along}'}"

    (first, reference), *others = cells.items()
    for position, cell in others:
        for name in dict.fromkeys([*reference.outputs, *cell.outputs]):
            one, other = described(reference, name), described(cell, name)
            ours, theirs = reference.labels.get(name, {}), cell.labels.get(name, {})
            if one != other or not all(map(np.array_equal, ours.values(), theirs.values())):
                raise ValueError(
                    f"outputs must agree between static values, got {one} under {name!r} for {at(first)} and {other} "
                    f"for {at(position)}; return the same names, shapes and dtypes, or sweep once for each value"
                )
