"""A thread for each run: an array of a run is the list of its entries, each a vector over the lanes."""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import Jaxpr

from resonance_jax.fused import backend
from resonance_jax.fused.program import Stream, Unsupported, inner_jaxprs, like, operations

LANES = 32  # one warp, so that few runs spread over the whole device
MOST_CARRIED = 96  # entries that a loop carries: they live in a thread's 255 registers
MOST_OPERATIONS = 6_000  # of one kernel, to limit the compile time
UNROLL = (5, 4, 2)  # steps of a short loop body that are unrolled, the first that divides the loop: loads start early
SHORT = 100  # operations of a short step


class Entries(NamedTuple):
    """An array as the list of its entries."""

    entries: list[Array]
    shape: tuple[int, ...]

    @property
    def numbers(self) -> np.ndarray:
        """The entries' positions; operations that move entries are applied to these."""
        return np.arange(len(self.entries)).reshape(self.shape)

    def take(self, numbers: np.ndarray) -> "Entries":
        return Entries([self.entries[i] for i in numbers.ravel()], numbers.shape)


class Threads:
    lanes = LANES

    def check(self, jaxpr: Jaxpr) -> int:
        if operations(jaxpr) > MOST_OPERATIONS or _carried(jaxpr) > MOST_CARRIED:
            raise Unsupported("more than a thread holds")
        return 1

    def unroll(self, body: Jaxpr, length: int) -> int:
        short = operations(body) <= SHORT and not any(eqn.primitive.name == "scan" for eqn in body.eqns)
        return next(n for n in (*UNROLL, 1) if length % n == 0) if short else 1

    def lane(self) -> Array:
        return backend.program_id() * LANES + jnp.arange(LANES, dtype=jnp.int32)

    def load(self, stream: Stream) -> Entries:
        if math.prod(stream.shape) > MOST_OPERATIONS:
            raise Unsupported("an array larger than a thread reads")
        places = [stream.offset + i * stream.stride for i in range(math.prod(stream.shape))]
        return Entries([backend.load(stream.ref, place) for place in places], stream.shape)

    def store(self, ref: Any, value: Entries, stride: int, lane: Array) -> None:
        for i, entry in enumerate(value.entries):
            backend.store(ref, i * stride + lane, entry, mask=lane < stride)

    def constant(self, value: np.ndarray) -> Entries:
        return Entries([jnp.full((LANES,), entry) for entry in value.ravel()], value.shape)

    def elementwise(self, eqn: Any, operands: list[Entries]) -> Entries:
        shape = eqn.outvars[0].aval.shape
        entries = [op.take(np.broadcast_to(op.numbers, shape)).entries for op in operands]
        return Entries([eqn.primitive.bind(*each, **eqn.params) for each in zip(*entries, strict=True)], shape)

    def arrays(self, value: Entries) -> list[Array]:
        return value.entries

    def like(self, value: Entries, arrays: Iterator[Array]) -> Entries:
        return Entries([next(arrays) for _ in value.entries], value.shape)

    @property
    def rules(self) -> dict[str, Callable[..., Entries | list[Entries]]]:
        return RULES


def _carried(jaxpr: Jaxpr) -> int:
    """Largest number of entries that a loop of the program carries."""
    most = 0
    for eqn in jaxpr.eqns:
        own = sum(like(var).size for var in eqn.outvars) if eqn.primitive.name == "scan" else 0
        most = max([most, own, *map(_carried, inner_jaxprs(eqn))])
    return most


def _move(how: Callable[..., np.ndarray]) -> Callable[..., Entries]:
    return lambda x, **params: x.take(how(x.numbers, **params))


def _broadcast(numbers: np.ndarray, *, shape: Any, broadcast_dimensions: Any, **_: Any) -> np.ndarray:
    sides = dict(zip(broadcast_dimensions, numbers.shape, strict=True))
    return np.broadcast_to(numbers.reshape([sides.get(i, 1) for i in range(len(shape))]), shape)


def _slice(numbers: np.ndarray, *, start_indices: Any, limit_indices: Any, strides: Any, **_: Any) -> np.ndarray:
    strides = strides or (1,) * numbers.ndim
    return numbers[tuple(slice(*each) for each in zip(start_indices, limit_indices, strides, strict=True))]


def _concatenate(*parts: Entries, dimension: int, **_: Any) -> Entries:
    before = np.cumsum([0] + [len(part.entries) for part in parts])
    numbers = np.concatenate([part.numbers + n for part, n in zip(parts, before[:-1], strict=True)], dimension)
    return Entries([entry for part in parts for entry in part.entries], ()).take(numbers)


