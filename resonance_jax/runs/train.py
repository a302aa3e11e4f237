"""Any optax optimizer on any problem: one run is one `lax.scan`."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.typing import ArrayLike

from resonance_jax.engine.calls import as_program
from resonance_jax.fused import fused
from resonance_jax.numerics import lines
from resonance_jax.numerics.lines import Line
from resonance_jax.problems.base import Problem
from resonance_jax.runs import blocks, contracts, divergence, snapshots
from resonance_jax.runs.divergence import DIVERGED_ABOVE
from resonance_jax.runs.training_step import check_optimizer, initial_state, training_step
from resonance_jax.shifts.base import Shift


class _Run(NamedTuple):
    parameters: Any
    optimizer_state: Any
    stopped_at: Array  # (), int32; the step in which a number ceased to be finite, -1 while none did


class _State(NamedTuple):
    run: _Run
    source_state: Any
    mean: Array  # of the error over the steps measured so far
    updates: Line  # through the log of the norm of the updates over time
    error: Array  # at the last check
    diverged_at: Array  # (), int32
    done: Array  # steps, int32


@as_program("key")
def train(
    key: Array,
    *,
    shift: Shift | None = None,
    problem: Problem,
    optimizer: optax.GradientTransformation,
    num_steps: int,
    tail: int,
    diverged_above: ArrayLike = DIVERGED_ABOVE,
    record: int = 0,
) -> dict[str, Any]:
    """One run of an optimizer on inputs whose mean moves.

    The draws are those of `oscillate` for the same key: they depend on the key alone, not on the optimizer. Its
    hyperparameters may be tracers, and so axes of a sweep. The weights themselves are kept, not their error: a distance
    far below the rounding of the weights, and growth beyond the range of floats, are for `oscillate`.

    Args:
        key: typed key of the run, `jax.random.key(seed)`.
        shift: what the inputs do over time, from `resonance_jax.shifts`; None: nothing moves them, or the problem has
            rows of its own.
        problem: from `resonance_jax.problems`, or a `problems.Problem` of your own.
        optimizer: an `optax.GradientTransformation`, e.g. `optax.adam(0.01, b1=beta1)`. One that takes extra arguments
            gets the loss of the step as `value`.
        num_steps: steps of the run.
        tail: how many of the last steps enter the mean.
        diverged_above: a run has diverged once its error, the problem's own `distance` or `loss`, exceeds this many
            times its error at the start, or is no longer finite. The error of parameters that are all 0 takes the place
            of that of the start where it is larger, so that a start at the optimum counts for nothing. The default is
            above every transient of stable runs that we found, see `resonance_jax/runs/divergence.py`.
        record: number of equally spaced snapshots, the last at the end of the run. They are all that is kept of it.

    Returns:
        `distance` or `loss`, as the problem measures: the mean over the last `tail` steps.
        `growth_rate`: growth of the log of the error per step, from the start to the last finite state.
        `update_growth_rate`: growth of the log of the norm of the optimizer's updates per step: the slope of the
        least-squares line through the log of their mean over each block of 10 to 25 steps, up to the last finite block.
        It is `growth_rate` where fewer than two blocks are finite. Updates below the rounding of the parameters count
        as that rounding. Snapshots end a block: with fewer than ten steps between them, noise weighs more.
        `diverged_at`: the step after which the run was first found to have diverged, -1 if it never was. The error is
        held against its limit every few hundred steps (at most 625) and at the end, where the mean must keep to it too;
        the step in which a parameter or the loss ceased to be finite is exact.

        With `record`, `distance_curve` or `loss_curve`: the error at each snapshot; and `growth_curve`: its growth per
        step since the snapshot before; where a run ceased to be finite in between, of the finite steps over all of
        them. Both are `Labelled` arrays, in a sweep variables over `step`.

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

    The distance over time, as the mean over four seeds with its 95% band:

    >>> import matplotlib; matplotlib.use("Agg")
    >>> def point(seed, eta):
    ...     return rj.train(jax.random.key(seed), problem=rj.problems.linear_regression(dim=2, samples=5),
    ...                     optimizer=optax.sgd(eta), num_steps=200, tail=1, record=10)
    >>> data = rj.sweep(point, {"seed": [0, 1, 2, 3], "eta": [0.01, 0.02]})
    >>> data.distance_curve.dims, data.step.values[:3].tolist()
    (('seed', 'eta', 'step'), [20, 40, 60])
    >>> rj.plotting.response(data.distance_curve, x="step", hue="eta").get_xlabel()
    'steps done $k$ (steps)'
    """
    source = contracts.check_training(key, shift, problem, num_steps, tail)
    divergence.check(diverged_above)
    check_optimizer(optimizer)
    steps = snapshots.snapshot_steps(record, num_steps)
    weights_key, start_key, shift_key, noise_key = jax.random.split(key, 4)
    keys = (noise_key, shift_key)
    source_state = source.init(start_key)
    parameters, truth = problem.init(weights_key, source, source_state)
    number = jnp.result_type(float)
    info = jnp.finfo(number)
    largest = info.max

    def error_of(parameters: Any) -> Array:
        return jnp.nan_to_num(problem.error(parameters, truth), nan=largest, posinf=largest)

    one_step = training_step(problem, truth, optax.with_extra_args_support(optimizer).update)

    def step(run: _Run, k: Array, drawn: Any, inputs: Any) -> _Run:
        loss, parameters, optimizer_state = one_step(run.parameters, run.optimizer_state, drawn, inputs)
        finite = jnp.isfinite(loss) & _all_finite(parameters)
        going = finite & (run.stopped_at < 0)
        parameters = jax.tree.map(lambda new, old: jnp.where(going, new, old), parameters, run.parameters)
        return _Run(parameters, optimizer_state, jnp.where(finite | (run.stopped_at >= 0), run.stopped_at, k))

    def advance(state: _State, num_blocks: int, length: int, measure: bool) -> _State:
        """Steps on noise drawn together, and then the check: at every step it would cost as much as the step."""
        k = state.done + jnp.arange(num_blocks * length, dtype=jnp.int32)
        drawn, inputs, source_state = blocks.draw(problem.draw, source, keys, k, state.source_state)

        def one(carry: tuple[_Run, Array], drawn: tuple[Array, Any, Any]) -> tuple[tuple[_Run, Array], None]:
            run, mean = carry
            run = step(run, *drawn)
            if measure:
                count = (drawn[0] - (num_steps - tail) + 1).astype(mean.dtype)
                mean = mean + (error_of(run.parameters) / count - mean / count)  # no sum that could overflow
            return (run, mean), None

        def block(carry: tuple[_Run, Array, Line], of_block: tuple[Array, Any]) -> tuple[Any, None]:
            """The updates are measured by their sum: a norm at every step would cost small runs 20% of their time."""
            (before, mean, updates), (middle, drawn) = carry, of_block
            (run, mean), _ = jax.lax.scan(one, (before, mean), drawn)
            made = jax.tree.map(jnp.subtract, run.parameters, before.parameters)
            rounding = info.eps**2 * _square(before.parameters, number)
            square = jnp.clip(jnp.maximum(_square(made, number), rounding), info.tiny, largest)
            log_norm = jnp.log(square) / 2 - np.log(length).astype(number)
            updates = lines.add(updates, middle, log_norm, run.stopped_at < 0)
            return (run, mean, updates), None

        by_block = jax.tree.map(lambda leaf: leaf.reshape(num_blocks, length, *leaf.shape[1:]), (k, drawn, inputs))
        middles = by_block[0][:, 0].astype(number) + (length - 1) / 2
        run, mean, updates = fused(lambda carry, drawn: jax.lax.scan(block, carry, drawn)[0])(
            (state.run, state.mean, state.updates), (middles, by_block)
        )
        length = num_blocks * length
        done = state.done + length
        error = error_of(run.parameters)
        stopped = run.stopped_at >= 0
        diverged = stopped | (jnp.maximum(error, mean) > limit)
        seen_at = jnp.where(diverged, jnp.where(stopped, run.stopped_at, done - 1), -1)
        diverged_at = jnp.where(state.diverged_at < 0, seen_at, state.diverged_at)
        return _State(run, source_state, mean, updates, error, diverged_at, done)

    start = problem.error(parameters, truth)
    zero = problem.error(jax.tree.map(jnp.zeros_like, parameters), truth)
    reference = divergence.reference(start, zero)
    limit = jnp.asarray(diverged_above, reference.dtype) * reference
    nothing = jnp.zeros((), reference.dtype)
    run = _Run(parameters, initial_state(optimizer, parameters), jnp.int32(-1))
    state = _State(run, source_state, nothing, lines.nothing(number), reference, jnp.int32(-1), jnp.int32(0))
    state, errors = snapshots.walk(
        lambda state, length, measure: blocks.repeat(functools.partial(advance, measure=measure), state, length),
        lambda state: state.error,
        state,
        steps=steps,
        num_steps=num_steps,
        tail=tail,
    )
    start = divergence.positive(start, reference)
    stopped_at = state.run.stopped_at
    done = jnp.maximum(jnp.where(stopped_at < 0, num_steps, stopped_at), 1).astype(start.dtype)  # steps, all finite
    end = jnp.where(
        stopped_at == 0, largest.astype(start.dtype), state.error
    )  # the first step left the range of floats
    growth_rate = (_log(end, start) - jnp.log(start)) / done
    outputs: dict[str, Any] = {
        problem.measure: state.mean,
        "growth_rate": growth_rate,
        "update_growth_rate": lines.slope(state.updates, otherwise=growth_rate.astype(number)),
        "diverged_at": state.diverged_at,
    }
    if errors is not None:
        growth = snapshots.growth_between(jnp.log(start), _log(errors, start), steps)
        outputs[f"{problem.measure}_curve"] = snapshots.along_steps(errors, steps)
        outputs["growth_curve"] = snapshots.along_steps(growth, steps)
    return outputs


def _log(error: Array, start: Array) -> Array:
    """Log of an error; below the rounding of that at the start, of that rounding."""
    return jnp.log(jnp.maximum(error, jnp.finfo(start.dtype).eps * start))


def _square(tree: Any, dtype: Any) -> Array:
    return jnp.asarray(sum(jnp.sum(leaf.astype(dtype) ** 2) for leaf in jax.tree.leaves(tree)))


def _all_finite(tree: Any) -> Array:
    return jax.tree.reduce(jnp.logical_and, jax.tree.map(lambda leaf: jnp.isfinite(leaf).all(), tree))
