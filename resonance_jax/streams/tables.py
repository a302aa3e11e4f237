"""Numbers from files: one row per time, picked columns as inputs and one as target."""

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

import numpy as np

from resonance_jax import checks
from resonance_jax.streams import _arrays, _parquet, _text
from resonance_jax.streams._source import Block, Source, to_float32

FORMATS: dict[str, Callable[[Path], Source]] = {
    ".csv": _text.open_text,
    ".tsv": _text.open_text,
    ".txt": _text.open_text,
    ".npy": _arrays.open_npy,
    ".npz": _arrays.open_npz,
    ".parquet": _parquet.open_parquet,
    ".zarr": _arrays.open_zarr,
}

Columns = str | int | Sequence[str | int]


class Table(NamedTuple):
    """Rows of a file in their order."""

    inputs: np.ndarray  # (N, d), float32
    targets: np.ndarray | None  # (N,), float32
    names: tuple[str, ...]  # of the d inputs
    left_out: tuple[str, ...]  # columns without numbers that nobody asked for


def read(
    path: str | Path, columns: Columns | None = None, target: str | int | None = None, *, rows: int | None = None
) -> Table:
    """Read a file into memory.

    Args:
        path: a .csv, .tsv, .txt, .npy, .npz, .parquet or .zarr file. Text may have a header or none.
        columns: the inputs, by name, or by number from 0 where the file has no names. The name of a 2-D array stands
            for all its columns. None takes every column of numbers except the target.
        target: the column of targets, or None.
        rows: read the first rows only; None reads all.

    Returns:
        A Table. Every number in it is finite.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "weather.csv"
    ...     _ = file.write_text("day,wind,rain\\nMonday,3.5,0\\nTuesday,1.5,2\\n")
    ...     table = read(file, target="rain")
    >>> table.inputs.tolist(), table.targets.tolist(), table.names, table.left_out
    ([[3.5], [1.5]], [0.0, 2.0], ('wind',), ('day',))
    """
    if rows is not None:
        checks.at_least_one("rows", rows, "it is the number of rows to read")
    pieces = _parts(path, columns, target, rows)
    table = next(pieces)
    pieces.close()
    return table


def parts(
    path: str | Path, columns: Columns | None = None, target: str | int | None = None, *, rows: int
) -> Iterator[Table]:
    """Read a file piece by piece, for files that do not fit into memory.

    Args:
        path, columns, target: as for `read`.
        rows: rows per piece; the last piece may have fewer.

    Returns:
        An iterator over consecutive pieces. It holds one piece and one buffer of the reader at a time: about 2 MiB of
        values, or a chunk of a Zarr store; a Fortran-ordered array in a .npz file is read whole.
    """
    checks.at_least_one("rows", rows, "it is the number of rows of a piece")
    return _parts(path, columns, target, rows)


def _parts(
    path: str | Path, columns: Columns | None, target: str | int | None, rows: int | None
) -> Generator[Table, None, None]:
    """Open the file and check what is asked of it now; read it as the pieces are taken."""
    path = Path(path)
    source = _open(path)
    inputs, outputs, left_out = _pick(path, source, columns, target)
    names = tuple(source.names[i] for i in inputs + outputs)
    blocks = source.blocks(inputs + outputs)
    reading = _Reading(path, names, len(inputs), left_out)
    return _pieces(reading, blocks, source.expected_rows, rows or sys.maxsize)


class _Reading(NamedTuple):
    """What is read: the inputs, then the target where there is one."""

    path: Path
    names: tuple[str, ...]
    dim: int
    left_out: tuple[str, ...]


