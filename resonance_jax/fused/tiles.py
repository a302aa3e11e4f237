"""One or a few warps for each run: an array of a run is a tile, padded to powers of two, spread over the threads."""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import Jaxpr

from resonance_jax.fused import backend
from resonance_jax.fused.program import Stream, Unsupported, inner_jaxprs, like

SMALLEST_DOT = 16  # sides of a matrix product on tensor cores
WARP_TILE = 1024  # entries of a tile that one warp holds: 32 for each thread
MOST_WARPS = 8
MOST_CARRIED = 4096  # padded entries that a loop carries, for each warp


class Tile(NamedTuple):
    """A padded array; padding is undefined and is masked before reductions."""

    padded: Array
    shape: tuple[int, ...]


def _padded(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(1 << max(n - 1, 0).bit_length() for n in shape)


def _masked(x: Tile, axes: Sequence[int], neutral: Any) -> Array:
    """The tile with its padding set to a neutral number."""
    array = x.padded
    for axis in axes:
        if array.shape[axis] > x.shape[axis]:
            inside = jax.lax.broadcasted_iota(jnp.int32, array.shape, axis) < x.shape[axis]
            array = jnp.where(inside, array, jnp.full(array.shape, neutral, array.dtype))
    return array


def _place(shape: Sequence[int], stride: int) -> tuple[Array, Array]:
    """Where the entries of an array lie in memory, and which entries are not padding."""
    padded = _padded(shape)
    place = jnp.zeros(padded, jnp.int32)
    inside = jnp.ones(padded, bool)
    for axis, n in enumerate(shape):
        index = jax.lax.broadcasted_iota(jnp.int32, padded, axis)
        place = place * n + index
        inside = inside & (index < n)
    return place * stride, inside


class Tiles:
    lanes = 1

    def __init__(self, precision: Any = jax.lax.DotAlgorithmPreset.TF32_TF32_F32_X3) -> None:
        """`precision` of products on tensor cores: by default full float32, as three products of TF32."""
        self.rules = RULES | {"dot_general": functools.partial(_dot, on_tensor_cores=precision)}

    def check(self, jaxpr: Jaxpr) -> int:
        num_warps = min(max(1, _largest(jaxpr) // WARP_TILE), MOST_WARPS)
        if _largest(jaxpr) > MOST_WARPS * WARP_TILE or _carried(jaxpr) > num_warps * MOST_CARRIED:
            raise Unsupported("more than a few warps hold")
        return num_warps

    def unroll(self, body: Jaxpr, length: int) -> int:
        return 1

    def lane(self) -> Array:
        return backend.program_id()

    def load(self, stream: Stream) -> Tile:
        if stream.shape == ():
            return Tile(backend.load(stream.ref, stream.offset), ())
        place, inside = _place(stream.shape, stream.stride)
        other = jnp.zeros((), stream.ref.dtype)
        return Tile(backend.load(stream.ref, stream.offset + place, mask=inside, other=other), stream.shape)

    def store(self, ref: Any, value: Tile, stride: int, lane: Array) -> None:
        if value.shape == ():
            backend.store(ref, lane, value.padded)
            return
        place, inside = _place(value.shape, stride)
        backend.store(ref, lane + place, value.padded, mask=inside)

    def constant(self, value: np.ndarray) -> Tile:
        if value.shape != ():
            raise Unsupported("an array of constants")
        return Tile(jnp.asarray(value), ())

    def elementwise(self, eqn: Any, operands: list[Tile]) -> Tile:
        shape = eqn.outvars[0].aval.shape
        arrays = [jnp.broadcast_to(op.padded, _padded(shape)) for op in operands]
        return Tile(eqn.primitive.bind(*arrays, **eqn.params), shape)

    def arrays(self, value: Tile) -> list[Array]:
        return [value.padded]

    def like(self, value: Tile, arrays: Iterator[Array]) -> Tile:
        return Tile(next(arrays), value.shape)


def _largest(jaxpr: Jaxpr) -> int:
    """Entries of the largest tile that the program computes."""
    most = 1
    for eqn in jaxpr.eqns:
        inner = inner_jaxprs(eqn)
        own = [] if inner else [math.prod(_padded(like(var).shape)) for var in eqn.outvars]
        most = max([most, *own, *map(_largest, inner)])
    return most


def _carried(jaxpr: Jaxpr) -> int:
    """Largest number of padded entries that a loop of the program carries."""
    most = 0
    for eqn in jaxpr.eqns:
        sizes = [math.prod(_padded(like(var).shape)) for var in eqn.outvars if eqn.primitive.name == "scan"]
        most = max([most, sum(sizes), *map(_carried, inner_jaxprs(eqn))])
    return most


def _broadcast(x: Tile, *, shape: Any, broadcast_dimensions: Any, **_: Any) -> Tile:
    return Tile(jax.lax.broadcast_in_dim(x.padded, _padded(shape), broadcast_dimensions), tuple(shape))


def _reshape(x: Tile, *, new_sizes: Any, **_: Any) -> Tile:
    if [n for n in x.shape if n > 1] != [n for n in new_sizes if n > 1]:
        raise Unsupported("a reshape that moves entries")
    return Tile(x.padded.reshape(_padded(new_sizes)), tuple(new_sizes))


def _squeeze(x: Tile, *, dimensions: Any, **_: Any) -> Tile:
    return _reshape(x, new_sizes=tuple(np.delete(x.shape, list(dimensions)).tolist()))


def _transpose(x: Tile, *, permutation: Any, **_: Any) -> Tile:
    return Tile(jnp.transpose(x.padded, permutation), tuple(x.shape[i] for i in permutation))


def _stack(*parts: Tile, axis: int, **_: Any) -> Tile:
    shape = (*parts[0].shape[:axis], len(parts), *parts[0].shape[axis:])
    index = jax.lax.broadcasted_iota(jnp.int32, _padded(shape), axis)
    rows = [jnp.broadcast_to(jnp.expand_dims(part.padded, axis), index.shape) for part in parts]
    array = functools.reduce(lambda array, i: jnp.where(index == i, rows[i], array), range(1, len(rows)), rows[0])
    return Tile(array, shape)


def _unstack(x: Tile, *, axis: int, **_: Any) -> list[Tile]:
    """Each row is extracted as the sum over all rows with the others set to 0."""
    index = jax.lax.broadcasted_iota(jnp.int32, x.padded.shape, axis)
    zero = jnp.zeros_like(x.padded)
    rows = [jnp.sum(jnp.where(index == i, x.padded, zero), axis) for i in range(x.shape[axis])]
    return [Tile(row.astype(zero.dtype), tuple(np.delete(x.shape, axis).tolist())) for row in rows]


def _reduce(how: Callable[..., Array], neutral: float) -> Callable[..., Tile]:
    def rule(x: Tile, *, axes: Any, **_: Any) -> Tile:
        array = _masked(x, axes, neutral)
        for axis in sorted(axes, reverse=True):
            array = how(array, axis)
        return Tile(array, tuple(n for i, n in enumerate(x.shape) if i not in axes))

    return rule


def _all(x: Tile, *, axes: Any, **_: Any) -> Tile:
    counted = _reduce(jnp.min, 1)(Tile(x.padded.astype(jnp.int32), x.shape), axes=axes)
    return Tile(counted.padded > 0, counted.shape)


def _dot(a: Tile, b: Tile, *, dimension_numbers: Any, on_tensor_cores: Any, **_: Any) -> Tile:
    (contract_a, contract_b), (batch, _) = dimension_numbers
    if batch or len(contract_a) != 1 or max(len(a.shape), len(b.shape)) > 2:
        raise Unsupported("a product of more than matrices")
    shape = tuple(np.delete(a.shape, contract_a[0]).tolist() + np.delete(b.shape, contract_b[0]).tolist())
    left, right = _masked(a, contract_a, 0), _masked(b, contract_b, 0)
    left = left.T if contract_a[0] == 0 and left.ndim > 1 else left  # (rows, inner)
    right = right.T if contract_b[0] == 1 else right  # (inner, columns)
    if left.ndim == right.ndim == 2 and min(*left.shape, *right.shape) >= SMALLEST_DOT and left.dtype == jnp.float32:
        return Tile(jax.lax.dot(left, right, precision=on_tensor_cores), shape)
    product = (left if left.ndim > 1 else left[None])[:, :, None] * (right if right.ndim > 1 else right[:, None])[None]
    if product.size > MOST_WARPS * WARP_TILE:
        raise Unsupported("a product too large to write out")
    return Tile(jnp.sum(product, 1).reshape(_padded(shape)), shape)


RULES: dict[str, Callable[..., Tile | list[Tile]]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": _squeeze,
    "transpose": _transpose,
    "stack": _stack,
    "unstack": _unstack,
    "reduce_sum": _reduce(jnp.sum, 0),
    "reduce_max": _reduce(jnp.max, -math.inf),
    "reduce_min": _reduce(jnp.min, math.inf),
    "reduce_and": _all,
}
