"""Results on disk: a zarr v3 store that any xarray user can open, while a job still writes to it.

One work unit is one chunk of every output and of `status`. An output is written before the status of its cells, each
file by a rename, so a unit counts as done only when all of it is there; a checksum in every file tells whether it still
is. Metadata is written once, before the store gets its name.
"""

import contextlib
import errno
import json
import math
import os
import re
import shutil
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

from resonance_jax.engine.chunks import Grid, Place, Shape

MISSING, OK, DIVERGED, NONFINITE = range(4)
MEANINGS = ("missing", "ok", "diverged", "nonfinite")
STATUS = "status"
NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)  # of an array, which is the name of a folder too
CODECS = {"bytes", "zstd", "crc32c"}  # all that a store of ours holds; none of them runs code from a file
DIVERGES = {  # outputs by which a point says that its run diverged; those of `train` and `oscillate` are such
    "diverged_at": lambda step: step >= 0,
    "diverged": lambda flag: flag.astype(bool),
}


class Store:
    """A store on disk. `create` or `open` makes one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        _check_metadata(path)
        with zarr.config.set({"array.write_empty_chunks": True}):  # a chunk of NaN is a result, too
            group = zarr.open_group(path, mode="r+", zarr_format=3, use_consolidated=False)
            arrays = dict(group.arrays())
        self.attrs: dict[str, Any] = dict(group.attrs)
        self._status: Any = arrays.pop(STATUS)
        self.axes: tuple[str, ...] = self._status.metadata.dimension_names
        self._coordinates: dict[str, Any] = {name: arrays.pop(name) for name in self.axes}
        self.outputs: dict[str, Any] = arrays
        self.shape: Shape = self._status.shape
        self.box: Shape = self._status.chunks
        self.blocks: Shape = tuple(-(-n // b) for n, b in zip(self.shape, self.box, strict=True))
        self.num_units = math.prod(self.blocks)

    @classmethod
    def open(cls, path: Path) -> Self:
        """ValueError unless there is a store of ours."""
        if not (path / "zarr.json").is_file():
            raise ValueError(f"no store at {path}; give the folder that `resonance run --out` wrote")
        try:
            return cls(path)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a store of a sweep, or is damaged: {error}; give another folder") from None

    @classmethod
    def create(cls, path: Path, grid: Grid, box: Shape, attrs: Mapping[str, Any]) -> Self:
        """Make the store under another name and move it into place: it is whole when it appears.

        Where another job was faster, its store is opened.
        """
        for name in (*grid.dims, *grid.coordinates):
            if not NAME.fullmatch(name) or name == STATUS:
                raise ValueError(
                    f"{name!r} cannot be the name of an array in a store; use letters, digits and _, and not {STATUS!r}"
                )
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            return cls.open(path)
        partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
        try:
            _write_metadata(partial, grid, box, attrs)
            partial.rename(path)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return cls.open(path)

    def coordinate(self, name: str) -> np.ndarray:
        """Values of an axis; ValueError where their file is damaged."""
        try:
            return self._coordinates[name][:]
        except OSError:
            raise
        except Exception:
            raise ValueError(f"axis {name} of {self.path} is damaged; give another --out") from None

    def place(self, unit: int) -> Place:
        """Where a unit lies in the grid."""
        return tuple(
            slice(i * b, min((i + 1) * b, n)) for i, b, n in zip(self._block(unit), self.box, self.shape, strict=True)
        )

    def cells(self, unit: int) -> int:
        return math.prod(s.stop - s.start for s in self.place(unit))

    def write(self, unit: int, outputs: Mapping[str, np.ndarray]) -> None:
        """Outputs first, their status last: it is what makes them count."""
        place = self.place(unit)
        for name, array in self.outputs.items():
            array[place] = outputs[name]
        self._status[place] = status_of(outputs, len(self.axes))

    def read_status(self, unit: int) -> np.ndarray | None:
        """Status of the cells of a unit whose every file is there and whole; None where one is missing or damaged."""
        place = self.place(unit)
        try:
            if not all(self._file(name, unit).is_file() for name in (*self.outputs, STATUS)):
                return None
            for array in self.outputs.values():
                array[place]  # raises where the checksum does not fit
            status = self._status[place]
            return status if np.all(status != MISSING) else None
        except OSError:
            raise
        except Exception:  # a damaged file makes codecs raise what they like
            return None

    def finished(self, unit: int) -> bool:
        """Whether the unit was written to its end; `read_status` also looks at what is in the files."""
        return self._file(STATUS, unit).is_file()

    def begun(self, unit: int) -> bool:
        """Whether a file of the unit is there, whole or not."""
        return any(self._file(name, unit).exists() for name in (*self.outputs, STATUS))

    def remove(self, units: Sequence[int]) -> None:
        """Remove what there is of these units, and what a killed job left behind of them."""
        for unit in units:
            for name in (STATUS, *self.outputs):  # a file that is half of a chunk would be read before it is written
                self._file(name, unit).unlink(missing_ok=True)
        for name in (STATUS, *self.outputs):
            unfinished = list((self.path / name).rglob("*.partial"))
            wanted = {self._file(name, unit) for unit in units} if unfinished else set()
            for file in unfinished:
                if file.with_name(file.name.split(".")[0]) in wanted:
                    file.unlink(missing_ok=True)

    @contextlib.contextmanager
    def locked(self, units: Iterable[int]) -> Iterator[bool]:
        """Hold these units, at most until the process ends, however it ends; ValueError where another one holds any.

        A lock is a byte of one file, so any two jobs that share a unit exclude each other, however they are split.

        Yields:
            False where the file system has no locks.
        """
        import fcntl  # not on Windows

        with open(self.path / STATUS / ".lock", "ab") as file:
            has_locks = True
            try:
                for unit in units:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, unit)
            except OSError as error:
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    raise ValueError(
                        f"{self.path} is being written by another job that works on the same chunks; "
                        "wait for it, or give each job a --shard of its own"
                    ) from None
                has_locks = False
            yield has_locks

    def log(self, entry: Mapping[str, Any]) -> None:
        """Add a line to the log of the jobs that wrote here: who computed what, and where."""
        with open(self.path / STATUS / ".jobs.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def jobs(self) -> list[dict[str, Any]]:
        entries = []
        with contextlib.suppress(OSError):
            for line in (self.path / STATUS / ".jobs.jsonl").read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(ValueError):  # a job was killed in the middle of it
                    entries.append(json.loads(line))
        return entries

    def _block(self, unit: int) -> tuple[int, ...]:
        return tuple(int(i) for i in np.unravel_index(unit, self.blocks))

    def _file(self, name: str, unit: int) -> Path:
        folder = self.path / name
        file = folder / self._status.metadata.encode_chunk_key(
            self._block(unit) + (0,) * (self.outputs[name].ndim - len(self.shape) if name in self.outputs else 0)
        )
        _check_inside(self.path, file.parent)
        return file


def status_of(outputs: Mapping[str, np.ndarray], rank: int) -> np.ndarray:
    """Status of each cell: diverged by the account of the run itself, else nonfinite where a number is, else ok."""

    def anywhere(flags: np.ndarray) -> np.ndarray:
        return np.any(flags, axis=tuple(range(rank, flags.ndim)))

    shape = next(iter(outputs.values())).shape[:rank]
    status = np.full(shape, OK, np.uint8)
    for output in outputs.values():
        if output.dtype.kind in "fc":
            status[anywhere(~np.isfinite(output))] = NONFINITE
    for name, diverges in DIVERGES.items():
        if name in outputs:
            status[anywhere(diverges(outputs[name]))] = DIVERGED
    return status


def load(path: Path) -> Any:
    """The whole store as a dataset in memory; whole-number outputs as such, once nothing of them is missing."""
    import xarray as xr

    store = Store.open(path)
    data = xr.open_zarr(path).load()
    for name, array in store.outputs.items():
        kind = store.attrs["outputs"][name]
        if array.dtype.kind in "iu" and not np.isnan(data[name]).any():
            data[name] = data[name].astype(kind)
    return data


def _write_metadata(path: Path, grid: Grid, box: Shape, attrs: Mapping[str, Any]) -> None:
    outputs = {name: str(out.dtype) for name, out in grid.cell.outputs.items()}
    group = zarr.create_group(path, zarr_format=3, attributes={**attrs, "outputs": outputs})
    settings: dict[str, Any] = dict(compressors=[ZstdCodec(level=1), Crc32cCodec()])
    for name, values in grid.coordinates.items():
        array = group.create_array(
            name, shape=values.shape, chunks=values.shape, dtype=values.dtype, dimension_names=(name,), **settings
        )
        array[:] = values
    for name, out in grid.cell.outputs.items():
        dtype, missing = _stored_as(out.dtype)
        group.create_array(
            name,
            shape=grid.shape + out.shape,
            chunks=box + tuple(max(n, 1) for n in out.shape),
            dtype=dtype,
            fill_value=missing,
            dimension_names=grid.dims[name],
            attributes={} if dtype.kind in "fc" else {"_FillValue": missing},  # xarray reads it as NaN
            **settings,
        )
    group.create_array(
        STATUS,
        shape=grid.shape,
        chunks=box,
        dtype=np.uint8,
        fill_value=MISSING,
        dimension_names=tuple(grid.coordinates),
        attributes={"flag_values": list(range(len(MEANINGS))), "flag_meanings": " ".join(MEANINGS)},
        **settings,
    )
    with warnings.catch_warnings():  # that the specification does not have it yet; xarray asks for it all the same
        warnings.filterwarnings("ignore", message="Consolidated metadata")
        zarr.consolidate_metadata(path)


def _stored_as(dtype: Any) -> tuple[np.dtype, Any]:
    """How numbers of a type are stored, and what stands for those not computed."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.dtype(np.int8), -1
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return dtype, int(info.max if dtype.kind == "u" else info.min)
    return dtype, math.nan


def _check_metadata(path: Path) -> None:
    """ValueError for codecs that are not ours, and for names and links that lead out of the store.

    By reading JSON alone, before anything else looks at the store.
    """
    for file in sorted(path.glob("*/zarr.json")):
        if not NAME.fullmatch(file.parent.name):
            raise ValueError(f"{file.parent.name!r} is not the name of an array")
        _check_inside(path, file)
        metadata = json.loads(file.read_text(encoding="utf-8"))
        foreign = {codec["name"] for codec in metadata["codecs"]} - CODECS
        if foreign or metadata.get("storage_transformers"):
            raise ValueError(f"array {file.parent.name!r} has codecs {sorted(foreign)} that are not used here")
        if metadata["chunk_key_encoding"] != {"name": "default", "configuration": {"separator": "/"}}:
            raise ValueError(f"array {file.parent.name!r} names its chunks in a way that is not used here")


def _check_inside(root: Path, path: Path) -> None:
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise ValueError(f"{path} leads out of the store")
