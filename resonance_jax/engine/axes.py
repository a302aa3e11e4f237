"""The point and the axes of a sweep, checked on the host before anything is traced."""

import enum
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Point = Callable[..., dict[str, Any]]
Values = Any  # 1-D: numbers as an array or a list, a list of hashables, or an xarray.DataArray


class Axis(NamedTuple):
    """The values of one argument of the point."""

    name: str  # of the argument
    dim: str  # dimension of the result that they lie along; axes that share one are zipped
    labels: np.ndarray  # the coordinate: the numbers as they were given, or a label for each static value
    static: tuple[Any, ...] | None  # the plain values that the point gets, one program for each; None for numbers

    @property
    def numbers(self) -> np.ndarray:
        """The values in the working precision."""
        return self.labels.astype(jnp.result_type(float) if self.labels.dtype.kind == "f" else jnp.result_type(int))


def check_axes(point: Point, axes: Mapping[str, Values]) -> tuple[Axis, ...]:
    """ValueError unless the point is a function of these axes, and they fit each other."""
    if not callable(point):
        raise ValueError(f"point must be a function of named scalars, got {point!r}; pass the function, not its result")
    if not isinstance(axes, Mapping) or not axes:
        raise ValueError(
            f"axes must be a dict of at least one name and its values, got {axes!r}; name an argument of point"
        )
    try:
        hash(point)
    except TypeError:
        raise ValueError(f"point must be hashable, got {point!r}; wrap it in a function") from None
    parameters = inspect.signature(point).parameters.values()
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for name in axes:
        if name not in named and not takes_any:
            raise ValueError(f"axis {name!r} is not a parameter of point, which has {named}; rename or remove the axis")
    for p in parameters:
        if p.name in named and p.default is p.empty and p.name not in axes:
            raise ValueError(
                f"parameter {p.name!r} of point has no axis and no default; add an axis or a default for it"
            )
    checked = tuple(check_axis(name, values) for name, values in axes.items())
    _check_dims(checked)
    return checked


def check_axis(name: str, values: Values) -> Axis:
    """An axis of numbers or of static values.

    >>> check_axis("optimizer", ["sgd", None]).labels.tolist()
    ['sgd', 'None']
    >>> check_axis("mu", [0.9, 0.99]).static is None
    True
    """
    dim = name
    if hasattr(values, "dims") and hasattr(values, "values"):  # an xarray.DataArray
        if len(values.dims) == 1:
            dim = str(values.dims[0])
        values = values.values
    items = _items(values)
    if items is not None:
        labels = _labels(name, items)
        # On a zipped axis a value may occur twice, but different values must have different labels.
        seen = labels.tolist() if dim == name else dict(zip(items, labels.tolist(), strict=True)).values()
        _check_unique(name, seen)
        return Axis(name, dim, labels, tuple(items))
    numbers = np.asarray(values)
    _check_side(name, numbers.shape)
    _check_numbers(name, numbers)
    return Axis(name, dim, numbers, None)


def _items(values: Values) -> list[Any] | None:
    """The values of a static axis as plain Python values; None if they are numbers, or not a list."""
    if isinstance(values, np.ndarray | np.generic | jax.Array):
        return values.tolist() if values.ndim == 1 and values.dtype.kind not in "iufcmM" else None
    if isinstance(values, str | bytes) or not isinstance(values, Sequence) or isinstance(values, range):
        return None
    items = [item.item() if isinstance(item, np.str_ | np.bool_) else item for item in values]
    return items if any(_is_static(item) for item in items) else None


def _is_static(item: Any) -> bool:
    if isinstance(item, bool | enum.Enum):
        return True
    return not isinstance(item, int | float | complex | list | np.ndarray | np.generic | jax.Array)


def _labels(name: str, items: list[Any]) -> np.ndarray:
    _check_side(name, (len(items),))
    for item in items:
        try:
            hash(item)
        except TypeError:
            raise ValueError(
                f"axis {name!r} must hold numbers, or hashable values such as strings, bools, None, tuples and "
                f"functions; got {type(item).__name__}; take a tuple, or a function that makes it"
            ) from None
    if all(isinstance(item, bool) for item in items):
        return np.array(items)
    return np.array([_label(item) for item in items])


def _check_unique(name: str, labels: Iterable[Any]) -> None:
    twice = [label for label, times in Counter(labels).items() if times > 1]
    if twice:
        raise ValueError(
            f"axis {name!r} has more than one value with the label {twice[0]!r}; remove one, or give functions names "
            "of their own with def"
        )


def _label(item: Any) -> str:
    """A string itself; the name of a function, a class or a member of an enum; for other values, their `repr`."""
    if isinstance(item, enum.Enum):
        return item.name
    return item if isinstance(item, str) else getattr(item, "__name__", repr(item))


def _check_side(name: str, shape: tuple[int, ...]) -> None:
    if len(shape) != 1:
        raise ValueError(f"axis {name!r} must be 1-D, got shape {shape}; wrap a single value as [value]")
    if shape[0] == 0:
        raise ValueError(f"axis {name!r} must have at least one value, got none; remove it or give it values")


def _check_numbers(name: str, numbers: np.ndarray) -> None:
    if numbers.dtype.kind not in "iuf":
        raise ValueError(
            f"axis {name!r} must hold real numbers, or hashable values such as strings, got dtype {numbers.dtype}; "
            "index other things by integers"
        )
    if numbers.dtype.kind == "f":
        with np.errstate(over="ignore"):
            finite = np.isfinite(numbers.astype(jnp.result_type(float)))
        if not finite.all():
            raise ValueError(
                f"axis {name!r} must be finite in {jnp.result_type(float)}, got {numbers[~finite][0]}; drop that value"
            )
    else:
        info = np.iinfo(jnp.result_type(int))
        outside = (numbers < info.min) | (numbers > info.max)
        if outside.any():
            raise ValueError(f"axis {name!r} must fit into {info.dtype}, got {numbers[outside][0]}; use float values")


def _check_dims(axes: tuple[Axis, ...]) -> None:
    """Axes that share a dimension have the same length, and no dimension has the name of an axis along another one."""
    first: dict[str, Axis] = {}
    dim_of = {axis.name: axis.dim for axis in axes}
    for axis in axes:
        other = first.setdefault(axis.dim, axis)
        if len(axis.labels) != len(other.labels):
            raise ValueError(
                f"axes {other.name!r} and {axis.name!r} share the dimension {axis.dim!r} and must be of one length, "
                f"got {len(other.labels)} and {len(axis.labels)}; give each as many values"
            )
        if dim_of.get(axis.dim, axis.dim) != axis.dim:
            raise ValueError(
                f"the dimension {axis.dim!r} of axis {axis.name!r} is the name of an axis along "
                f"{dim_of[axis.dim]!r}; rename the dimension"
            )
