"""Rows of a stream as one array of finite numbers, with the names of its columns."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from resonance_jax import checks

SINGULAR = 1e-10  # share of the largest eigenvalue of a correlation below which columns say the same thing
SLICE = 2**16  # rows that are cast to float64 at a time


class Rows(NamedTuple):
    """A stream in time order."""

    values: np.ndarray  # (N, columns), of the default float
    names: tuple[str, ...]  # of the columns


def as_rows(inputs: Any, name: str = "inputs") -> Rows:
    """The rows of a NumPy array, a pandas or xarray object, or nested lists; a 1-D stream is one column.

    Raises:
        ValueError: no numbers, or one that is not finite: its row and column are named.
    """
    if not checks.is_concrete(inputs):
        raise ValueError(f"{name} must be recorded numbers, got a traced array; make the problem outside of the point")
    columns = _column_names(inputs)
    array = inputs.to_numpy() if hasattr(inputs, "to_numpy") else np.asarray(inputs)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be numbers, got {array.dtype}; turn dates and text into numbers, or leave these columns out"
        )
    array = array.reshape(-1, 1) if array.ndim == 1 else array
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"{name} must be rows of numbers, (N, columns), got shape {array.shape}; one row per sample")
    values = np.ascontiguousarray(array, jnp.result_type(float))
    names = columns if columns and len(columns) == array.shape[1] else tuple(str(i) for i in range(array.shape[1]))
    bad = ~np.isfinite(values)
    if bad.any():
        row, column = (int(each) for each in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} must be finite, got {array[row, column]} in row {row}, column {names[column]!r}, and "
            f"{bad.sum() - 1} more; drop these rows, or fill them in"
        )
    return Rows(values, names)


def as_targets(targets: Any, num_rows: int) -> np.ndarray:
    """One target for each row, (N,) in float64; ValueError otherwise."""
    values, _ = as_rows(targets, "targets")
    if values.shape != (num_rows, 1):
        raise ValueError(
            f"targets must be one number for each of {num_rows} rows, got shape {np.shape(targets)}; give shape "
            f"({num_rows},)"
        )
    return values[:, 0].astype(float)


def second_moments(values: np.ndarray) -> np.ndarray:
    """Mean of x x^T over the rows, in float64, a slice at a time."""
    total = np.zeros((values.shape[1],) * 2)
    for start in range(0, len(values), SLICE):
        part = values[start : start + SLICE].astype(float)
        total += part.T @ part
    return total / len(values)


def check_independent(second: np.ndarray, names: tuple[str, ...], bias: bool) -> None:
    """ValueError where the columns leave a direction of the weights undetermined, naming the columns.

    Args:
        second: mean of x x^T over all rows; with a bias, the last column is the constant 1.
        names: of the columns without the bias.
        bias: whether there is one.
    """
    scale = np.sqrt(np.diagonal(second))
    zero = np.flatnonzero(scale == 0)
    if zero.size:
        raise ValueError(f"column {names[zero[0]]!r} is 0 in every row, so no step moves its weight; leave it out")
    if bias:
        means = second[-1, :-1]
        spread = np.diagonal(second)[:-1] - means**2
        constant = np.flatnonzero(spread <= SINGULAR * np.diagonal(second)[:-1])
        if constant.size:
            raise ValueError(
                f"column {names[constant[0]]!r} is constant, {means[constant[0]]:g}, and so the same as the bias; "
                "leave it out, or set bias=False"
            )
    values, vectors = np.linalg.eigh(second / np.outer(scale, scale))
    if values[0] <= SINGULAR * values[-1]:
        involved = np.flatnonzero(np.abs(vectors[:, 0]) > 0.1)
        shown = ", ".join(repr((*names, "bias")[i]) for i in involved)
        raise ValueError(
            f"the columns {shown} are linearly dependent, so the weights are not determined; leave one of them out"
        )


def _column_names(inputs: Any) -> tuple[str, ...]:
    """Names that the data itself has: columns of pandas, coordinates of the second dimension of xarray."""
    if hasattr(inputs, "columns"):
        return tuple(str(name) for name in inputs.columns)
    if hasattr(inputs, "dims") and hasattr(inputs, "coords") and len(inputs.dims) == 2:
        last = inputs.dims[1]
        return tuple(str(name) for name in inputs.coords[last].values) if last in inputs.coords else ()
    return ()
