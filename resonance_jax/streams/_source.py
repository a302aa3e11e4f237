"""What every file format offers: named columns, read block by block, with errors that name the first bad value."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

BLOCK = 2**18  # values read at once, 2 MiB as float64: large enough that reading stays fast
DAMAGED = "the file is damaged or is not what its suffix says, write it again"
MISSING = frozenset({"", "na", "n/a", "nan", "nat", "null", "none", "<na>", "?", "-", "."})

Block = tuple[Sequence[np.ndarray], Callable[[int], str]]  # 1-D columns of equal length; how to name row i of them


class Source(NamedTuple):
    """The columns of one file."""

    names: tuple[str, ...]
    numeric: tuple[bool, ...]  # the columns that are read when none are asked for
    expected_rows: int  # exact, or an estimate
    blocks: Callable[[Sequence[int]], Iterator[Block]]  # of the columns with these indices, in this order
    groups: Mapping[str, tuple[int, ...]] = {}  # names that stand for several columns


def is_missing(text: str) -> bool:
    return text.strip().lower() in MISSING


def is_number(text: str) -> bool:
    """Whether a text is a finite number.

    >>> is_number("-1e3"), is_number("nan"), is_number("12 May")
    (True, False, False)
    """
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def check_rows(path: Path, num_rows: int) -> None:
    if num_rows < 2:
        raise ValueError(f"{path} must have at least 2 rows of data, got {num_rows}; give a longer file")


@contextmanager
def readable(path: Path, errors: tuple[type[Exception], ...] = (Exception,), remedy: str = DAMAGED) -> Iterator[None]:
    """Turn the errors of a reader into one ValueError that names the file."""
    try:
        yield
    except MemoryError:
        raise
    except errors as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"cannot read {path}: {reason[:200]}; {remedy}") from error


def to_float32(
    path: Path, name: str, column: np.ndarray, where: Callable[[int], str], start: int, stop: int
) -> np.ndarray:
    """Part of a column as finite float32 numbers; ValueError that names the first value that is none."""
    values = column[start:stop]
    if values.dtype.kind not in "biuf":
        values = _parsed(path, name, column, where, start, stop)
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = values.astype(np.float32)
    finite = np.isfinite(numbers)
    if not finite.all():
        first = int(np.argmin(finite))
        _refuse(path, name, column[start + first], where(start + first))
    return numbers


def _parsed(
    path: Path, name: str, column: np.ndarray, where: Callable[[int], str], start: int, stop: int
) -> np.ndarray:
    """Texts and Python objects as float64."""
    if column.dtype.kind not in "OUT":  # dates, complex numbers, bytes
        _refuse(path, name, column[start], where(start))
    try:
        return column[start:stop].astype(np.float64)
    except (TypeError, ValueError):
        for i in range(start, stop):
            try:
                float(column[i])
            except (TypeError, ValueError):
                _refuse(path, name, column[i], where(i))
        raise


def _refuse(path: Path, name: str, value: Any, where: str) -> NoReturn:
    at = f"column {name!r} of {path}, {where}"
    if is_missing(str(value)):
        said = f"got {value!r}" if isinstance(value, str) and value.strip() else "the value is missing"
        raise ValueError(f"{at}: expected a number, {said}; drop the row or fill in the value")
    if is_number(str(value)):
        raise ValueError(f"{at}: {value} does not fit into 32-bit floating point; rescale the column")
    if str(value).strip().lower().lstrip("+-") in ("inf", "infinity"):
        raise ValueError(f"{at}: expected a finite number, got {value}; drop the row or fill in the value")
    raise ValueError(f"{at}: expected a number, got {str(value)!r}; leave the column out or turn it into numbers")
