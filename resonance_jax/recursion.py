"""SGD with momentum on least squares as a linear recursion of unlimited range, a block of steps at a time."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from resonance_jax import blocks, entrywise, logscale
from resonance_jax.fused import fused
from resonance_jax.lanes import any_lane
from resonance_jax.logscale import Scaled
from resonance_jax.problems.linear_regression import LinearRegression
from resonance_jax.shifts.base import Shift

ENTRYWISE = 6  # up to so many weights the state is one scalar per weight; beyond, the program takes long to compile
HEADROOM = 60  # a block starts at 2^60
MOST_GROWTH = 2.0**32  # of a block by the bound below; with 2^18 of momentum it ends below 2^112
LARGEST_TRACE = 2.0**14  # of B, so that its product with the error is finite too
MOST_DRAWN = 625  # steps that are drawn together where care is taken


State = tuple[Scaled, Array, Scaled, Array]  # phase space, room, total, strained: what a block changes


class _Block(NamedTuple):
    """What a block of steps needs; leaves of the first two have the steps in front."""

    curvature: Any  # B entry by entry, or what its product with the error is made of
    b: Any  # over 2^size_of_b
    size_of_b: Array  # (), exponent of the largest
    keep: Array  # (), 1, and 0 where the block is wild


class Run(NamedTuple):
    """A run on its way."""

    phase_space: Scaled  # e_k and v_{k+1}: the sum of them is left to the next step, which needs it and stores less
    room: Array  # exponent that the next block lifts xi by; found beforehand, so that it is computed once
    shift_state: Any
    total: Scaled  # sum of ||theta_k - theta*|| so far
    k: Array  # steps done, int32
    strained: Array  # int32, 1 where a block has left the range of floats: what the run says from there is void


class Recursion(NamedTuple):
    """A run as a start and a way on."""

    start: Run
    advance: Callable[..., Run]  # run, num_steps, tail=0 -> so many steps later, the last `tail` distances summed
    phase_space: Callable[[Run], Scaled]  # run -> (e, v) of its last step


def recursion(key: Array, *, shift: Shift, problem: LinearRegression, mu: Array, eta: Array) -> Recursion:
    """The recursion that `oscillate` documents, from its start.

    Steps are taken in blocks, and the state is rescaled between them. A block that leaves the range of floats strains
    the run, and it is repeated with care: rescaled after every step. Care takes three times as long, and nothing where
    no run of the sweep needs it.
    """
    dtype = mu.dtype
    info = jnp.finfo(dtype)
    weights_key, start_key, shift_key, noise_key = jax.random.split(key, 4)
    keys = (noise_key, shift_key)
    small = problem.num_weights <= ENTRYWISE

    def entries(vector: Array) -> tuple[Array, ...]:
        return entrywise.vector(vector) if small else (vector,)

    def move(error: tuple[Array, ...], velocity: tuple[Array, ...]) -> tuple[Array, ...]:
        return tuple(e + v for e, v in zip(error, velocity, strict=True))

    def product(curvature: Any, error: tuple[Array, ...]) -> tuple[Array, ...]:
        """B e."""
        return entrywise.matvec(curvature, error) if small else (problem.product(*curvature, shift.spread, *error),)

    def draw(run: Run, num_steps: int) -> tuple[Any, Any, Array, Any]:
        """B (or what its products are made of), b and tr B of the next steps, which stand in front, and the state."""
        k = run.k + jnp.arange(num_steps, dtype=jnp.int32)
        moments, means, shift_state = blocks.draw(problem.noise_moments, shift, keys, k, run.shift_state)
        B, b = jax.vmap(lambda moments, mean: problem.gradient(moments, mean, shift.spread))(moments, means)
        trace = sum(B[i][i] for i in range(problem.num_weights))
        return B if small else (moments, means), b, jnp.asarray(trace), shift_state

    def advance(run: Run, num_steps: int, tail: int = 0) -> Run:
        """In blocks, and once more with care where a run of the sweep needs it."""

        def moved(run: Run) -> tuple[Scaled, Array, Scaled]:
            return run.phase_space, run.room, run.total

        def with_care() -> tuple[Scaled, Array, Scaled]:
            careful = steps_with_care(run, num_steps, tail)
            return jax.tree.map(lambda new, old: jnp.where(plain.strained > 0, new, old), moved(careful), moved(plain))

        plain = blocks.repeat(functools.partial(steps, measure=False), run, num_steps - tail)
        plain = blocks.repeat(functools.partial(steps, measure=True), plain, tail)
        phase_space, room, total = jax.lax.cond(any_lane(plain.strained > 0), with_care, lambda: moved(plain))
        # The rest is the same in both, and stays out: what depends on the seed alone is drawn once for all its lanes.
        return Run(phase_space, room, plain.shift_state, total, plain.k, run.strained)

    def steps(run: Run, num_blocks: int, length: int, measure: bool) -> Run:
        """Blocks of `length` steps, from one rescaling to the next; what they need is prepared for all of them."""

        def by_block(tree: Any) -> Any:
            return jax.tree.map(lambda leaf: leaf.reshape(num_blocks, length, *leaf.shape[1:]), tree)

        curvature, b, trace, shift_state = draw(run, num_blocks * length)

        # Momentum multiplies xi by at most 1.62 a step, and the gradient by another 1 + eta tr B. A block that could
        # grow beyond the range is wild: it is left out, so that nothing in it overflows, and the run is strained.
        trace = by_block(trace)
        calm = (jnp.prod(1 + eta * trace, axis=1) <= MOST_GROWTH) & (jnp.max(trace, axis=1) <= LARGEST_TRACE)
        size_of_b = jnp.full((num_blocks,), logscale.ZERO_EXPONENT)
        if b is not None:
            b = by_block(b)
            size_of_b = logscale.exponent_of(functools.reduce(jnp.maximum, (jnp.max(jnp.abs(x), axis=1) for x in b)))
            b = jax.vmap(logscale.shift_by)(b, -size_of_b)
            b = b if small else (jnp.stack(b, axis=-1),)
        drawn = _Block(by_block(curvature), b, size_of_b, calm.astype(dtype))

        @fused
        def all_blocks(state: State, drawn: _Block) -> State:
            return jax.lax.scan(
                lambda state, block: (advance_block(*state, block, length, measure), None), state, drawn
            )[0]

        strained = jnp.maximum(run.strained, 1 - jnp.min(calm.astype(jnp.int32)))
        state = (run.phase_space, run.room, run.total, strained)
        phase_space, room, total, strained = all_blocks(state, drawn)
        return Run(phase_space, room, shift_state, total, run.k + num_blocks * length, strained)

    def advance_block(
        phase_space: Scaled, room: Array, total: Scaled, strained: Array, block: _Block, length: int, measure: bool
    ) -> State:
        """`length` steps from one rescaling to the next."""
        curvature, b, size_of_b, keep = block
        if b is not None:
            largest_kick = size_of_b + logscale.exponent_of(eta) + 1  # of eta b
            room = jnp.minimum(room, phase_space.exponent - largest_kick + HEADROOM)
        half = room >> 1  # one power of two does not reach from the smallest to the largest number
        lift = logscale.power_of_two(half, dtype)
        error, velocity = jax.tree.map(lambda x: x * lift * lift, phase_space.mantissa)
        exponent = phase_space.exponent - 2 * half
        kick_scale = logscale.power_of_two(size_of_b - exponent, dtype)

        def step(carry: tuple[Any, ...], drawn: tuple[Any, Any]) -> tuple[Any, None]:
            error, velocity, sum_of_norms = carry
            curvature, b = drawn
            error = tuple(keep * e + v for e, v in zip(error, velocity, strict=True))
            gradient = product(curvature, error)
            if b is not None:
                gradient = tuple(g - kick_scale * kick for g, kick in zip(gradient, b, strict=True))
            velocity = tuple(mu * v - (keep * eta) * g for v, g in zip(velocity, gradient, strict=True))
            if measure:
                squares = sum(jnp.sum((unit * e) ** 2) for e in move(error, velocity))
                sum_of_norms = sum_of_norms + logscale.root(squares, least)
            return (error, velocity, sum_of_norms), None

        # Distances are summed in units of 2^HEADROOM, where a block starts; those far below the rounding of the sum are
        # left out. `strained` is never below 0; of a constant XLA would take the square apart, and what is left of it
        # would overflow.
        unit = logscale.power_of_two(jnp.minimum(strained, 0) - HEADROOM, dtype)
        least = float(info.eps) ** 4

        state = (error, velocity, jnp.zeros((), dtype))
        (error, velocity, sum_of_norms), _ = jax.lax.scan(step, state, (curvature, b))
        room = logscale.room((error, velocity), HEADROOM)
        lost = HEADROOM - room < info.minexp + info.nmant + 2  # small entries have lost bits
        if b is not None:
            lost = lost | (size_of_b - exponent > info.maxexp - 1)  # b does not fit in
        if measure:
            lost = lost | (sum_of_norms < float(info.eps) ** (2 / 3))  # what was left out may count
            total = logscale.add(total, Scaled(sum_of_norms, exponent + HEADROOM))
        return Scaled((error, velocity), exponent), room, total, jnp.where(lost, 1, strained)

    def steps_with_care(run: Run, num_steps: int, tail: int) -> Run:
        """The same steps, rescaled after each. All that must be finite is B itself, and eta."""
        group = min(num_steps, MOST_DRAWN)
        end = run.k + num_steps
        size_of_eta = logscale.exponent_of(eta)
        eta_of = logscale.shift_by(eta, -size_of_eta)  # in [1, 2)

        def step(state: tuple[Scaled, Scaled], drawn: tuple[Any, ...]) -> tuple[tuple[Scaled, Scaled], None]:
            ((error, velocity), exponent), total = state
            curvature, b, live, counts = drawn
            error = move(error, velocity)
            gradient = product(curvature, error)
            top = jnp.maximum(0, size_of_eta + logscale.exponent_of(logscale.peak(gradient)))  # size of the new state
            if b is not None:
                top = jnp.maximum(top, size_of_eta + logscale.exponent_of(logscale.peak(b)) - exponent)
            error, velocity = logscale.shift_by((error, velocity), -top)
            pull = logscale.shift_by(gradient, size_of_eta - top)
            velocity = tuple(mu * v - eta_of * g for v, g in zip(velocity, pull, strict=True))
            if b is not None:
                kick = logscale.shift_by(b, size_of_eta - exponent - top)
                velocity = tuple(v + eta_of * each for v, each in zip(velocity, kick, strict=True))
            new = logscale.normalize(Scaled((error, velocity), exponent + top))
            if tail:
                distance = counts.astype(dtype) * logscale.norm(move(*new.mantissa))
                total = logscale.add(total, Scaled(distance, new.exponent))
            return (jax.tree.map(lambda new, old: jnp.where(live > 0, new, old), new, state[0]), total), None

        @fused
        def all_steps(state: tuple[Scaled, Scaled], drawn: tuple[Any, ...]) -> tuple[Scaled, Scaled]:
            return jax.lax.scan(step, state, drawn)[0]

        def next_group(_: Array, run: Run) -> Run:
            curvature, b, _, shift_state = draw(run, group)
            b = b if small or b is None else (jnp.stack(b, axis=-1),)
            k = run.k + jnp.arange(group, dtype=jnp.int32)
            live, counts = k < end, (k >= end - tail) & (k < end)
            drawn = (curvature, b, live.astype(jnp.int32), counts.astype(jnp.int32))
            phase_space, total = all_steps((run.phase_space, run.total), drawn)
            return Run(phase_space, run.room, shift_state, total, run.k + group, run.strained)

        begin = run._replace(phase_space=logscale.normalize(run.phase_space))
        careful = jax.lax.fori_loop(0, -(-num_steps // group), next_group, begin)
        return careful._replace(room=logscale.room(careful.phase_space.mantissa, HEADROOM))

    theta_star, theta_0 = problem.weights(weights_key)
    error = entries(theta_0 - theta_star)
    begin = Scaled((error, jax.tree.map(jnp.zeros_like, error)), jnp.int32(0))  # e_0 = e_{-1} + v_0 with v_0 = 0
    room = logscale.room(begin.mantissa, HEADROOM)
    zero = Scaled(jnp.zeros((), dtype), jnp.int32(0))
    start = Run(begin, room, shift.init(start_key), zero, jnp.int32(0), jnp.int32(0))

    def phase_space(run: Run) -> Scaled:
        (error, velocity), exponent = run.phase_space
        return Scaled((move(error, velocity), velocity), exponent)

    return Recursion(start, advance, phase_space)