def _stack(*parts: Entries, axis: int, **_: Any) -> Entries:
    return _concatenate(*(part.take(np.expand_dims(part.numbers, axis)) for part in parts), dimension=axis)


def _unstack(x: Entries, *, axis: int, **_: Any) -> list[Entries]:
    return [x.take(numbers) for numbers in np.moveaxis(x.numbers, axis, 0)]


def _split(x: Entries, *, sizes: Any, axis: int, **_: Any) -> list[Entries]:
    return [x.take(numbers) for numbers in np.split(x.numbers, np.cumsum(sizes)[:-1], axis)]


def _pad(x: Entries, fill: Entries, *, padding_config: Any, **_: Any) -> Entries:
    """Padding before, after and between entries; negative padding before or after cuts entries off."""
    sides = [n + max(n - 1, 0) * between for n, (_, _, between) in zip(x.shape, padding_config, strict=True)]
    numbers = np.full(sides, len(x.entries))
    numbers[tuple(slice(None, None, between + 1) for _, _, between in padding_config)] = x.numbers
    around = [(max(low, 0), max(high, 0)) for low, high, _ in padding_config]
    numbers = np.pad(numbers, around, constant_values=len(x.entries)) if around else numbers
    kept = zip(numbers.shape, padding_config, strict=True)
    numbers = numbers[tuple(slice(max(-low, 0), n - max(-high, 0)) for n, (low, high, _) in kept)]
    return Entries([*x.entries, *fill.entries], ()).take(numbers)


def _reduce(combine: Callable[[Any, Any], Any]) -> Callable[..., Entries]:
    def rule(x: Entries, *, axes: Any, **_: Any) -> Entries:
        kept = [i for i in range(len(x.shape)) if i not in axes]
        numbers = np.transpose(x.numbers, [*kept, *axes])
        shape = numbers.shape[: len(kept)]
        rows = numbers.reshape(math.prod(shape), -1)
        return Entries([functools.reduce(combine, [x.entries[i] for i in row]) for row in rows], shape)

    return rule


def _dot(a: Entries, b: Entries, *, dimension_numbers: Any, **_: Any) -> Entries:
    (contract_a, contract_b), (batch_a, batch_b) = dimension_numbers
    free_a = [i for i in range(len(a.shape)) if i not in (*contract_a, *batch_a)]
    free_b = [i for i in range(len(b.shape)) if i not in (*contract_b, *batch_b)]
    batch, rows, columns = ([x.shape[i] for i in axes] for x, axes in ((a, batch_a), (a, free_a), (b, free_b)))
    left = np.transpose(a.numbers, [*batch_a, *free_a, *contract_a]).reshape(math.prod(batch), math.prod(rows), -1)
    right = np.transpose(b.numbers, [*batch_b, *free_b, *contract_b]).reshape(math.prod(batch), math.prod(columns), -1)
    entries = [
        functools.reduce(jnp.add, [a.entries[i] * b.entries[j] for i, j in zip(row, column, strict=True)])
        for each_left, each_right in zip(left, right, strict=True)
        for row in each_left
        for column in each_right
    ]
    return Entries(entries, (*batch, *rows, *columns))


RULES: dict[str, Callable[..., Entries | list[Entries]]] = {
    "broadcast_in_dim": _move(_broadcast),
    "reshape": _move(lambda numbers, *, new_sizes, **_: numbers.reshape(new_sizes)),
    "squeeze": _move(lambda numbers, *, dimensions, **_: np.squeeze(numbers, tuple(dimensions))),
    "transpose": _move(lambda numbers, *, permutation, **_: np.transpose(numbers, permutation)),
    "slice": _move(_slice),
    "rev": _move(lambda numbers, *, dimensions, **_: np.flip(numbers, dimensions)),
    "concatenate": _concatenate,
    "stack": _stack,
    "unstack": _unstack,
    "split": _split,
    "pad": _pad,
    "reduce_sum": _reduce(jnp.add),
    "reduce_prod": _reduce(jnp.multiply),
    "reduce_max": _reduce(jnp.maximum),
    "reduce_min": _reduce(jnp.minimum),
    "reduce_and": _reduce(jnp.logical_and),
    "reduce_or": _reduce(jnp.logical_or),
    "dot_general": _dot,
}
