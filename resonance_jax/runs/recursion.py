"""SGD with momentum on least squares as a linear recursion of unlimited range, a block of steps at a time."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from resonance_jax.fused import fused
from resonance_jax.numerics import entrywise, logscale
from resonance_jax.numerics.logscale import Scaled
from resonance_jax.problems.base import LeastSquares, Stream
from resonance_jax.runs import blocks
from resonance_jax.shifts.base import Shift

ENTRYWISE = 6  # weights up to which the state is one scalar per weight; with more, the program takes long to compile
UNIT = 62  # distances are summed in units of 2^62
HEADROOM = 75  # 25 steps start at 2^75 and reach 2^125 at most; below there is room to fall by 2^-8 a step


class _Block(NamedTuple):
    """What a block of steps needs; leaves of the first two have the steps in front."""

    curvature: Any  # B entry by entry, or what its product with the error is made of
    b: Any  # over 2^size_of_b
    size_of_b: Array  # (), exponent of the largest
    growth: Array  # (), exponent of the power of two that each step is divided by
    shrink: Array  # (), its inverse


class Run(NamedTuple):
    """A run on its way."""

    phase_space: Scaled  # e_k and v_{k+1}: the sum of them is left to the next step, which needs it and stores less
    room: Array  # exponent that the next block lifts xi by; found beforehand, so that it is computed once
    source_state: Any
    total: Scaled  # sum of ||theta_k - theta*|| so far
    k: Array  # steps done, int32


class Recursion(NamedTuple):
    """A run as a start and a way on."""

    start: Run
    advance: Callable[..., Run]  # run, num_steps, tail=0 -> the run that much later, its last `tail` distances summed
    phase_space: Callable[[Run], Scaled]  # run -> (e, v) of its last step


def recursion(key: Array, *, source: Shift | Stream, problem: LeastSquares, mu: Array, eta: Array) -> Recursion:
    """The recursion that `oscillate` documents, from its start, on inputs of a shift or of the problem's stream."""
    dtype = mu.dtype
    weights_key, start_key, shift_key, noise_key = jax.random.split(key, 4)
    keys = (noise_key, shift_key)
    small = problem.num_weights <= ENTRYWISE

    def entries(vector: Array) -> tuple[Array, ...]:
        return entrywise.vector(vector) if small else (vector,)

    def move(error: tuple[Array, ...], velocity: tuple[Array, ...], shrink: Array) -> tuple[Array, ...]:
        return tuple(shrink * e + v for e, v in zip(error, velocity, strict=True))

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
        b = jax.vmap(problem.kick)(moments, inputs)

        # A step multiplies xi by at most 2 + 2 eta tr B. Dividing each step by the power of two below 1 + eta tr B,
        # which is 1 unless eta is absurdly large, keeps the growth of a block below 4^length for every eta.
        trace = sum(B[i][i] for i in range(len(B))) if small else jax.vmap(problem.trace)(moments, inputs)
        growth = logscale.exponent_of(1 + eta * jnp.max(by_block(trace), axis=1))
        size_of_b = jnp.full((num_blocks,), logscale.ZERO_EXPONENT)
        if b is not None:
            b = by_block(b)
            size_of_b = logscale.exponent_of(functools.reduce(jnp.maximum, (jnp.max(jnp.abs(x), axis=1) for x in b)))
            b = jax.vmap(logscale.shift_by)(b, -size_of_b)
            b = b if small else (jnp.stack(b, axis=-1),)
        curvature = by_block(B if small else (moments, inputs))
        drawn = _Block(curvature, b, size_of_b, growth, logscale.power_of_two(-growth, dtype))

        @fused
        def all_blocks(state: tuple[Scaled, Array, Scaled], drawn: _Block) -> tuple[Scaled, Array, Scaled]:
            return jax.lax.scan(
                lambda state, block: (advance_block(*state, block, length, measure), None), state, drawn
            )[0]

        phase_space, room, total = all_blocks((run.phase_space, run.room, run.total), drawn)
        return Run(phase_space, room, source_state, total, run.k + num_blocks * length)

    def advance_block(
        phase_space: Scaled, room: Array, total: Scaled, block: _Block, length: int, measure: bool
    ) -> tuple[Scaled, Array, Scaled]:
        """`length` steps from one rescaling to the next."""
        curvature, b, size_of_b, growth, shrink = block
        if b is not None:
            largest_kick = size_of_b + logscale.exponent_of(eta) + 1  # of eta b
            room = jnp.minimum(room, phase_space.exponent - largest_kick + HEADROOM)
        half = (room - growth) >> 1  # one power of two does not reach from the smallest to the largest number
        lift = logscale.power_of_two(half, dtype)
        error, velocity = jax.tree.map(lambda x: x * lift * lift, phase_space.mantissa)
        exponent = phase_space.exponent - 2 * half
        kick_scale = logscale.power_of_two(size_of_b - exponent, dtype)

        def step(carry: tuple[Any, ...], drawn: tuple[Any, Any]) -> tuple[Any, None]:
            error, velocity, sum_of_norms, kick_scale = carry
            curvature, b = drawn
            error = move(error, velocity, shrink)
            gradient = entrywise.matvec(curvature, error) if small else (problem.product(*curvature, *error),)
            if b is not None:
                gradient = tuple(g - kick_scale * kick for g, kick in zip(gradient, b, strict=True))
                kick_scale = shrink * kick_scale
            velocity = tuple((shrink * mu) * v - (shrink * eta) * g for v, g in zip(velocity, gradient, strict=True))
            if measure:
                squares = sum(jnp.sum((unit * e) ** 2) for e in move(error, velocity, shrink))
                sum_of_norms = shrink * sum_of_norms + logscale.root(squares, least)
            return (error, velocity, sum_of_norms, kick_scale), None

        # Distances are summed in units of 2^UNIT, so that the squares of all that a block may reach, from 2^-1 to
        # 2^125, are normal numbers; smaller ones are left out. A growth is never below 0; written as a constant, the
        # unit would be squared by XLA, and vanish.
        unit = logscale.power_of_two(jnp.minimum(growth, 0) - UNIT, dtype)
        least = float(jnp.finfo(dtype).tiny)

        # Inside the block the error is one division behind the velocity, and catches up when it moves.
        error = tuple(logscale.power_of_two(growth, dtype) * e for e in error)
        state = (error, velocity, jnp.zeros((), dtype), kick_scale)
        (error, velocity, sum_of_norms, _), _ = jax.lax.scan(step, state, (curvature, b))
        error = tuple(shrink * e for e in error)
        exponent = exponent + length * growth
        if measure:
            # An absurdly large step grows by far less than its bound, and what was summed may have been left out. The
            # last distance is part of the sum, and outgrows the others then.
            last = logscale.norm(move(error, velocity, jnp.ones((), dtype)))
            own = Scaled(last, exponent), Scaled(sum_of_norms, exponent + UNIT)
            more = jax.tree.map(functools.partial(jnp.where, unit * last >= sum_of_norms), *own)
            total = logscale.add(total, more)
        return Scaled((error, velocity), exponent), logscale.room((error, velocity), HEADROOM), total

    theta_star, theta_0 = problem.weights(weights_key)
    error = entries(theta_0 - theta_star)
    start = Scaled((error, jax.tree.map(jnp.zeros_like, error)), jnp.int32(0))  # e_0 = e_{-1} + v_0 with v_0 = 0
    room = logscale.room(start.mantissa, HEADROOM)
    run = Run(start, room, source.init(start_key), Scaled(jnp.zeros((), dtype), jnp.int32(0)), jnp.int32(0))

    def phase_space(run: Run) -> Scaled:
        (error, velocity), exponent = run.phase_space
        return Scaled((move(error, velocity, jnp.ones((), dtype)), velocity), exponent)

    return Recursion(run, advance, phase_space)
