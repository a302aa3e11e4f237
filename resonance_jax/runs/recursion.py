"""A linear optimizer on least squares as a linear recursion of unlimited range, a block of steps at a time."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from resonance_jax.fused import fused
from resonance_jax.numerics import entrywise, logscale
from resonance_jax.numerics.entrywise import Vector
from resonance_jax.numerics.logscale import Scaled
from resonance_jax.optimizers.linear import LinearOptimizer
from resonance_jax.optimizers.numbers import weighted
from resonance_jax.optimizers.stepping import Coefficient, Row, stepping
from resonance_jax.problems.base import LeastSquares, Stream
from resonance_jax.runs import blocks
from resonance_jax.shifts.base import Shift

ENTRYWISE = 6  # weights up to which the state is one scalar per weight; with more, the program takes long to compile
UNIT = 62  # distances are summed in units of 2^62
PLAIN_GROWTH = 2.5  # of a step without gradients that needs no room of its own
HEADROOM = 75  # 25 steps start at 2^75 and reach 2^125 at most; below there is room to fall by 2^-8 a step


class _Block(NamedTuple):
    """What a block of steps needs; leaves of the first two have the steps in front."""

    curvature: Any  # B entry by entry, or what its product with the error is made of
    b: Any  # over 2^size_of_b
    truth: Any  # theta* over 2^size_of_b, where it drives the weights
    size_of_b: Array  # (), exponent of the largest of the two
    growth: Array  # (), exponent of the power of two that each step is divided by
    shrink: Array  # (), its inverse


class Run(NamedTuple):
    """A run on its way."""

    state: Scaled  # x and the buffers of `optimizers.stepping`, v first
    room: Array  # exponent that the next block lifts xi by; found beforehand, so that it is computed once
    source_state: Any
    total: Scaled  # sum of ||theta_k - theta*|| so far
    k: Array  # steps done, int32


class Recursion(NamedTuple):
    """A run as a start and a way on."""

    start: Run
    advance: Callable[..., Run]  # run, num_steps, tail=0 -> the run that much later, its last `tail` distances summed
    phase_space: Callable[[Run], Scaled]  # run -> (e, v, other buffers) of its last step


def recursion(
    key: Array,
    *,
    source: Shift | Stream,
    problem: LeastSquares,
    optimizer: LinearOptimizer,
    driven: bool = True,
) -> Recursion:
    """The recursion that `oscillate` documents, from its start.

    Args:
        key: of the run.
        source: of the inputs: a shift, or the problem's stream.
        problem: the sequence of gradients.
        optimizer: who fits.
        driven: False leaves out what does not depend on the error, observation noise and the pull of decaying weights
            towards 0: it adds to a run and does not change how the run grows.
    """
    dtype = jnp.result_type(float)
    weights_key, start_key, shift_key, noise_key = jax.random.split(key, 4)
    keys = (noise_key, shift_key)
    small = problem.num_weights <= ENTRYWISE
    stepped = stepping(optimizer)
    base, ahead, of_x, of_buffers, pull = stepped
    decays = driven and stepped.decays
    beyond = _beyond_momentum((of_x, *of_buffers), dtype)
    theta_star, theta_0 = problem.weights(weights_key)

    def entries(vector: Array) -> Vector:
        return entrywise.vector(vector) if small else (vector,)

    def moved(x: Vector, v: Vector) -> Vector:
        """e = (x + v) + ahead v; x + v is x' as well for the usual kinds of momentum, and computed once."""
        both = [weighted([(1.0, one), (base, other)]) for one, other in zip(x, v, strict=True)]
        return tuple(weighted([(1.0, one), (ahead, other)]) for one, other in zip(both, v, strict=True))

    def advance(run: Run, num_steps: int, tail: int = 0) -> Run:
        run = blocks.repeat(functools.partial(steps, measure=False), run, num_steps - tail)
        return blocks.repeat(functools.partial(steps, measure=True), run, tail)

    def steps(run: Run, num_blocks: int, length: int, measure: bool) -> Run:
        """Blocks of `length` steps, from one rescaling to the next; what they need is prepared for all of them."""

        def by_block(tree: Any) -> Any:
            return jax.tree.map(lambda leaf: leaf.reshape(num_blocks, length, *leaf.shape[1:]), tree)

        k = run.k + jnp.arange(num_blocks * length, dtype=jnp.int32)
        moments, inputs, source_state = blocks.draw(problem.draw, source, keys, k, run.source_state)
        B = jax.vmap(problem.matrix)(moments, inputs) if small else ()
        b = jax.vmap(problem.kick)(moments, inputs) if driven else None

        # A step multiplies the state by at most 2 + 2 pull tr B. Dividing each step by the power of two below
        # 1 + pull tr B, which is 1 unless eta is absurdly large, keeps the growth of a block below 4^length for every
        # eta. Momentum does not enter: cells that differ in it alone share these numbers, which halves the time of a
        # sweep on a CPU.
        trace = sum(B[i][i] for i in range(len(B))) if small else jax.vmap(problem.trace)(moments, inputs)
        largest = 1 + jnp.abs(jnp.asarray(pull, dtype)) * jnp.max(by_block(trace), axis=1)
        growth = logscale.exponent_of(largest if beyond is None else largest + beyond)
        size_of_b = jnp.full((num_blocks,), logscale.ZERO_EXPONENT)
        truth = None
        if decays:
            size_of_b = jnp.maximum(size_of_b, logscale.exponent_of(jnp.max(jnp.abs(theta_star))))
        if b is not None:
            b = by_block(b)
            largest = functools.reduce(jnp.maximum, (jnp.max(jnp.abs(x), axis=1) for x in b))
            size_of_b = jnp.maximum(size_of_b, logscale.exponent_of(largest))
            b = jax.vmap(logscale.shift_by)(b, -size_of_b)
            b = b if small else (jnp.stack(b, axis=-1),)
        if decays:
            truth = jax.vmap(lambda size: entries(logscale.shift_by(theta_star, -size)))(size_of_b)
        curvature = by_block(B if small else (moments, inputs))
        drawn = _Block(curvature, b, truth, size_of_b, growth, logscale.power_of_two(-growth, dtype))

        @fused
        def all_blocks(state: tuple[Scaled, Array, Scaled], drawn: _Block) -> tuple[Scaled, Array, Scaled]:
            return jax.lax.scan(
                lambda state, block: (advance_block(*state, block, length, measure), None), state, drawn
            )[0]

        state, room, so_far = all_blocks((run.state, run.room, run.total), drawn)
        return Run(state, room, source_state, so_far, run.k + num_blocks * length)

    def advance_block(
        state: Scaled, room: Array, so_far: Scaled, block: _Block, length: int, measure: bool
    ) -> tuple[Scaled, Array, Scaled]:
        """`length` steps from one rescaling to the next."""
        curvature, b, truth, size_of_b, growth, shrink = block
        if b is not None or decays:
            largest_kick = size_of_b + logscale.exponent_of(_largest_kick((of_x, *of_buffers), dtype)) + 1
            room = jnp.minimum(room, state.exponent - largest_kick + HEADROOM)
        half = (room - growth) >> 1  # one power of two does not reach from the smallest to the largest number
        lift = logscale.power_of_two(half, dtype)
        x, buffers = jax.tree.map(lambda each: each * lift * lift, state.mantissa)
        exponent = state.exponent - 2 * half
        kick_scale = logscale.power_of_two(size_of_b - exponent, dtype)

        def step(carry: tuple[Any, ...], drawn: tuple[Any, Any]) -> tuple[Any, None]:
            x, buffers, sum_of_norms, kick_scale = carry
            curvature, b = drawn
            x = tuple(shrink * each for each in x)
            error = moved(x, buffers[0])
            gradient = entrywise.matvec(curvature, error) if small else (problem.product(*curvature, *error),)
            if b is not None:
                gradient = tuple(g - kick_scale * kick for g, kick in zip(gradient, b, strict=True))

            def combined(row: Row, factor: Coefficient) -> Vector:
                """`factor` times what a row says, for each weight."""
                known = [
                    (row.x, x),
                    (row.error, error),
                    (row.gradient, gradient),
                    *zip(row.buffers, buffers, strict=True),
                ]
                if truth is not None:
                    known.append((weighted([(row.truth, kick_scale)]), truth))
                scaled = [(weighted([(number, factor)]), each) for number, each in known]
                return tuple(weighted((number, each[i]) for number, each in scaled) for i in range(len(error)))

            x, buffers = combined(of_x, 1.0), tuple(combined(row, shrink) for row in of_buffers)
            if measure:
                squares = sum(jnp.sum((unit * e) ** 2) for e in moved(tuple(shrink * each for each in x), buffers[0]))
                sum_of_norms = shrink * sum_of_norms + logscale.root(squares, least)
            if b is not None or decays:
                kick_scale = shrink * kick_scale
            return (x, buffers, sum_of_norms, kick_scale), None

        # Distances are summed in units of 2^UNIT, so that the squares of all that a block may reach, from 2^-1 to
        # 2^125, are normal numbers; smaller ones are left out. A growth is never below 0; written as a constant, the
        # unit would be squared by XLA, and vanish.
        unit = logscale.power_of_two(jnp.minimum(growth, 0) - UNIT, dtype)
        least = float(jnp.finfo(dtype).tiny)

        # Inside the block x is one division behind the buffers, and catches up when the weights move.
        x = tuple(logscale.power_of_two(growth, dtype) * each for each in x)
        carry = (x, buffers, jnp.zeros((), dtype), kick_scale)
        (x, buffers, sum_of_norms, _), _ = jax.lax.scan(step, carry, (curvature, b))
        x = tuple(shrink * each for each in x)
        exponent = exponent + length * growth
        if measure:
            # An absurdly large step grows by far less than its bound, and what was summed may have been left out. The
            # last distance is part of the sum, and outgrows the others then.
            last = logscale.norm(moved(x, buffers[0]))
            own = Scaled(last, exponent), Scaled(sum_of_norms, exponent + UNIT)
            more = jax.tree.map(functools.partial(jnp.where, unit * last >= sum_of_norms), *own)
            so_far = logscale.add(so_far, more)
        return Scaled((x, buffers), exponent), logscale.room((x, buffers), HEADROOM), so_far

    x = entries(theta_0 - theta_star)
    start = Scaled((x, (jax.tree.map(jnp.zeros_like, x),) * len(of_buffers)), jnp.int32(0))
    room = logscale.room(start.mantissa, HEADROOM)
    run = Run(start, room, source.init(start_key), Scaled(jnp.zeros((), dtype), jnp.int32(0)), jnp.int32(0))

    def phase_space(run: Run) -> Scaled:
        (x, buffers), exponent = run.state
        return Scaled((moved(x, buffers[0]), *buffers), exponent)

    return Recursion(run, advance, phase_space)


def _beyond_momentum(rows: tuple[Row, ...], dtype: Any) -> Array | None:
    """How much more than momentum a step may grow by without a gradient: by decaying weights, or plain large numbers.

    None where it does not, so that nothing is added. A traced momentum counts as momentum; one above 3 may leave the
    range of floats within a block.
    """
    found = []
    for row in rows:
        plain = sum(abs(each) for each in (row.x, 3 * row.error, *row.buffers) if isinstance(each, float))
        traced = [jnp.abs(each) for each in (row.x, 3 * row.error) if not isinstance(each, float)]
        if traced or plain > PLAIN_GROWTH:
            found.append(jnp.maximum(sum(traced, jnp.asarray(plain, dtype)) - PLAIN_GROWTH, 0))
    return functools.reduce(jnp.maximum, found) if found else None


def _largest_kick(rows: tuple[Row, ...], dtype: Any) -> Array:
    """The largest number that b and theta* are multiplied by."""
    numbers = [jnp.abs(jnp.asarray(each, dtype)) for row in rows for each in (row.gradient, row.truth)]
    return functools.reduce(jnp.maximum, numbers)
