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
    pieces = _pieces(path, names, blocks, len(inputs), source.expected_rows, rows or sys.maxsize)
    return (Table(x, y, names[: len(inputs)], left_out) for x, y in pieces)


def _pieces(
    path: Path, names: Sequence[str], blocks: Iterator[Block], dim: int, expected: int, rows: int
) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    """Blocks of any length as pieces of equal length: inputs, (rows, dim), and targets, (rows,)."""

    def empty() -> list[np.ndarray]:
        room = max(1, min(rows, expected))
        return [np.empty((room, dim), np.float32), np.empty((room, len(names) - dim), np.float32)]

    piece, filled = empty(), 0
    for columns, where in blocks:
        start, stop = 0, len(columns[0])
        while start < stop:
            if filled == len(piece[0]):  # more rows than were expected
                _resize(piece, min(rows, filled + filled // 2 + 1))
            taken = min(len(piece[0]) - filled, stop - start)
            for out, name, column in zip((*piece[0].T, *piece[1].T), names, columns, strict=True):
                out[filled : filled + taken] = to_float32(path, name, column, where, start, start + taken)
            start, filled = start + taken, filled + taken
            if filled == rows:
                yield piece[0], piece[1][:, 0] if piece[1].size else None
                piece, filled = empty(), 0
    if filled:
        _resize(piece, filled)
        yield piece[0], piece[1][:, 0] if piece[1].size else None


def _resize(arrays: Sequence[np.ndarray], rows: int) -> None:
    """More rows or fewer, in place: a copy would hold both."""
    for array in arrays:
        array.resize((rows, array.shape[1]), refcheck=False)


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
