"""Any optax optimizer on any problem: one run is one `lax.scan`."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jax.typing import ArrayLike

from resonance_jax.fused import fused
from resonance_jax.problems.base import Problem
from resonance_jax.runs import blocks, contracts, divergence
from resonance_jax.runs.divergence import DIVERGED_ABOVE
from resonance_jax.shifts.base import Shift


class _Run(NamedTuple):
    parameters: Any
    optimizer_state: Any
    stopped_at: Array  # (), int32; the step in which a number ceased to be finite, -1 while none did


class _State(NamedTuple):
    run: _Run
    source_state: Any
    mean: Array  # of the error over the steps measured so far
    error: Array  # at the last check
    diverged_at: Array  # (), int32
    done: Array  # steps, int32


def train(
    key: Array,
    *,
    shift: Shift | None = None,
    problem: Problem,
    optimizer: optax.GradientTransformation,
    num_steps: int,
    tail: int,
    diverged_above: ArrayLike = DIVERGED_ABOVE,
) -> dict[str, Array]:
    """One run of an optimizer on inputs whose mean moves.

    The draws are those of `oscillate` for the same key: they depend on the key alone, not on the optimizer. Its
    hyperparameters may be tracers, and so axes of a sweep. The weights themselves are kept, not their error: a distance
    far below the rounding of the weights, and growth beyond the range of floats, are for `oscillate`.

    Args:
        key: typed key of the run, `jax.random.key(seed)`.
        shift: what the inputs do over time, from `resonance_jax.shifts`; None: nothing moves them, or the problem has
            rows of its own.
        problem: from `resonance_jax.problems`, or a `problems.Problem` of your own.
        optimizer: an `optax.GradientTransformation`, e.g. `optax.adam(0.01, b1=beta1)`.
        num_steps: steps of the run.
        tail: how many of the last steps enter the mean.
        diverged_above: a run has diverged once its error, the problem's own `distance` or `loss`, exceeds this many
            times its error at the start, or is no longer finite. The error of parameters that are all 0 takes the place
            of that of the start where it is larger, so that a start at the optimum counts for nothing. The default is
            above every transient of stable runs that we found, see `resonance_jax/runs/divergence.py`.

    Returns:
        `distance` or `loss`, as the problem measures: the mean over the last `tail` steps.
        `growth_rate`: growth of the log of the error per step, from the start to the last finite state.
        `diverged_at`: the step after which the run was first found to have diverged, -1 if it never was. The error is
        held against its limit every few hundred steps (at most 625) and at the end, where the mean must keep to it too;
        the step in which a parameter or the loss ceased to be finite is exact.

        A diverged run goes on, and may come back. Once it is no longer finite it stands still at its last finite
        parameters, so that all outputs are finite for every run. Do not drop diverged runs from a mean: where most
        diverged, the few others look good. Show their share, `(data.diverged_at >= 0).mean("seed")`, beside the mean
        or the median of all runs, as `rj.plotting` does with `diverged=data.diverged_at >= 0`.

    Raises:
        ValueError: a value out of its range, a shift that does not fit the problem, or an optimizer that is none.

    >>> import resonance_jax as rj
    >>> run = rj.train(jax.random.key(0), shift=rj.shifts.switching(20, dim=2, variance=1.0),
    ...                problem=rj.problems.linear_regression(dim=2, samples=5),
    ...                optimizer=optax.adam(0.01, b1=0.9), num_steps=1000, tail=100)
    >>> bool(run["distance"] < 0.1), int(run["diverged_at"])
    (True, -1)
    """
    source = contracts.check_training(key, shift, problem, num_steps, tail)
    divergence.check(diverged_above)
    if not (callable(getattr(optimizer, "init", None)) and callable(getattr(optimizer, "update", None))):
        raise ValueError(
            f"optimizer must be an optax.GradientTransformation, got {optimizer!r}; "
            "call its factory first, e.g. optax.adam(0.01)"
        )
    weights_key, start_key, shift_key, noise_key = jax.random.split(key, 4)
    keys = (noise_key, shift_key)
    source_state = source.init(start_key)
    parameters, truth = problem.init(weights_key, source, source_state)
    largest = jnp.finfo(jnp.result_type(float)).max

    def error_of(parameters: Any) -> Array:
        return jnp.nan_to_num(problem.error(parameters, truth), nan=largest, posinf=largest)

    def step(run: _Run, k: Array, drawn: Any, inputs: Any) -> _Run:
        batch = problem.batch(drawn, inputs)
        loss, gradient = jax.value_and_grad(problem.loss)(run.parameters, truth, batch)
        with jax.numpy_dtype_promotion("standard"):  # optax multiplies counts with rates
            updates, optimizer_state = optimizer.update(gradient, run.optimizer_state, run.parameters)
            parameters = optax.apply_updates(run.parameters, updates)
        finite = jnp.isfinite(loss) & _all_finite(parameters)
        going = finite & (run.stopped_at < 0)
        parameters = jax.tree.map(lambda new, old: jnp.where(going, new, old), parameters, run.parameters)
        return _Run(parameters, optimizer_state, jnp.where(finite | (run.stopped_at >= 0), run.stopped_at, k))

    def advance(state: _State, num_blocks: int, length: int, measure: bool) -> _State:
        """Steps on noise drawn together, and then the check: at every step it would cost as much as the step."""
        length = num_blocks * length
        k = state.done + jnp.arange(length, dtype=jnp.int32)
        drawn, inputs, source_state = blocks.draw(problem.draw, source, keys, k, state.source_state)

        def one(carry: tuple[_Run, Array], drawn: tuple[Array, Any, Any]) -> tuple[tuple[_Run, Array], None]:
            run, mean = carry
            run = step(run, *drawn)
            if measure:
                count = (drawn[0] - (num_steps - tail) + 1).astype(mean.dtype)
                mean = mean + (error_of(run.parameters) / count - mean / count)  # no sum that could overflow
            return (run, mean), None

        run, mean = fused(lambda carry, drawn: jax.lax.scan(one, carry, drawn)[0])(
            (state.run, state.mean), (k, drawn, inputs)
        )
        done = state.done + length
        error = error_of(run.parameters)
        stopped = run.stopped_at >= 0
        diverged = stopped | (jnp.maximum(error, mean) > limit)
        seen_at = jnp.where(diverged, jnp.where(stopped, run.stopped_at, done - 1), -1)
        diverged_at = jnp.where(state.diverged_at < 0, seen_at, state.diverged_at)
        return _State(run, source_state, mean, error, diverged_at, done)

    start = problem.error(parameters, truth)
    zero = problem.error(jax.tree.map(jnp.zeros_like, parameters), truth)
    reference = divergence.reference(start, zero)
    limit = jnp.asarray(diverged_above, reference.dtype) * reference
    with jax.numpy_dtype_promotion("standard"):
        optimizer_state = optimizer.init(parameters)
    run = _Run(parameters, optimizer_state, jnp.int32(-1))
    state = _State(run, source_state, jnp.zeros((), reference.dtype), reference, jnp.int32(-1), jnp.int32(0))
    state = blocks.repeat(functools.partial(advance, measure=False), state, num_steps - tail)
    state = blocks.repeat(functools.partial(advance, measure=True), state, tail)
    return {
        problem.measure: state.mean,
        "growth_rate": _growth_rate(divergence.positive(start, reference), state, num_steps),
        "diverged_at": state.diverged_at,
    }


def _growth_rate(start: Array, state: _State, num_steps: int) -> Array:
    """Growth of the log of the error per step, to the last finite state."""
    info, stopped_at = jnp.finfo(start.dtype), state.run.stopped_at
    end = jnp.where(stopped_at == 0, info.max, state.error)  # the first step left the range of floats
    steps = jnp.maximum(jnp.where(stopped_at < 0, num_steps, stopped_at), 1)
    return (jnp.log(jnp.maximum(end, info.eps * start)) - jnp.log(start)) / steps.astype(start.dtype)


def _all_finite(tree: Any) -> Array:
    return jax.tree.reduce(jnp.logical_and, jax.tree.map(lambda leaf: jnp.isfinite(leaf).all(), tree))
