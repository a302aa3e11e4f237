"""A function of one run as one GPU kernel, with its loops inside and its state in registers.

XLA launches a kernel for every step of a loop, and for a few weights the launch takes most of the time. `fused(f)`
computes the same as `f`, and `vmap` batches it as usual. On a CPU it is `f`. On an NVIDIA GPU the traced program of `f`
becomes one Pallas kernel: a thread for each run if a run is a few numbers (`threads`), a warp for each run if it is a
small network (`tiles`). A program that fits neither form is left to XLA.
"""

import functools
import itertools
import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

from resonance_jax.fused.backend import quiet
from resonance_jax.fused.program import Unsupported, argument_shapes, has_while, kernel, lanes_of, like
from resonance_jax.fused.threads import Threads
from resonance_jax.fused.tiles import Tiles

__all__ = ["fused"]

CPU_LANES = 12_500  # runs that a core computes together, so that their state stays in its cache
RAGGED_LANES = 1_000  # the same where a loop has a traced length: all runs wait for the longest one

logger = logging.getLogger(__name__)  # DEBUG: the form of each program; INFO: forms that failed
_fused = Primitive("fused")
_fused.multiple_results = True


def fused(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` as one kernel where that is possible. Values that it closes over are treated as arguments.

    >>> def cube(x):
    ...     return jax.lax.fori_loop(0, 2, lambda _, y: y * x, x)
    >>> jax.vmap(fused(cube))(jnp.array([1.0, 2.0])).tolist()
    [1.0, 8.0]
    """

    def call(*args: Any) -> Any:
        flat, tree = jax.tree.flatten(args)
        closed, out = jax.make_jaxpr(lambda *flat: function(*tree.unflatten(flat)), return_shape=True)(*flat)
        outputs = _fused.bind(*closed.consts, *flat, jaxpr=closed.jaxpr, rank=0)
        return jax.tree.unflatten(jax.tree.structure(out), outputs)

    return call


# The primitive. Its arguments are those of one run, followed by `rank` axes of lanes, each of full length or length 1.


def plain(*args: Any, jaxpr: Jaxpr, rank: int) -> list[Any]:
    """The program for XLA: `vmap` over the axes of lanes, one after another."""
    lanes, shapes = lanes_of(args, jaxpr), argument_shapes(jaxpr)
    num_consts = len(jaxpr.constvars)
    out_ranks = [like(var).ndim for var in jaxpr.outvars]

    def run(*args: Any) -> list[Any]:
        return jaxpr_as_fun(ClosedJaxpr(jaxpr, args[:num_consts]))(*args[num_consts:])

    sides = [arg.shape[len(shape) :] for arg, shape in zip(args, shapes, strict=True)]
    for axis in reversed(range(rank)):
        if lanes[axis] > 1:
            in_axes = tuple(len(shape) if side[axis] > 1 else None for shape, side in zip(shapes, sides, strict=True))
            run = jax.vmap(run, in_axes=in_axes, out_axes=out_ranks)
    squeezed = [
        arg.reshape(*shape, *(n for n in side if n > 1)) for arg, shape, side in zip(args, shapes, sides, strict=True)
    ]
    return [out.reshape(out.shape[:ndim] + lanes) for out, ndim in zip(run(*squeezed), out_ranks, strict=True)]


def tiled(*args: Any, jaxpr: Jaxpr, rank: int) -> list[Any]:
    """The program on a CPU: a group of lanes at a time, so that the state of a loop stays in the cache."""
    lanes, shapes = lanes_of(args, jaxpr), argument_shapes(jaxpr)
    total = math.prod(lanes)
    most = RAGGED_LANES if has_while(jaxpr) else CPU_LANES
    if total <= most:
        return plain(*args, jaxpr=jaxpr, rank=rank)
    axis = next(i for i, n in enumerate(lanes) if n > 1)
    parts = next((n for n in range(2, lanes[axis]) if lanes[axis] % n == 0 and total <= n * most), lanes[axis])

    def cut(arg: Any, i: Any, at: int) -> Any:
        whole = arg.shape[at]
        return arg if whole == 1 else jax.lax.dynamic_slice_in_dim(arg, i * (whole // parts), whole // parts, at)

    def part(i: Any) -> list[Any]:
        return tiled(*map(cut, args, itertools.repeat(i), (len(s) + axis for s in shapes)), jaxpr=jaxpr, rank=rank)

    outputs = jax.lax.map(part, jnp.arange(parts, dtype=jnp.int32))
    places = [like(var).ndim + axis for var in jaxpr.outvars]
    return [
        jnp.moveaxis(out, 0, at).reshape(*out.shape[1 : at + 1], -1, *out.shape[at + 2 :])
        for out, at in zip(outputs, places, strict=True)
    ]


def _abstract(*args: Any, jaxpr: Jaxpr, rank: int) -> list[Any]:
    avals: list[Any] = [var.aval for var in jaxpr.outvars]
    return [aval.update(shape=aval.shape + lanes_of(args, jaxpr)) for aval in avals]


def _batch(args: Sequence[Any], axes: Sequence[Any], *, jaxpr: Jaxpr, rank: int) -> tuple[list[Any], list[int]]:
    """A new axis becomes the first of the lanes, since `vmap` adds axes from the innermost to the outermost."""
    placed = [
        jnp.expand_dims(arg, len(shape)) if axis is None else jnp.moveaxis(arg, axis, len(shape))
        for arg, axis, shape in zip(args, axes, argument_shapes(jaxpr), strict=True)
    ]
    return _fused.bind(*placed, jaxpr=jaxpr, rank=rank + 1), [like(var).ndim for var in jaxpr.outvars]


def _differentiate(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    return jax.jvp(functools.partial(plain, **params), tuple(primals), tuple(map(ad.instantiate_zeros, tangents)))


def _lower_for_cuda(ctx: Any, *args: Any, **params: Any) -> Any:
    """The first form that can hold the program; XLA if none can, or if it fails for any reason."""
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in ctx.avals_in]
    what = _described(params["jaxpr"])
    for values in (Threads(), Tiles()):
        form = type(values).__name__
        try:
            with quiet():
                traced = jax.jit(functools.partial(kernel, values, **params)).trace(*shapes)
                traced.lower(lowering_platforms=("cuda",))  # apart: a failure may leave half a function behind
        except Unsupported as reason:
            logger.debug("%s cannot hold %s: %s", form, what, reason)
        except Exception as error:  # a version of JAX without the backend, or a primitive that it does not support
            logger.info("%s failed for %s: %s: %s", form, what, type(error).__name__, error)
        else:
            logger.debug("%s takes %s", form, what)
            with quiet():
                return mlir.lower_fun(jaxpr_as_fun(traced.jaxpr), multiple_results=True)(ctx, *args)
    logger.debug("%s takes %s", "XLA", what)
    return mlir.lower_fun(functools.partial(plain, **params), multiple_results=True)(ctx, *args)


def _described(jaxpr: Jaxpr) -> str:
    return f"a program with the outputs {', '.join(str(var.aval) for var in jaxpr.outvars)}"


_fused.def_impl(lambda *args, **params: jax.jit(functools.partial(_fused.bind, **params))(*args))
_fused.def_abstract_eval(_abstract)
batching.primitive_batchers[_fused] = _batch
ad.primitive_jvps[_fused] = _differentiate
mlir.register_lowering(_fused, mlir.lower_fun(plain, multiple_results=True))
mlir.register_lowering(_fused, mlir.lower_fun(tiled, multiple_results=True), platform="cpu")
mlir.register_lowering(_fused, _lower_for_cuda, platform="cuda")
