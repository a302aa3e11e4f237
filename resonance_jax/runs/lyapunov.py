"""Growth of small perturbations of a training run: Lyapunov exponents of any optimizer on any problem."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.flatten_util import ravel_pytree

from resonance_jax import checks
from resonance_jax.engine.calls import as_program
from resonance_jax.numerics.estimate import Estimate
from resonance_jax.numerics.orthonormal import orthonormal_to_rounding
from resonance_jax.numerics.roots import with_flat_roots
from resonance_jax.problems.base import Problem
from resonance_jax.runs import blocks, contracts
from resonance_jax.runs.training_step import check_optimizer, initial_state, training_step
from resonance_jax.shifts.base import Shift


class _Batch(NamedTuple):
    """Sums over the steps of a batch in which all perturbations stayed finite."""

    logs: Array  # (exponents,), of how much each direction grew
    seen: Array  # (exponents,), whether more than rounding was left of it in any step
    steps: Array  # (), float


class _State(NamedTuple):
    run: Any  # parameters and optimizer state
    directions: Array  # (entries, exponents), orthonormal
    batch: _Batch
    finite: Array  # (), bool; whether the perturbations are
    source_state: Any
    done: Array  # steps, int32


@as_program("key")
def lyapunov(
    key: Array,
    *,
    shift: Shift | None = None,
    problem: Problem,
    optimizer: optax.GradientTransformation,
    num_steps: int,
    exponents: int = 1,
    num_batches: int = 10,
) -> Estimate:
    """Growth per step of infinitesimal perturbations of parameters and optimizer state along a run of `train`.

        d_{k+1} = D F_k(theta_k, s_k) d_k,    lambda = lim (1/k) log ||d_k||

    F_k is the step of `train` on the samples drawn at step k, with the draws of `train` for the same key. Above 0, two
    runs on the same samples that start next to each other part. For SGD with momentum on least squares this is
    `rj.theory.almost_sure_growth`. The derivative of each step is exact, by automatic differentiation; several
    directions are followed at once and made orthonormal after every step (Benettin's method).

    Args:
        key, shift, problem, optimizer: as of `train`.
        num_steps: of the run, a multiple of `num_batches`.
        exponents: how many, from the largest on; at most the number of floating-point entries of parameters and
            optimizer state. Counts have no perturbation, nor has what a step hands on unchanged, such as the rates of
            `optax.inject_hyperparams`.
        num_batches: equal parts of the run. The first is left out; the spread of the others gives the standard error,
            see `rj.theory.almost_sure_growth`.

    Returns:
        `Estimate(rate, standard_error)`: numbers for one exponent, arrays (exponents,) for more.

        - An exponent is -inf, with standard error 0, for a direction that the steps forget completely.
        - Weights that the loss does not depend on, such as those of a dead unit, and those along symmetries of the
          network are neutral: plain SGD keeps their perturbation, and the exponent is 0. Where all others are below,
          the largest exponent is 0.
        - A ReLU has two slopes at 0; the derivative takes one of them. A run meets such a point with probability 0.
        - The square root that Adam divides by counts as flat where it is 0, as for the weights of a dead unit.
        - The weights of a diverging run may overflow. For a linear optimizer on least squares, perturbations do not
          depend on them. Otherwise perturbations cease to be finite, and the batches before enter the rate. Where fewer
          than two are left, the rate is that of all finite steps, and the standard error is infinite.

    Raises:
        ValueError: as `train`; too many exponents, or a number of batches that does not divide the steps.

    >>> import resonance_jax as rj
    >>> problem = rj.problems.linear_regression(dim=1, samples=5)
    >>> found = rj.lyapunov(jax.random.key(0), shift=rj.shifts.sinusoid(1 / 22), problem=problem,
    ...                     optimizer=optax.sgd(0.01, momentum=0.99), num_steps=1000)
    >>> bool(found.rate > 3 * found.standard_error)  # resonance
    True
    """
    source = contracts.check_training(key, shift, problem, num_steps, 1)
    check_optimizer(optimizer)
    checks.at_least_one("exponents", exponents, "it counts directions")
    if not isinstance(num_batches, int | np.integer) or num_batches < 3 or num_steps % num_batches:
        raise ValueError(
            f"num_batches must be a whole number of at least 3 that divides num_steps={num_steps}, got {num_batches}; "
            "one batch is left out, and the spread of the others gives the error"
        )
    length, number = int(num_steps // num_batches), int(num_batches)  # NumPy's whole numbers have a dtype
    weights_key, start_key, shift_key, noise_key = jax.random.split(key, 4)  # as `train` does
    keys = (noise_key, shift_key)
    source_state = source.init(start_key)
    parameters, truth = problem.init(weights_key, source, source_state)
    run = jax.tree.map(jnp.asarray, (parameters, initial_state(optimizer, parameters)))
    one_step = training_step(problem, truth, with_flat_roots(optax.with_extra_args_support(optimizer).update))

    def step(run: Any, drawn: Any, inputs: Any) -> Any:
        parameters, optimizer_state = run
        after = one_step(parameters, optimizer_state, drawn, inputs)
        return after.parameters, after.optimizer_state

    first = blocks.draw(problem.draw, source, keys, jnp.zeros((1,), jnp.int32), source_state)[:2]
    moving = _moving(step, run, jax.tree.map(lambda leaf: leaf[0], first))
    entries = ravel_pytree(_chosen(run, moving))[0]
    if exponents > entries.size:
        raise ValueError(
            f"exponents must be at most {entries.size}, the floating-point entries of parameters and optimizer state, "
            f"got {exponents}; ask for fewer"
        )

    def follow(state: _State, of_step: tuple[Any, Any]) -> tuple[_State, None]:
        flat, unravel = ravel_pytree(_chosen(state.run, moving))

        def moved(flat: Array) -> tuple[Array, Any]:
            after = step(_with(state.run, moving, unravel(flat)), *of_step)
            return ravel_pytree(_chosen(after, moving))[0], after

        def pushed(direction: Array) -> tuple[Array, Any]:
            _, tangent, after = jax.jvp(moved, (flat,), (direction,), has_aux=True)
            return tangent, after

        images, run = jax.vmap(pushed, in_axes=1, out_axes=(1, None))(state.directions)
        directions, sizes, independent = orthonormal_to_rounding(images)
        finite = state.finite & jnp.isfinite(images).all() & jnp.isfinite(sizes).all()
        batch = _Batch(
            state.batch.logs + jnp.log(sizes),
            state.batch.seen | independent,
            state.batch.steps + jnp.ones((), flat.dtype),
        )
        directions, batch = jax.tree.map(
            lambda new, old: jnp.where(finite, new, old), (directions, batch), (state.directions, state.batch)
        )
        return state._replace(run=run, directions=directions, batch=batch, finite=finite), None

    def advance(state: _State, num_blocks: int, length: int) -> _State:
        k = state.done + jnp.arange(num_blocks * length, dtype=jnp.int32)
        drawn, inputs, source_state = blocks.draw(problem.draw, source, keys, k, state.source_state)
        state = jax.lax.scan(follow, state, (drawn, inputs))[0]
        return state._replace(source_state=source_state, done=state.done + num_blocks * length)

    def one_batch(state: _State, _: None) -> tuple[_State, _Batch]:
        state = blocks.repeat(advance, state._replace(batch=nothing), length)
        return state, state.batch

    dtype = entries.dtype
    zeros = jnp.zeros((exponents,), dtype)
    nothing = _Batch(zeros, jnp.zeros((exponents,), bool), jnp.zeros((), dtype))
    # Random directions, the same for every run: an entry alone may be one that never grows, such as a dead weight's.
    directions = jax.random.normal(jax.random.key(0), (entries.size, exponents), dtype)
    directions = orthonormal_to_rounding(directions)[0]
    state = _State(run, directions, nothing, jnp.array(True), source_state, jnp.int32(0))
    _, batches = jax.lax.scan(one_batch, state, None, number)
    found = _estimate(batches, length)
    return Estimate(*(each[0] for each in found)) if exponents == 1 else found


def _estimate(batches: _Batch, length: int) -> Estimate:
    """Of the batches after the first that are finite throughout; of all finite steps where these are fewer than two."""
    logs = jnp.where(batches.seen | (batches.steps[:, None] == 0), batches.logs, -jnp.inf)  # (batches, exponents)
    usable = (batches.steps == length)[1:, None]
    number = jnp.sum(usable.astype(logs.dtype))
    rates = jnp.where(usable, logs[1:] / length, 0)
    mean = jnp.sum(rates, axis=0) / jnp.maximum(number, 1)
    forgotten = jnp.isneginf(mean)
    off = jnp.where(usable & ~forgotten[None], rates - jnp.where(forgotten, 0, mean)[None], 0)
    error = jnp.sqrt(jnp.sum(off**2, axis=0) / jnp.maximum(number * (number - 1), 1))
    overall = jnp.sum(logs, axis=0) / jnp.maximum(jnp.sum(batches.steps), 1)
    rate, error = jnp.where(number > 1, mean, overall), jnp.where(number > 1, error, jnp.inf)
    order = jnp.argsort(-rate)
    return Estimate(rate[order], error[order])


def _moving(step: Callable[..., Any], run: Any, of_step: Any) -> list[bool]:
    """Which leaves of a run have a perturbation: floating ones that a step does not hand on as they are."""
    leaves, tree = jax.tree.flatten(run)
    closed = jax.make_jaxpr(lambda *leaves: jax.tree.leaves(step(tree.unflatten(leaves), *of_step)))(*leaves)
    pairs = zip(leaves, closed.jaxpr.invars, closed.jaxpr.outvars, strict=True)
    return [jnp.issubdtype(leaf.dtype, jnp.floating) and before is not after for leaf, before, after in pairs]


def _chosen(run: Any, moving: list[bool]) -> list[Any]:
    return [leaf for leaf, moves in zip(jax.tree.leaves(run), moving, strict=True) if moves]


def _with(run: Any, moving: list[bool], chosen: list[Any]) -> Any:
    """The run with these leaves in the place of those that move."""
    leaves, tree = jax.tree.flatten(run)
    rest = iter(chosen)
    return tree.unflatten([next(rest) if moves else leaf for leaf, moves in zip(leaves, moving, strict=True)])
