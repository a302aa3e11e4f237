"""Delimited text: .csv, .tsv and .txt."""

import csv
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

from resonance_jax.streams._source import BLOCK, Block, Source, check_rows, is_missing, is_number, readable

UNREADABLE = (UnicodeDecodeError, csv.Error, OSError), "write the file again as UTF-8 text"
PEEK = 100  # rows that decide which columns hold numbers

Row = tuple[int, list[str]]  # the line where a row ends, counted from 1, and its fields


class Layout(NamedTuple):
    delimiter: str | None  # None is any run of white space
    width: int  # columns
    header: int  # lines before the data


def open_text(path: Path) -> Source:
    """The columns of a text file.

    The first row is a header unless it holds a number and every text in it has text below it. Columns of a file without
    a header are named "0", "1", ... A column is numeric if one of its first 100 values is a number.
    """
    with readable(path, *UNREADABLE):
        delimiter = _delimiter(path)
        with _open(path) as file:
            lines = chain([file.readline().removeprefix("#")], file)  # numpy.savetxt marks its header with a #
            peeked = list(islice(_rows(path, lines, delimiter), PEEK + 1))
    if not peeked:
        raise ValueError(f"{path} is empty; give a file with rows of numbers")
    (line, first), *below = peeked
    header = _is_header(first, below[0][1] if below else [])
    rows = [fields for _, fields in (below if header else peeked)]
    check_rows(path, len(rows))
    names = [field.strip() for field in first] if header else [str(i) for i in range(len(first))]
    numeric = [bool(name) and any(is_number(row[i]) for row in rows) for i, name in enumerate(names)]
    layout = Layout(delimiter, len(first), line if header else 0)
    return Source(
        names=tuple(name or f"column {i}" for i, name in enumerate(names)),  # e.g. the index that pandas writes
        numeric=tuple(numeric),
        expected_rows=path.stat().st_size * len(rows) // sum(len(field) + 1 for row in rows for field in row) + 1,
        blocks=lambda picked: _blocks(path, layout, picked),
    )


def _open(path: Path) -> TextIO:
    return path.open(newline="", encoding="utf-8-sig")


def _delimiter(path: Path) -> str | None:
    if path.suffix.lower() == ".tsv":
        return "\t"
    with _open(path) as file:
        line = file.readline()
    unquoted = "".join(line.split('"')[::2])
    found = [
        delimiter for delimiter in "\t;," if delimiter in unquoted
    ]  # beside a semicolon, a comma is a decimal comma
    return found[0] if found else None if path.suffix.lower() == ".txt" else ","


def _is_header(first: list[str], second: list[str]) -> bool:
    named = [not is_number(field) and not is_missing(field) for field in first]
    return any(named) and (
        not any(map(is_number, first))
        or any(name and is_number(field) for name, field in zip(named, second, strict=False))
    )


def _rows(path: Path, lines: Iterator[str], delimiter: str | None, before: int = 0, width: int = 0) -> Iterator[Row]:
    """Rows of equal width; blank lines are allowed at the end only."""
    blank = 0
    for line, fields in _fields(lines, delimiter):
        if len(fields) < 2 and not any(map(str.strip, fields)):
            blank = blank or before + line
            continue
        width = width or len(fields)
        if blank:
            raise ValueError(
                f"{path}, line {blank} is blank, with data below it; remove the line or fill in its values"
            )
        if len(fields) != width:
            raise ValueError(
                f"{path}, line {before + line}: expected {width} values as in the first row, got {len(fields)}; "
                "rows must be of equal length"
            )
        yield before + line, fields


def _fields(lines: Iterator[str], delimiter: str | None) -> Iterator[Row]:
    """Lines, counted from 1, and their fields."""
    if delimiter is None:
        yield from ((number, line.split()) for number, line in enumerate(lines, 1))
        return
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)  # a quote must be closed
    for fields in reader:
        yield reader.line_num, fields


def _blocks(path: Path, layout: Layout, picked: Sequence[int]) -> Iterator[Block]:
    size = max(1, BLOCK // layout.width)
    with readable(path, *UNREADABLE), _open(path) as file:
        done = len(list(islice(file, layout.header)))
        while lines := list(islice(file, size)):
            values = _fast(lines, layout, picked)
            if values is None:  # something unusual: read the rest field by field
                yield from _careful(path, chain(lines, file), done, layout, picked)
                return
            yield list(values.T), lambda i, done=done: f"line {done + i + 1}"
            done += len(lines)


def _fast(lines: list[str], layout: Layout, picked: Sequence[int]) -> np.ndarray | None:
    """The picked columns, (lines, picked); None where a row is not one line of the right width, or holds no numbers.

    A million rows of 16 columns take 3 s this way and 15 s field by field, on one core of a small ARM server.
    """
    delimiter, width, _ = layout
    if not _is_regular(lines, delimiter, width):
        return None
    try:
        return np.loadtxt(lines, delimiter=delimiter, usecols=picked, comments=None, quotechar='"', ndmin=2)
    except ValueError:
        return None


def _is_regular(lines: list[str], delimiter: str | None, width: int) -> bool:
    """Whether each line is one row of the right width, by rules that csv and NumPy share."""
    quoted = any('"' in line for line in lines)
    if delimiter is None:
        return not quoted and all(len(line.split()) == width for line in lines)
    if not quoted:
        return all(line.count(delimiter) == width - 1 and not line.isspace() for line in lines)
    if any(f"{delimiter} " in line for line in lines):  # csv takes a quote after a space for a quote, NumPy does not
        return False
    try:
        widths = [len(fields) for fields in csv.reader(lines, delimiter=delimiter, strict=True)]
    except csv.Error:
        return False
    return len(widths) == len(lines) and set(widths) == {width}


def _careful(path: Path, lines: Iterator[str], done: int, layout: Layout, picked: Sequence[int]) -> Iterator[Block]:
    rows = _rows(path, lines, layout.delimiter, done, layout.width)
    while block := list(islice(rows, max(1, BLOCK // layout.width))):
        numbers, fields = zip(*block, strict=True)
        columns = [np.array([row[i] for row in fields], dtype=object) for i in picked]
        yield columns, lambda i, numbers=numbers: f"line {numbers[i]}"
