"""Results on disk: a zarr v3 store that any xarray user can open, while a job still writes to it.

A chunk of the grid is one file for each output and one for `status`; chunks are numbered in C order. Each file is
written under another name and then renamed, `status` last, so a chunk with a status is complete. Every file has a
checksum, which detects later damage. Metadata is written once, before the store gets its name.
"""

import contextlib
import errno
import json
import math
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import zarr

from resonance_jax.engine.grid import Grid
from resonance_jax.engine.shapes import Index, Shape, shape_of
from resonance_jax.jobs.layout import (
    DIVERGED,
    MISSING,
    NAME,
    NONFINITE,
    OK,
    STATUS,
    check_inside,
    check_metadata,
    write_metadata,
)

if TYPE_CHECKING:
    import xarray as xr

SaysDiverged = Callable[[str, np.ndarray], np.ndarray]  # name of an output, its values -> where the run diverged


class Store:
    """A store on disk. `create` or `open` makes one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        check_metadata(path)
        with zarr.config.set({"array.write_empty_chunks": True}):  # a chunk of NaN is a result, too
            group = zarr.open_group(path, mode="r+", zarr_format=3, use_consolidated=False)
            arrays = dict(group.arrays())
        self.attrs: dict[str, Any] = dict(group.attrs)
        self._status: Any = arrays.pop(STATUS)
        self.outputs: dict[str, Any] = {name: arrays.pop(name) for name in self.attrs["outputs"]}
        self._coordinates: dict[str, Any] = {name: arrays.pop(name) for name in self.attrs["axes"]}
        self.dims: tuple[str, ...] = self._status.metadata.dimension_names
        self.axes: dict[str, str] = {
            name: array.metadata.dimension_names[0] for name, array in self._coordinates.items()
        }
        self.shape: Shape = self._status.shape
        self.chunk_shape: Shape = self._status.chunks
        self.blocks: Shape = tuple(-(-n // side) for n, side in zip(self.shape, self.chunk_shape, strict=True))
        self.num_chunks = math.prod(self.blocks)

    @classmethod
    def open(cls, path: Path) -> Self:
        """The store at a path; ValueError if there is none, or if it is damaged."""
        if not (path / "zarr.json").is_file():
            raise ValueError(f"no store at {path}; give the folder that a sweep was stored in")
        try:
            return cls(path)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a store of a sweep, or is damaged: {error}; give another folder") from None

    @classmethod
    def create(cls, path: Path, grid: Grid, chunk_shape: Shape, attrs: Mapping[str, Any]) -> Self:
        """Write the store under another name, then rename it, so that it is complete when it appears.

        If another job was faster, its store is opened.
        """
        for name in (*grid.outputs, *grid.coordinates):
            if not NAME.fullmatch(name) or name == STATUS:
                raise ValueError(
                    f"{name!r} cannot be the name of an array in a store; use letters, digits and _, and not {STATUS!r}"
                )
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            return cls.open(path)
        partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
        try:
            write_metadata(partial, grid, chunk_shape, attrs)
            partial.rename(path)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return cls.open(path)

    def coordinate(self, name: str) -> np.ndarray:
        """Values of an axis; ValueError if their file is damaged."""
        try:
            values = self._coordinates[name][:]
            return values if values.dtype.kind in "iufb" else np.array(values.tolist())
        except OSError:
            raise
        except Exception:
            raise ValueError(f"axis {name} of {self.path} is damaged; give another store") from None

    def index(self, number: int) -> Index:
        """Where a chunk lies in the grid."""
        sides = zip(self._block(number), self.chunk_shape, self.shape, strict=True)
        return tuple(slice(i * side, min((i + 1) * side, n)) for i, side, n in sides)

    def cells(self, number: int) -> int:
        return math.prod(shape_of(self.index(number)))

    def write(self, number: int, outputs: Mapping[str, np.ndarray], says_diverged: SaysDiverged) -> None:
        """Write the outputs first and the status last: a chunk is finished once it has a status."""
        index = self.index(number)
        for name, array in self.outputs.items():
            array[index] = outputs[name]
        self._status[index] = status_of(outputs, len(self.shape), says_diverged)

    def read_status(self, number: int) -> np.ndarray | None:
        """Status of the cells of a chunk; None if one of its files is missing or damaged."""
        index = self.index(number)
        try:
            if not all(self._file(name, number).is_file() for name in (*self.outputs, STATUS)):
                return None
            for array in self.outputs.values():
                array[index]  # raises if the checksum is wrong
            status = self._status[index]
            return status if np.all(status != MISSING) else None
        except OSError:
            raise
        except Exception:  # codecs raise all kinds of errors on a damaged file
            return None

    def finished(self, number: int) -> bool:
        """Whether the chunk was written completely; `read_status` also verifies the content of its files."""
        return self._file(STATUS, number).is_file()

    def begun(self, number: int) -> bool:
        """Whether any file of the chunk exists, complete or not."""
        return any(self._file(name, number).exists() for name in (*self.outputs, STATUS))

    def remove(self, numbers: Sequence[int]) -> None:
        """Remove the files of these chunks, and unfinished ones that a killed job left behind."""
        for number in numbers:
            for name in (STATUS, *self.outputs):  # zarr would read an existing file before overwriting a part of it
                self._file(name, number).unlink(missing_ok=True)
        for name in (STATUS, *self.outputs):
            unfinished = list((self.path / name).rglob("*.partial"))
            wanted = {self._file(name, number) for number in numbers} if unfinished else set()
            for file in unfinished:
                if file.with_name(file.name.split(".")[0]) in wanted:
                    file.unlink(missing_ok=True)

    @contextlib.contextmanager
    def locked(self, numbers: Iterable[int]) -> Iterator[bool]:
        """Lock these chunks; ValueError if another process holds one of them. The locks end with the process.

        Each chunk is one byte of a lock file, so two jobs that share a chunk exclude each other, whatever their shards.
        Numbers beyond the last chunk may be locked as well, as signs of life.

        Yields:
            False if the file system has no locks.
        """
        import fcntl  # not on Windows

        with open(self.path / STATUS / ".lock", "ab") as file:
            has_locks = True
            try:
                for number in numbers:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
            except OSError as error:
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    raise ValueError(
                        f"{self.path} is being written by another job that works on the same chunks; "
                        "wait for it, or give each job a shard of its own"
                    ) from None
                has_locks = False
            yield has_locks

    def is_locked(self, number: int) -> bool:
        """Whether another process holds the lock of this number. False where the file system has no locks.

        Not for a process that holds locks of this store: they would end with the file that is opened here.
        """
        import fcntl  # not on Windows

        try:
            with open(self.path / STATUS / ".lock", "rb") as file:
                fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, number)  # ends with the file
        except OSError as error:
            return error.errno in (errno.EACCES, errno.EAGAIN)
        return False

    def finished_at(self, number: int) -> float | None:
        """When a chunk was finished, in seconds since 1970; None if it was not."""
        try:
            return self._file(STATUS, number).stat().st_mtime
        except FileNotFoundError:
            return None

    def log(self, entry: Mapping[str, Any]) -> None:
        """Add a line to the log of the jobs that wrote here: which job computed what, on which host."""
        with open(self.path / STATUS / ".jobs.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def jobs(self) -> list[dict[str, Any]]:
        entries = []
        with contextlib.suppress(OSError):
            for line in (self.path / STATUS / ".jobs.jsonl").read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(ValueError):  # a job was killed while it wrote the line
                    entries.append(json.loads(line))
        return entries

    def _block(self, number: int) -> tuple[int, ...]:
        return tuple(int(i) for i in np.unravel_index(number, self.blocks))

    def _file(self, name: str, number: int) -> Path:
        folder = self.path / name
        file = folder / self._status.metadata.encode_chunk_key(
            self._block(number) + (0,) * (self.outputs[name].ndim - len(self.shape) if name in self.outputs else 0)
        )
        check_inside(self.path, file.parent)
        return file


def status_of(outputs: Mapping[str, np.ndarray], rank: int, says_diverged: SaysDiverged) -> np.ndarray:
    """Status of each cell: diverged if an output says so, otherwise nonfinite if an output is, otherwise ok."""

    def anywhere(flags: np.ndarray) -> np.ndarray:
        return np.any(flags, axis=tuple(range(rank, flags.ndim)))

    shape = next(iter(outputs.values())).shape[:rank]
    status = np.full(shape, OK, np.uint8)
    for output in outputs.values():
        if output.dtype.kind in "fc":
            status[anywhere(~np.isfinite(output))] = NONFINITE
    for name, output in outputs.items():
        status[anywhere(says_diverged(name, output))] = DIVERGED
    return status


def load(path: Path) -> "xr.Dataset":
    """The store as a dataset in memory; integer outputs keep their type unless values are missing."""
    import xarray as xr

    store = Store.open(path)
    data = xr.open_zarr(path).load()
    for name, array in store.outputs.items():
        kind = data.attrs["outputs"][name]
        if array.dtype.kind in "iu" and not np.isnan(data[name]).any():
            data[name] = data[name].astype(kind)
    text = {
        name: (data[name].dims, store.coordinate(name)) for name in store.axes if data[name].dtype.kind not in "iufb"
    }
    data.attrs = {name: value for name, value in data.attrs.items() if name not in ("outputs", "axes")}
    return data.assign_coords(text)
