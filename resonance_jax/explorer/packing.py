"""Arrays as text for a page: curves in 8 bits, everything compressed. `explorer/data.js` reads them back."""

import base64
import math
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

LEVELS = 254  # steps between the smallest and the largest value of a curve
NOT_FINITE = 255  # the code of a NaN or an infinity


class Quantised(NamedTuple):
    """Curves in 8 bits, each with its own offset and scale: value = offset + scale * code."""

    codes: np.ndarray  # (..., m), uint8; NOT_FINITE where the value is not finite
    offset: np.ndarray  # (...), float32 or float64
    scale: np.ndarray  # (...), the step between two codes


class Packed(NamedTuple):
    """Named arrays in one text."""

    text: str  # base64 of a zlib stream
    entries: list[dict[str, Any]]  # name, dtype, shape and first byte of each array


def quantise(curves: np.ndarray) -> Quantised:
    """Curves in 8 bits; no finite value moves by more than half a step, (largest - smallest) / 508 of its own curve.

    Args:
        curves: values, the last axis along the curve. They may be NaN or infinite.

    Returns:
        The codes, and the offset and scale of each curve.

    >>> quantise(np.array([0.0, 127.0, 254.0, np.inf])).codes.tolist()
    [0, 127, 254, 255]
    """
    values = curves.astype(np.float64)
    finite = np.isfinite(values)
    low = np.min(values, axis=-1, initial=np.inf, where=finite)
    high = np.max(values, axis=-1, initial=-np.inf, where=finite)
    low, high = (np.where(finite.any(axis=-1), each, 0.0) for each in (low, high))
    offset, scale = _narrow(low), _narrow(high / LEVELS - low / LEVELS)
    step = np.where(scale > 0, scale, 1).astype(np.float64)[..., None]
    codes = np.rint((np.where(finite, values, 0) - offset.astype(np.float64)[..., None]) / step)
    codes = np.where(finite, np.clip(codes, 0, LEVELS), NOT_FINITE)
    return Quantised(codes.astype(np.uint8), offset, scale)


def dequantise(quantised: Quantised) -> np.ndarray:
    """The curves as the page draws them, in float64.

    >>> dequantise(quantise(np.array([1.0, 3.0]))).round(6).tolist()
    [1.0, 3.0]
    """
    codes, offset, scale = quantised
    values = offset.astype(np.float64)[..., None] + scale.astype(np.float64)[..., None] * codes
    return np.where(codes == NOT_FINITE, np.nan, values)


def differences(codes: np.ndarray) -> np.ndarray:
    """Codes as differences along their last axis, modulo 256; `np.cumsum(..., dtype=np.uint8)` undoes it.

    On curves of 100,000 runs of `rj.oscillate` they compress to half a byte a snapshot, the codes to 0.7 bytes.

    >>> differences(np.array([3, 255, 1], np.uint8)).tolist()
    [3, 252, 2]
    """
    return np.diff(codes, axis=-1, prepend=np.zeros((*codes.shape[:-1], 1), np.uint8))


def pack(arrays: Mapping[str, np.ndarray]) -> Packed:
    """Arrays in one text. The first bytes of all numbers come first, then the second bytes: similar bytes compress.

    >>> packed = pack({"a": np.arange(3, dtype=np.float32)})
    >>> packed.entries
    [{'name': 'a', 'dtype': 'float32', 'shape': [3], 'start': 0}]
    >>> unpack(packed)["a"].tolist()
    [0.0, 1.0, 2.0]
    """
    entries, parts, start = [], [], 0
    for name, array in arrays.items():
        stored = _portable(array)
        entries.append({"name": name, "dtype": str(stored.dtype), "shape": list(stored.shape), "start": start})
        parts.append(np.frombuffer(stored.tobytes(), np.uint8).reshape(-1, stored.dtype.itemsize).T.tobytes())
        start += len(parts[-1])
    return Packed(base64.b64encode(zlib.compress(b"".join(parts))).decode("ascii"), entries)


def unpack(packed: Packed) -> dict[str, np.ndarray]:
    """The arrays of a text, as the browser reads them."""
    content = np.frombuffer(zlib.decompress(base64.b64decode(packed.text)), np.uint8)
    found = {}
    for entry in packed.entries:
        dtype = np.dtype(entry["dtype"])
        count = math.prod(entry["shape"])
        planes = content[entry["start"] : entry["start"] + count * dtype.itemsize].reshape(dtype.itemsize, count)
        found[entry["name"]] = np.ascontiguousarray(planes.T).view(dtype).reshape(entry["shape"])
    return found


def _portable(array: np.ndarray) -> np.ndarray:
    """Little-endian numbers of a type that JavaScript has: uint8, float32 or float64."""
    if array.dtype in (np.uint8, np.bool_):
        return array.astype(np.uint8)
    return array.astype("<f4" if _fits(array) else "<f8")


def _narrow(values: np.ndarray) -> np.ndarray:
    """In float32, unless values would leave its range."""
    return values.astype(np.float32) if _fits(values) else values


def _fits(values: np.ndarray) -> bool:
    size = np.abs(values[np.isfinite(values) & (values != 0)].astype(np.float64))
    limits = np.finfo(np.float32)
    return size.size == 0 or bool(size.max() <= limits.max and size.min() >= limits.tiny)
