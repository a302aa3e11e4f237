"""Any optax optimizer on any problem: one run is one `lax.scan`."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from resonance_jax import blocks, contracts
from resonance_jax.fused import fused
from resonance_jax.problems.base import Problem
from resonance_jax.problems.linear_regression import LinearRegression
from resonance_jax.shifts.base import Shift

State = tuple["_Run", Any, Array, Array]  # run, state of the shift, mean error so far, steps done


class _Run(NamedTuple):
    parameters: Any
    optimizer_state: Any
    diverged_at: Array  # (), int32; -1 while the run is finite


def train(
    key: Array,
    *,
    shift: Shift,
    problem: Problem | LinearRegression,
    optimizer: optax.GradientTransformation,
    num_steps: int,
    tail: int,
) -> dict[str, Array]:
    """One run of an optimizer on inputs whose mean moves.

    The draws are those of `oscillate` for the same key: they depend on the key alone, not on the optimizer. Its
    hyperparameters may be tracers, and so axes of a sweep. The weights themselves are kept, not their error: a distance
    far below the rounding of the weights, and growth beyond the range of floats, are for `oscillate`.

    Args:
        key: typed key of the run, `jax.random.key(seed)`.
        shift: mean of the inputs, from `resonance_jax.shifts`.
        problem: from `resonance_jax.problems`, or a `problems.Problem` of your own.
        optimizer: an `optax.GradientTransformation`, e.g. `optax.adam(0.01, b1=beta1)`.
        num_steps: steps of the run.
        tail: how many of the last steps enter the mean.

    Returns:
        `distance` or `loss`, as the problem measures: the mean over the last `tail` steps.
        `diverged_at`: the step in which a parameter or the loss ceased to be finite, -1 if none did. The run stands
        still from there, at its last finite parameters, and its mean is finite: `data.loss.where(data.diverged_at < 0)`
        leaves such runs out of a mean over seeds.

    Raises:
        ValueError: a value out of its range, a shift that does not fit the problem, or an optimizer that is none.

    >>> import resonance_jax as rj
    >>> run = rj.train(jax.random.key(0), shift=rj.shifts.switching(20, dim=2, variance=1.0),
    ...                problem=rj.problems.linear_regression(dim=2, samples=5),
    ...                optimizer=optax.adam(0.01, b1=0.9), num_steps=1000, tail=100)
    >>> bool(run["distance"] < 0.1), int(run["diverged_at"])
    (True, -1)
    """
    contracts.check_training(key, shift, problem, num_steps, tail)
    if not (callable(getattr(optimizer, "init", None)) and callable(getattr(optimizer, "update", None))):
        raise ValueError(
            f"optimizer must be an optax.GradientTransformation, got {optimizer!r}; "
            "call its factory first, e.g. optax.adam(0.01)"
        )
    weights_key, start_key, shift_key, noise_key = jax.random.split(key, 4)
    keys = (noise_key, shift_key)
    shift_state = shift.init(start_key)
    parameters, truth = problem.init(weights_key, shift, shift_state)
    largest = jnp.finfo(jnp.result_type(float)).max

    def step(run: _Run, k: Array, noise: Any, mean: Array) -> _Run:
        batch = problem.batch(noise, mean, shift.spread)
        loss, gradient = jax.value_and_grad(problem.loss)(run.parameters, truth, batch)
        with jax.numpy_dtype_promotion("standard"):  # optax multiplies counts with rates
            updates, optimizer_state = optimizer.update(gradient, run.optimizer_state, run.parameters)
            parameters = optax.apply_updates(run.parameters, updates)
        finite = jnp.isfinite(loss) & _all_finite(parameters)
        going = finite & (run.diverged_at < 0)
        parameters = jax.tree.map(lambda new, old: jnp.where(going, new, old), parameters, run.parameters)
        return _Run(parameters, optimizer_state, jnp.where(finite | (run.diverged_at >= 0), run.diverged_at, k))

    def advance(state: State, num_blocks: int, length: int, measure: bool) -> State:
        """Steps on noise drawn together; `mean` is that of the error over the steps measured so far."""
        run, shift_state, mean, done = state
        length = num_blocks * length
        k = done + jnp.arange(length, dtype=jnp.int32)
        noise, means, shift_state = blocks.draw(problem.noise, shift, keys, k, shift_state)

        def one(carry: tuple[_Run, Array], drawn: tuple[Array, Any, Array]) -> tuple[tuple[_Run, Array], None]:
            run, mean = carry
            run = step(run, *drawn)
            if measure:
                count = (drawn[0] - (num_steps - tail) + 1).astype(mean.dtype)
                error = jnp.nan_to_num(problem.error(run.parameters, truth), nan=largest, posinf=largest)
                mean = mean + (error / count - mean / count)  # no sum that could overflow
            return (run, mean), None

        run, mean = fused(lambda carry, drawn: jax.lax.scan(one, carry, drawn)[0])((run, mean), (k, noise, means))
        return run, shift_state, mean, done + length

    with jax.numpy_dtype_promotion("standard"):
        optimizer_state = optimizer.init(parameters)
    run = _Run(parameters, optimizer_state, jnp.int32(-1))
    state = (run, shift_state, jnp.zeros((), jnp.result_type(float)), jnp.int32(0))
    state = blocks.repeat(functools.partial(advance, measure=False), state, num_steps - tail)
    run, _, mean, _ = blocks.repeat(functools.partial(advance, measure=True), state, tail)
    return {problem.measure: mean, "diverged_at": run.diverged_at}


def _all_finite(tree: Any) -> Array:
    return jax.tree.reduce(jnp.logical_and, jax.tree.map(lambda leaf: jnp.isfinite(leaf).all(), tree))
