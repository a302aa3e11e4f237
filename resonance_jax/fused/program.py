"""A traced program as a kernel: its loops become loops of the kernel, its primitives follow the rules of `Values`."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from resonance_jax.fused import backend

CALLS = {"jit", "closed_call", "eval_jaxpr", "custom_jvp_call", "custom_vjp_call", "remat2"}
SAME = {"copy", "stop_gradient"}  # inside a kernel the result is the operand
# fmt: off
ELEMENTWISE = {
    "abs", "neg", "sign", "floor", "ceil", "exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "rsqrt", "cbrt",
    "square", "pow", "integer_pow", "sin", "cos", "tan", "tanh", "logistic", "add", "sub", "mul", "div", "rem", "max",
    "min", "and", "or", "xor", "not", "eq", "ne", "gt", "ge", "lt", "le", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "add_any", "select_n", "clamp", "is_finite", "convert_element_type", "bitcast_convert_type",
    "one_minus_square",
}
# fmt: on


class Unsupported(Exception):
    """A program that a form of values cannot hold."""


class Stream(NamedTuple):
    """An array of each run in memory; inside a loop over its first axis, one slice of it."""

    ref: Any
    shape: tuple[int, ...]
    stride: int  # from one entry to the next: axes of entries come before those of lanes
    offset: Array  # of the first entry, for each lane

    def at(self, i: Array | int) -> "Stream":
        rest = self.shape[1:]
        return self._replace(shape=rest, offset=self.offset + i * (math.prod(rest) * self.stride))


class Values(Protocol):
    """How the arrays of a run are held in a kernel, and what the primitives of JAX do with them.

    A value has the `shape` of the array that it represents.
    """

    lanes: int  # runs in one program of the kernel
    rules: dict[str, Callable[..., Any]]  # name of a primitive -> its rule for values; a list if it has several results

    def check(self, jaxpr: Jaxpr) -> int:
        """The number of warps that suits a program; Unsupported if it is too large."""
        ...

    def unroll(self, body: Jaxpr, length: int) -> int: ...

    def lane(self) -> Array: ...

    def load(self, stream: Stream) -> Any: ...

    def store(self, ref: Any, value: Any, stride: int, lane: Array) -> None: ...

    def constant(self, value: np.ndarray) -> Any: ...

    def elementwise(self, eqn: Any, operands: list[Any]) -> Any: ...

    def arrays(self, value: Any) -> list[Array]:
        """The arrays that a loop carries for the value."""
        ...

    def like(self, value: Any, arrays: Iterator[Array]) -> Any:
        """The value that these arrays carry."""
        ...


def like(var: Any) -> jax.ShapeDtypeStruct:
    """Shape and dtype of a variable of a program."""
    return jax.ShapeDtypeStruct(var.aval.shape, var.aval.dtype)


def argument_shapes(jaxpr: Jaxpr) -> list[tuple[int, ...]]:
    return [like(var).shape for var in (*jaxpr.constvars, *jaxpr.invars)]


def lanes_of(args: Sequence[Any], jaxpr: Jaxpr) -> tuple[int, ...]:
    shapes = argument_shapes(jaxpr)
    return np.broadcast_shapes(*(arg.shape[len(shape) :] for arg, shape in zip(args, shapes, strict=True)))


def inner_jaxprs(eqn: Any) -> list[Jaxpr]:
    inner = [eqn.params[name] for name in ("jaxpr", "call_jaxpr", "fun_jaxpr") if name in eqn.params]
    return [one.jaxpr if isinstance(one, ClosedJaxpr) else one for one in inner]


def has_while(jaxpr: Jaxpr) -> bool:
    """Whether a loop of the program has a length that is only known when it runs."""
    return any(eqn.primitive.name == "while" or any(map(has_while, inner_jaxprs(eqn))) for eqn in jaxpr.eqns)


def operations(jaxpr: Jaxpr) -> int:
    """How many numbers the program computes, with one step of each loop."""
    total = 0
    for eqn in jaxpr.eqns:
        inner = inner_jaxprs(eqn)
        total += sum(map(operations, inner)) if inner else sum(like(var).size for var in eqn.outvars)
        if eqn.primitive.name == "dot_general":
            total += like(eqn.invars[0]).size * like(eqn.invars[1]).size  # at most
    return total


def kernel(values: Values, *args: Any, jaxpr: Jaxpr, rank: int, interpret: bool = False) -> list[Any]:
    """The program as one kernel; Unsupported if it has primitives without a rule."""
    lanes, shapes = lanes_of(args, jaxpr), argument_shapes(jaxpr)
    total = math.prod(lanes)
    outs = [jax.ShapeDtypeStruct(out.shape + lanes, out.dtype) for out in map(like, jaxpr.outvars)]
    if max(array.size for array in (*args, *outs)) >= 2**31:
        raise Unsupported("addresses of more than 32 bits")
    num_warps = values.check(jaxpr)
    in_place = _in_place(args, outs, len(jaxpr.constvars))

    def program(*refs: Any) -> None:
        lane = values.lane()
        place = _unravel(jnp.minimum(lane, total - 1), lanes)
        inputs: list[Any] = []
        for i, (arg, shape) in enumerate(zip(args, shapes, strict=True)):
            sides = arg.shape[len(shape) :]
            stream = Stream(refs[i], shape, math.prod(sides), _ravel(place, sides, jnp.zeros_like(lane)))
            inputs.append(values.load(stream) if i in in_place else stream)  # before anything is stored there
        results = _evaluate(values, jaxpr, inputs)
        for ref, result in zip(refs[len(args) :], results, strict=True):
            values.store(ref, _loaded(values, result), total, lane)

    flat = backend.call(
        program,
        *(arg.reshape(-1) for arg in args),
        num_programs=-(-total // values.lanes),
        outs=[jax.ShapeDtypeStruct((out.size,), out.dtype) for out in outs],
        in_place=in_place,
        num_warps=num_warps,
        interpret=interpret,
    )
    return [value.reshape(out.shape) for value, out in zip(flat, outs, strict=True)]


def _in_place(args: Sequence[Any], outs: Sequence[Any], num_consts: int) -> dict[int, int]:
    """Arguments whose memory an output reuses, so that a loop outside carries its state without copies."""
    pairs: dict[int, int] = {}
    for j, out in enumerate(outs):
        fits = (i for i in range(num_consts, len(args)) if (args[i].shape, args[i].dtype) == (out.shape, out.dtype))
        i = next((i for i in fits if i not in pairs), None)
        if i is not None:
            pairs[i] = j
    return pairs


def _unravel(index: Array, sides: Sequence[int]) -> list[Array]:
    place: list[Array] = []
    for side in reversed(sides):
        place.insert(0, jax.lax.rem(index, jnp.full_like(index, side)))
        index = jax.lax.div(index, jnp.full_like(index, side))
    return place


def _ravel(place: Sequence[Array], sides: Sequence[int], offset: Array) -> Array:
    for index, side in zip(place, sides, strict=True):
        offset = offset * side + index if side > 1 else offset
    return offset


def _loaded(values: Values, value: Any) -> Any:
    return values.load(value) if isinstance(value, Stream) else value


def _evaluate(values: Values, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    """The program on values. Streams are passed on to the loops that read them."""
    known: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), args, strict=True))

    def read(atom: Any) -> Any:
        return values.constant(np.asarray(atom.val, like(atom).dtype)) if isinstance(atom, Literal) else known[atom]

    for eqn in jaxpr.eqns:
        name, operands = eqn.primitive.name, [read(atom) for atom in eqn.invars]
        if name == "scan":
            results = _scan(values, operands, **eqn.params)
        elif name in CALLS:
            (inner,) = inner_jaxprs(eqn)
            results = _evaluate(values, inner, operands)  # consts of a call are among its operands
        elif name in SAME:
            results = operands
        elif name in ELEMENTWISE:
            results = [values.elementwise(eqn, [_loaded(values, operand) for operand in operands])]
        elif name == "iota":
            indices = np.indices(eqn.params["shape"])[eqn.params["dimension"]]
            results = [values.constant(indices.astype(eqn.params["dtype"]))]
        elif name in values.rules:
            results = values.rules[name](*(_loaded(values, operand) for operand in operands), **eqn.params)
            results = results if eqn.primitive.multiple_results else [results]
        else:
            raise Unsupported(name)
        known |= zip(eqn.outvars, results, strict=True)
    return [read(atom) for atom in jaxpr.outvars]


def _scan(values: Values, operands: list[Any], *, jaxpr: Any, length: int, reverse: bool, **_: Any) -> list[Any]:
    # Constants, then the carry, then the arrays that it runs over, which have one axis more than the body sees.
    num_xs = sum(operand.shape != aval.shape for operand, aval in zip(operands, jaxpr.in_avals, strict=True))
    num_carry = len(jaxpr.out_avals)
    consts, start, xs = _split(operands, len(operands) - num_carry - num_xs, num_carry)
    if reverse or jaxpr.consts or [value.shape for value in start] != [aval.shape for aval in jaxpr.out_avals]:
        raise Unsupported("a loop that runs backwards or keeps what it passes")
    if not all(isinstance(x, Stream) for x in xs):
        raise Unsupported("a loop over what the kernel computes")
    consts = [_loaded(values, const) if const.shape == () else const for const in consts]  # once, not in every step
    start = [_loaded(values, value) for value in start]
    unroll = values.unroll(jaxpr.jaxpr, length)

    def steps(j: Array, arrays: list[Array]) -> list[Array]:
        for i in range(unroll):
            rest = iter(arrays)
            carry = [values.like(value, rest) for value in start]
            results = _evaluate(values, jaxpr.jaxpr, [*consts, *carry, *(x.at(j * unroll + i) for x in xs)])
            arrays = [array for result in results for array in values.arrays(_loaded(values, result))]
        return arrays

    begin = [array for value in start for array in values.arrays(value)]
    rest = iter(jax.lax.fori_loop(jnp.int32(0), jnp.int32(length // unroll), steps, begin))
    return [values.like(value, rest) for value in start]


def _split(items: list[Any], *sizes: int) -> list[list[Any]]:
    ends = [0, *itertools.accumulate(sizes), len(items)]
    return [items[begin:end] for begin, end in itertools.pairwise(ends)]
