"""What a store looks like on disk: one array for each output, for each axis and for the status of the cells."""

import json
import math
import os
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

from resonance_jax.engine.grid import Grid
from resonance_jax.engine.shapes import Shape
from resonance_jax.labels import attrs as describe

MISSING, OK, DIVERGED, NONFINITE = range(4)
MEANINGS = ("missing", "ok", "diverged", "nonfinite")
STATUS = "status"
NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)  # of an array, which is the name of a folder too
CODECS = {"bytes", "vlen-utf8", "zstd", "crc32c"}  # the only ones we write; none of them runs code from a file


def write_metadata(path: Path, grid: Grid, chunk_shape: Shape, attrs: Mapping[str, Any]) -> None:
    """Write everything of a store except its chunks: the empty arrays for the outputs, and the coordinates."""
    names = {"outputs": {name: str(out.dtype) for name, out in grid.outputs.items()}, "axes": list(grid.coordinates)}
    group = zarr.create_group(path, zarr_format=3, attributes={**attrs, **names})
    settings: dict[str, Any] = dict(compressors=[ZstdCodec(level=1), Crc32cCodec()])
    for name, (dim, labels) in grid.coordinates.items():
        dtype = "string" if labels.dtype.kind == "U" else labels.dtype
        array = group.create_array(
            name,
            shape=labels.shape,
            chunks=labels.shape,
            dtype=dtype,
            dimension_names=(dim,),
            attributes=describe(name),
            **settings,
        )
        array[:] = labels.astype(object) if labels.dtype.kind == "U" else labels
    beside = " ".join(name for name, (dim, _) in grid.coordinates.items() if name != dim)
    common: dict[str, Any] = {"coordinates": beside} if beside else {}  # coordinates that are not an index, for xarray
    flags = {"flag_values": list(range(len(MEANINGS))), "flag_meanings": " ".join(MEANINGS)}
    for name, out in grid.outputs.items():
        dtype, missing = _stored_as(out.dtype)
        group.create_array(
            name,
            shape=grid.shape + out.shape,
            chunks=chunk_shape + tuple(max(n, 1) for n in out.shape),
            dtype=dtype,
            fill_value=missing,
            dimension_names=grid.output_dims[name],
            attributes=describe(name)
            | common
            | ({} if dtype.kind in "fc" else {"_FillValue": missing}),  # xarray reads it as NaN
            **settings,
        )
    group.create_array(
        STATUS,
        shape=grid.shape,
        chunks=chunk_shape,
        dtype=np.uint8,
        fill_value=MISSING,
        dimension_names=grid.dims,
        attributes=describe(STATUS) | common | flags,
        **settings,
    )
    with warnings.catch_warnings():  # the specification does not define it yet, but xarray expects it
        warnings.filterwarnings("ignore", message="Consolidated metadata")
        zarr.consolidate_metadata(path)


def _stored_as(dtype: Any) -> tuple[np.dtype, Any]:
    """The type in which outputs of a type are stored, and the value that marks missing ones."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.dtype(np.int8), -1
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return dtype, int(info.max if dtype.kind == "u" else info.min)
    return dtype, math.nan


def check_metadata(path: Path) -> None:
    """ValueError for codecs that we do not write, and for names and links that lead out of the store.

    It only reads JSON, before any other code opens the store.
    """
    for file in sorted(path.glob("*/zarr.json")):
        if not NAME.fullmatch(file.parent.name):
            raise ValueError(f"{file.parent.name!r} is not the name of an array")
        check_inside(path, file)
        metadata = json.loads(file.read_text(encoding="utf-8"))
        foreign = {codec["name"] for codec in metadata["codecs"]} - CODECS
        if foreign or metadata.get("storage_transformers"):
            raise ValueError(f"array {file.parent.name!r} has codecs {sorted(foreign)} that are not used here")
        if metadata["chunk_key_encoding"] != {"name": "default", "configuration": {"separator": "/"}}:
            raise ValueError(f"array {file.parent.name!r} names its chunks in a way that is not used here")


def check_inside(root: Path, path: Path) -> None:
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise ValueError(f"{path} leads out of the store")
