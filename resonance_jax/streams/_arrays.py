"""Arrays on disk: .npy, .npz and .zarr. A 1-D array is a column, a 2-D array one column per entry of its rows."""

import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from math import prod
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from resonance_jax.streams._source import BLOCK, Block, Source, check_rows, readable


class Variable(NamedTuple):
    """One array of a file."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    blocks: Callable[[int], Iterator[np.ndarray]]  # consecutive pieces of that many rows
    labels: tuple[str, ...] | None = None  # of the columns of a 2-D array
    chunk: int = 1  # rows that are stored together

    @property
    def columns(self) -> tuple[str, ...]:
        if len(self.shape) != 2:
            return (self.name,)
        separator = "_" if self.name else ""
        return self.labels or tuple(f"{self.name}{separator}{i}" for i in range(self.shape[1]))

    @property
    def num_rows(self) -> int:
        return self.shape[0] if len(self.shape) in (1, 2) else -1


def open_npy(path: Path) -> Source:
    """The columns of an array, "0", "1", ..., or the fields of a structured one."""
    with readable(path):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.dtype.names and array.ndim == 1:
        return _source(path, [_sliced(name, array[name]) for name in array.dtype.names])
    return _unnamed(path, _sliced("", array))


def open_npz(path: Path) -> Source:
    """The columns of the arrays of an archive; an array that was saved without a name, alone, is like a .npy file."""
    with readable(path), zipfile.ZipFile(path) as archive:
        variables = [_zipped(path, archive, member) for member in archive.namelist() if member.endswith(".npy")]
    if [variable.name for variable in variables] == ["arr_0"]:
        return _unnamed(path, variables[0]._replace(name=""))
    return _source(path, variables)


def open_zarr(path: Path) -> Source:
    """The columns of a Zarr array, an xarray dataset or a group of arrays, which come in alphabetical order."""
    import zarr

    with readable(path):
        node = zarr.open(path, mode="r")
        arrays = {} if isinstance(node, zarr.Array) else dict(sorted(node.arrays()))
    if isinstance(node, zarr.Array):
        return _unnamed(path, _stored("", node))
    return _source(path, _dataset(path, arrays))


def _dataset(path: Path, arrays: dict[str, Any]) -> list[Variable]:
    """The arrays of a group; as xarray sees them where all have named dimensions."""
    import xarray as xr

    if not all(map(_has_dimensions, arrays.values())):
        return [_stored(name, array) for name, array in arrays.items()]
    with readable(path):
        dataset = xr.open_dataset(path, engine="zarr", consolidated=False, chunks=None)
    variables = []
    for name, array in sorted(dataset.data_vars.items()):  # xarray keeps the order in which the folder lists them
        chunk = (array.encoding.get("shards") or array.encoding.get("chunks") or (1,))[0]
        variables.append(_sliced(str(name), array.variable, chunk=chunk, labels=_labels(array)))
    named = [name for variable in variables for name in variable.columns]
    return [v if len(set(named)) == len(named) else v._replace(labels=None) for v in variables]


def _has_dimensions(array: Any) -> bool:
    names = getattr(array.metadata, "dimension_names", None)  # of Zarr format 3; format 2 has an attribute
    return names is not None or "_ARRAY_DIMENSIONS" in array.attrs or array.ndim == 0


def _stored(name: str, array: Any) -> Variable:
    """A variable of a Zarr array."""
    return _sliced(name, array, chunk=(array.shards or array.chunks or (1,))[0])


def _labels(array: Any) -> tuple[str, ...] | None:
    """Names of the columns of a 2-D variable, where its second dimension has a coordinate of texts."""
    if array.ndim != 2 or array.dims[1] not in array.coords:
        return None
    labels = array.coords[array.dims[1]].values.tolist()
    return tuple(labels) if all(isinstance(label, str) for label in labels) else None


def _unnamed(path: Path, variable: Variable) -> Source:
    if len(variable.shape) not in (1, 2):
        raise ValueError(
            f"{path} must hold an array of rows and columns, got shape {variable.shape}; reshape it to (rows, columns)"
        )
    return _source(path, [variable if len(variable.shape) == 2 else variable._replace(name="0")])


def _sliced(name: str, array: Any, *, chunk: int = 1, labels: tuple[str, ...] | None = None) -> Variable:
    """A variable of an array that reads what it is indexed with."""

    def blocks(size: int) -> Iterator[np.ndarray]:
        for start in range(0, array.shape[0], size):
            yield np.asarray(array[start : start + size])

    return Variable(name, tuple(array.shape), np.dtype(array.dtype), blocks, labels, chunk)


def _zipped(path: Path, archive: zipfile.ZipFile, member: str) -> Variable:
    """An array in a .npz archive, decompressed as it is read; numpy.load would hold all of it."""
    with archive.open(member) as file:
        shape, fortran, dtype = _header(file)

    def blocks(size: int) -> Iterator[np.ndarray]:
        with ExitStack() as stack:
            file = stack.enter_context(stack.enter_context(zipfile.ZipFile(path)).open(member))
            _header(file)
            if fortran and len(shape) == 2:  # stored column after column
                whole = np.frombuffer(file.read(), dtype).reshape(shape, order="F")
                yield from (whole[start : start + size] for start in range(0, shape[0], size))
                return
            for start in range(0, shape[0], size):
                rows = min(size, shape[0] - start)
                data = file.read(rows * dtype.itemsize * prod(shape[1:]))
                yield np.frombuffer(data, dtype).reshape(rows, *shape[1:])

    return Variable(member.removesuffix(".npy"), shape, dtype, blocks)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    read = np.lib.format.read_array_header_1_0
    return read(file) if np.lib.format.read_magic(file) == (1, 0) else np.lib.format.read_array_header_2_0(file)


def _source(path: Path, variables: Sequence[Variable]) -> Source:
    """The columns of the variables; those as long as the longest one are read when none are asked for."""
    columns = [(variable, i) for variable in variables for i in range(len(variable.columns))]
    longest = max((variable.num_rows for variable in variables), default=0)

    def blocks(picked: Sequence[int]) -> Iterator[Block]:
        return _blocks(path, [columns[i] for i in picked])

    matrices = [variable for variable in variables if variable.name and len(variable.shape) == 2]
    return Source(
        names=tuple(name for variable in variables for name in variable.columns),
        numeric=tuple(v.dtype.kind in "biuf" and v.num_rows == longest for v, _ in columns),
        expected_rows=longest,
        blocks=blocks,
        groups={v.name: tuple(i for i, (owner, _) in enumerate(columns) if owner is v) for v in matrices},
    )


def _blocks(path: Path, columns: Sequence[tuple[Variable, int]]) -> Iterator[Block]:
    variables = list({variable.name: variable for variable, _ in columns}.values())
    for variable in variables:
        if len(variable.shape) not in (1, 2):
            raise ValueError(
                f"{variable.name!r} of {path} must have 1 or 2 dimensions, got shape {variable.shape}; reshape it"
            )
    lengths = {variable.name: variable.num_rows for variable in variables}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"columns of {path} must have as many rows as each other, got {shown}; pick others")
    check_rows(path, variables[0].num_rows)
    return _read(path, columns, variables)


def _read(path: Path, columns: Sequence[tuple[Variable, int]], variables: Sequence[Variable]) -> Iterator[Block]:
    chunk = max(variable.chunk for variable in variables)
    width = sum(prod(variable.shape[1:]) for variable in variables)
    size = chunk * max(1, BLOCK // (chunk * max(width, 1)))  # whole chunks, so that each is decoded once
    start = 0
    with readable(path):
        for arrays in zip(*(variable.blocks(size) for variable in variables), strict=True):
            block = {variable.name: array for variable, array in zip(variables, arrays, strict=True)}
            picked = [block[v.name] if len(v.shape) == 1 else block[v.name][:, i] for v, i in columns]
            yield picked, lambda i, start=start: f"row {start + i + 1}"
            start += len(arrays[0])