def _pieces(reading: _Reading, blocks: Iterator[Block], expected: int, rows: int) -> Generator[Table, None, None]:
    """Blocks of any length as tables of equal length. Nothing here refers to a table that was handed over."""
    buffers: list[np.ndarray] = []  # inputs, (room, dim), and targets, (room, 0 or 1)
    filled = 0
    for columns, where in blocks:
        start, stop = 0, len(columns[0])
        while start < stop:
            if not buffers:
                room, widths = min(rows, expected), (reading.dim, len(reading.names) - reading.dim)
                buffers += [np.empty((room, width), np.float32) for width in widths]
            if filled == len(buffers[0]):  # more rows than were expected
                _resize(buffers, min(rows, filled + filled // 2 + 1))
            taken = min(len(buffers[0]) - filled, stop - start)
            _fill(reading, [buffer[filled : filled + taken] for buffer in buffers], columns, where, start)
            start, filled = start + taken, filled + taken
            if filled == rows:
                filled = 0
                yield _table(reading, buffers)
    if filled:
        _resize(buffers, filled)
        yield _table(reading, buffers)


def _fill(
    reading: _Reading,
    outs: Sequence[np.ndarray],
    columns: Sequence[np.ndarray],
    where: Callable[[int], str],
    start: int,
) -> None:
    stop = start + len(outs[0])
    for out, name, column in zip((*outs[0].T, *outs[1].T), reading.names, columns, strict=True):
        out[:] = to_float32(reading.path, name, column, where, start, stop)


def _resize(buffers: Sequence[np.ndarray], rows: int) -> None:
    """More rows or fewer, in place: a copy would hold both."""
    for buffer in buffers:
        buffer.resize((rows, buffer.shape[1]), refcheck=False)


def _table(reading: _Reading, buffers: list[np.ndarray]) -> Table:
    """The buffers as a table; they leave the list."""
    targets, inputs = buffers.pop(), buffers.pop()
    return Table(inputs, targets[:, 0] if targets.shape[1] else None, reading.names[: reading.dim], reading.left_out)


def _open(path: Path) -> Source:
    suffix = path.suffix.lower()
    if not path.exists():
        raise ValueError(f"no file {path}; check its name and folder")
    if suffix not in FORMATS and path.is_file():
        raise ValueError(f"{path} must end in one of {', '.join(FORMATS)}, got {suffix!r}; convert or rename the file")
    if path.is_dir() != (suffix == ".zarr"):
        expected, got = ("folder", "file") if suffix == ".zarr" else ("file", "folder")
        raise ValueError(f"{path} must be a {expected}, got a {got}; give the {expected} that holds the data")
    if path.is_file() and path.stat().st_size == 0:
        raise ValueError(f"{path} is empty; give a file with rows of numbers")
    source = FORMATS[suffix](path)
    twice = [name for i, name in enumerate(source.names) if name in source.names[:i]]
    if twice:
        raise ValueError(f"{path} has two columns named {twice[0]!r}; rename one of them")
    return source


def _pick(
    path: Path, source: Source, columns: Columns | None, target: str | int | None
) -> tuple[list[int], list[int], tuple[str, ...]]:
    """Indices of the inputs and of the target, and the names of the columns that hold no numbers."""
    outputs = [] if target is None else _find(path, source, target)
    if len(outputs) > 1:
        raise ValueError(f"target must be one column of {path}, got {target!r} with {len(outputs)}; pick one of them")
    if columns is None:
        inputs = [i for i, numeric in enumerate(source.numeric) if numeric and i not in outputs]
        if not inputs:
            raise ValueError(
                f"{path} has no column of numbers for the inputs, "
                f"it has {_listed(source.names)}; write numbers like 1.5"
            )
        left = [i for i, numeric in enumerate(source.numeric) if not numeric and i not in outputs]
        return inputs, outputs, tuple(source.names[i] for i in left)
    asked = [columns] if isinstance(columns, str | int) else columns
    inputs = [i for column in asked for i in _find(path, source, column)]
    if not inputs:
        raise ValueError("columns must name at least one column, got none; leave them out to take every one of numbers")
    if len(set(inputs)) < len(inputs):
        twice = next(source.names[i] for i in inputs if inputs.count(i) > 1)
        raise ValueError(f"columns must differ, got {twice!r} twice; name it once")
    if set(inputs) & set(outputs):
        raise ValueError(f"target {source.names[outputs[0]]!r} is also one of the columns; take it out of them")
    return inputs, outputs, ()


def _find(path: Path, source: Source, column: str | int) -> list[int]:
    name = str(column)
    if name in source.names:
        return [source.names.index(name)]
    if name in source.groups:
        return list(source.groups[name])
    known = (*source.names, *source.groups)
    near = get_close_matches(name, known, n=1)
    remedy = f"did you mean {near[0]!r}?" if near else "pick one of these"
    raise ValueError(f"no column {name!r} in {path}, which has {_listed(known)}; {remedy}")


def _listed(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(names[:most]) or "none"
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
