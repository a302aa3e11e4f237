"""Large arrays that points close over: each is kept once, hashed once, and put on its devices once."""

import functools
import hashlib
import math
import weakref
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding

from resonance_jax.engine.memory import memory_error

SAMPLE_BYTES = 4096  # of a NumPy array, to tell most others apart before all of it is compared


class SharedArray:
    """An array, its digest and its copies on devices, all of them as long as a traced point has a use for it."""

    def __init__(self, value: jax.Array) -> None:
        self.value = value
        self._copies: dict[NamedSharding, jax.Array] = {}

    @functools.cached_property
    def digest(self) -> str:
        return digest_of(_on_host(self.value))

    def like(self) -> jax.ShapeDtypeStruct:
        """Shape and dtype, as a program takes them."""
        weak_type = jax.typeof(self.value).weak_type
        return jax.ShapeDtypeStruct(self.value.shape, self.value.dtype, weak_type=weak_type)

    def on(self, sharding: NamedSharding) -> jax.Array:
        """One copy on each device of a sharding that splits nothing; made when it is first asked for."""
        if sharding not in self._copies:
            with _memory_error(self.value):
                self._copies[sharding] = jax.device_put(self.value, sharding)  # no copy on a device that has it
        return self._copies[sharding]


_shared: weakref.WeakValueDictionary[Any, SharedArray] = weakref.WeakValueDictionary()


def share(value: np.ndarray | jax.Array) -> SharedArray:
    """The shared array with these values; points that close over the same one share its copies.

    A NumPy array is copied to the default device: it may change, and a traced point must not.
    """
    if isinstance(value, jax.Array):
        found = _shared.get(id(value))
        if found is None or found.value is not value:
            found = _shared[id(value)] = SharedArray(value)
        return found
    given = _bytes_of(value)
    key = (value.shape, str(value.dtype), given[:: math.ceil(given.size / SAMPLE_BYTES)].tobytes())
    found = _shared.get(key)
    if found is None or not np.array_equal(given, _bytes_of(_on_host(found.value))):
        with _memory_error(value):
            found = _shared[key] = SharedArray(jax.device_put(value, may_alias=False))
    return found


def digest_of(array: np.ndarray) -> str:
    """SHA-256 of values, dtype and shape."""
    whole = hashlib.sha256(f"{array.dtype} {array.shape} ".encode())
    whole.update(_bytes_of(array).data)
    return whole.hexdigest()


def _memory_error(value: np.ndarray | jax.Array) -> Any:
    return memory_error(
        f"an array of {value.nbytes / 2**30:.3g} GiB that the point closes over does not fit into the memory of each "
        "device; take fewer of its rows, a smaller dtype, or a device with more memory"
    )


def _bytes_of(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _on_host(array: jax.Array) -> np.ndarray:
    """Through a view where one device has it all: JAX would keep what it brings from the device with the array."""
    return np.asarray(array.addressable_data(0) if array.is_fully_replicated else array)
