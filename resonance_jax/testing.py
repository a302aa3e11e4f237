"""A conformance suite for shifts, laws and problems of your own: each function raises where a part breaks its promise.

Call them from your tests. What has the wrong form, by shape, dtype or arity, is a `ValueError` that names the field;
what computes the wrong thing is an `AssertionError` that says what differs.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax.numerics import entrywise
from resonance_jax.numerics.products import LinearMap
from resonance_jax.optimizers.linear import heavy_ball
from resonance_jax.problems.base import Problem, Stream
from resonance_jax.problems.linear_regression import linear_regression
from resonance_jax.runs import contracts
from resonance_jax.runs.recursion import ENTRYWISE
from resonance_jax.shifts.base import Shift
from resonance_jax.shifts.inputs import Inputs
from resonance_jax.shifts.laws.base import Averaging
from resonance_jax.shifts.laws.periodic import Periodic
from resonance_jax.shifts.laws.sampled import Sampled
from resonance_jax.theory.moments.followed import follow
from resonance_jax.theory.moments.maps import mean_map, mean_square_map

BLOCKS = (1, 24, 150, 125)  # in which a sequence must be the same as in one piece
# Runs that a law is held against: so calm that no rare one carries their mean square, and slopes that are slower than
# the bias, so that they soon grow at one rate.
MU, ETA, INPUT_VARIANCE, STEPS = 0.5, 0.02, 0.3, 300
KEYS, BATCHES = 2000, 10
ERRORS, SLACK = (
    6.0,
    1e-3,
)  # standard errors that are allowed, exceeded by chance with probability 2e-4; and rest per step


def check_shift(shift: Shift) -> None:
    """Raise unless a shift keeps the promises of `Shift`: form, reproducible sequences, its stationary draws, its law.

    >>> import resonance_jax as rj
    >>> check_shift(rj.shifts.sinusoid(0.05, amplitude=[0.3, 0.4]))
    """
    dim = contracts.num_inputs(shift)
    whole, again, in_blocks = (_sequence(shift, 0, blocks) for blocks in ((sum(BLOCKS),), (sum(BLOCKS),), BLOCKS))
    for name, values, same, parts in zip(Inputs._fields, whole, again, in_blocks, strict=True):
        _claim(np.isfinite(values).all(), f"Shift.inputs: the {name} must be finite, got {_first_bad(values)}")
        _claim(np.array_equal(values, same), f"Shift.inputs: the {name} must follow from the key; two calls differ")
        _claim(
            np.allclose(values, parts, rtol=1e-5, atol=1e-5 * (1 + np.abs(values).max())),
            f"Shift.inputs: the {name} must not depend on how steps are cut into blocks; fold each step into the key, "
            "and carry what is remembered in the state",
        )
    _claim((whole.variance >= 0).all(), f"Shift.inputs: the variance must be >= 0, got {whole.variance.min()}")
    if shift.stationary is not None:
        drawn = jax.eval_shape(lambda key: shift.stationary(key, shift.init(key)), jax.random.key(0))  # pyright: ignore[reportOptionalCall]
        _claim(isinstance(drawn, Inputs), f"Shift.stationary must return Inputs(mean, variance), got {drawn}")
        shapes = drawn.mean.shape, drawn.variance.shape
        _claim(shapes == ((dim,), ()), f"Shift.stationary must return shapes ({dim},) and (), got {shapes}")
    check_law(shift)


def check_law(shift: Shift) -> None:
    """Raise unless the law of a shift is the law of its sequence.

    A periodic law must give the very inputs of the steps. Of an exact law, growth must be that of the average over
    runs: moments of SGDm, carried along the inputs of 2000 runs, grow as the law says, for the mean and for the mean
    square, within six standard errors. `Sampled` promises nothing.

    >>> import resonance_jax as rj
    >>> check_law(rj.shifts.ar2(0.05))
    """
    law, dim = shift.law, contracts.num_inputs(shift)
    means, variances = (each.shape for each in law.visited(shift))
    _claim(
        len(means) == 2 and means[1] == dim and variances == means[:1],
        f"Law.visited must return Inputs of shapes (n, {dim}) and (n,), got {means} and {variances}",
    )
    if isinstance(law, Periodic) and not law.random:
        _check_profile(shift, law)
    if isinstance(law, Sampled):
        return
    cycle = 1.0 if law.cycle is None or not np.isfinite(float(law.cycle)) else max(1.0, float(law.cycle))
    num_steps = round(np.ceil(STEPS / cycle) * cycle)  # whole cycles
    optimizer = heavy_ball(MU, ETA * min(1, STEPS / num_steps))
    followed = follow(shift, linear_regression(dim=dim, samples=2, input_variance=INPUT_VARIANCE))
    whole = followed._replace(num_slopes=dim, variances=followed.variances[:1] * dim, rest=None)
    for name, make in (("mean", mean_map), ("mean square", mean_square_map)):
        found = law.growth(shift, make(followed, optimizer), Averaging())
        rate, error = _growth_of_average(shift, make(whole, optimizer), num_steps)
        allowed = ERRORS * float(np.hypot(error, float(found.standard_error))) + SLACK
        _claim(
            abs(float(found.rate) - rate) <= allowed,
            f"Law.growth of the {name} must be that of the average over runs: the law says {float(found.rate):+.5f} a "
            f"step, runs grow by {rate:+.5f} +- {error:.5f}",
        )


def check_problem(problem: Problem, shift: Shift | None = None) -> None:
    """Raise unless a problem keeps the promises of `Problem`, and its `least_squares` is the gradient of its loss.

    Args:
        problem: what is checked.
        shift: whose inputs it sees; None: a sinusoid, or the problem's own stream.

    >>> import resonance_jax as rj
    >>> check_problem(rj.problems.linear_regression(dim=3, samples=4, input_variance=[0.1, 1.0, 3.0]))
    """
    from resonance_jax.shifts.sinusoid import sinusoid

    shift = sinusoid(0.05) if shift is None and problem.stream is None else shift
    key = jax.random.key(3)
    source = contracts.source_of(shift, problem)
    contracts.check_problem(key, source, problem)
    init_key, start_key, source_key, draw_key = jax.random.split(key, 4)
    parameters, truth = problem.init(init_key, source, source.init(start_key))
    k = jnp.int32(7)

    def inputs_of(source: Shift | Stream) -> Any:
        found = source.inputs(source_key, k[None], source.init(start_key))[0]
        return jax.tree.map(lambda leaf: leaf[0], found)

    inputs = inputs_of(source)
    batch = problem.batch(problem.draw(draw_key, k), inputs)
    loss, gradient = jax.value_and_grad(problem.loss)(parameters, truth, batch)
    error = problem.error(parameters, truth)
    for name, value in {"loss": loss, "error": error}.items():
        _claim(bool(jnp.isfinite(value)) and float(value) >= 0, f"Problem.{name} must be finite and >= 0, got {value}")
    repeated = problem.loss(parameters, truth, problem.batch(problem.draw(draw_key, k), inputs))
    _claim(float(repeated) == float(loss), "Problem.draw must follow from key and step; two calls differ")
    if problem.least_squares is None:
        return
    linear = problem.least_squares
    theta_star, theta_0 = linear.weights(init_key)
    e = theta_0 - theta_star
    step = linear.draw(draw_key, k), inputs_of(linear.stream or source)
    b = linear.kick(*step)
    if linear.num_weights <= ENTRYWISE:
        B = entrywise.to_array(linear.matrix(*step))
    else:  # with so many weights, runs never form it
        B = jax.vmap(lambda unit: linear.product(*step, unit))(jnp.eye(linear.num_weights, dtype=e.dtype))
    Be = jnp.matmul(B, e, precision="highest")
    g = Be if b is None else Be - jnp.stack(b)
    close = functools.partial(np.allclose, rtol=1e-3, atol=1e-4 * float(jnp.abs(B).max()))
    _claim(close(B, B.T), "LeastSquares.matrix: B must be symmetric")
    _claim(close(linear.product(*step, e), Be), "LeastSquares.product must be B of LeastSquares.matrix times the error")
    _claim(close(linear.trace(*step), jnp.trace(B)), "LeastSquares.trace must be that of LeastSquares.matrix")
    _claim(close(jnp.linalg.norm(e), error), "LeastSquares.weights must be as far apart as Problem.error says")
    of_loss = jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(gradient)])
    _claim(
        close(jnp.linalg.norm(g), jnp.linalg.norm(of_loss)),
        f"LeastSquares: B e - b must be the gradient of Problem.loss: |B e - b| is {float(jnp.linalg.norm(g)):.6g}, "
        f"the gradient of the loss {float(jnp.linalg.norm(of_loss)):.6g}",
    )


def _claim(holds: Any, message: str) -> None:
    if not bool(holds):
        raise AssertionError(message)


def _first_bad(values: Any) -> str:
    step = int(np.argwhere(~np.isfinite(values))[0][0]) if not np.isfinite(values).all() else 0
    return f"{values[step]} at step {step}"


def _sequence(shift: Shift, seed: int, blocks: tuple[int, ...]) -> Inputs:
    """Inputs of the first steps, asked for in blocks of these lengths."""

    @jax.jit
    def run(key: Array) -> Inputs:
        start_key, shift_key = jax.random.split(key)
        state, k, parts = shift.init(start_key), 0, []
        for length in blocks:
            part, state = shift.inputs(shift_key, jnp.arange(k, k + length, dtype=jnp.int32), state)
            parts.append(part)
            k += length
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)

    return jax.tree.map(np.asarray, run(jax.random.key(seed)))


def _check_profile(shift: Shift, law: Periodic) -> None:
    """Inputs of the steps are those of the law at their phases."""
    sequence = _sequence(shift, 0, (64,))
    period = float(law.period)
    phases = np.zeros(64) if np.isinf(period) else np.arange(64) / period % 1
    expected = jax.vmap(law.inputs)(jnp.asarray(phases, jnp.result_type(float)))
    for name, ours, theirs in zip(Inputs._fields, sequence, expected, strict=True):
        # A profile may jump; a step that meets the jump may be on either side by rounding.
        off = ~np.isclose(ours, theirs, rtol=1e-3, atol=1e-3 * (1 + np.abs(ours).max()))
        _claim(off.mean() <= 0.07, f"Periodic.profile: the {name} of a step must be that of its phase; they differ")


def _growth_of_average(shift: Shift, linear: LinearMap, num_steps: int) -> tuple[float, float]:
    """Growth per step of the average of the moments over runs, after as many steps, and its standard error."""

    def advance(entries: Any, inputs: Inputs) -> tuple[Any, None]:
        return linear.step(entries, inputs), None

    def one(key: Array) -> tuple[Array, Array]:
        start_key, shift_key = jax.random.split(key)
        inputs, _ = shift.inputs(shift_key, jnp.arange(2 * num_steps, dtype=jnp.int32), shift.init(start_key))
        halves = jax.tree.map(lambda leaf: leaf.reshape(2, num_steps, *leaf.shape[1:]), inputs)
        first, second = (jax.tree.map(lambda leaf, i=i: leaf[i], halves) for i in (0, 1))
        middle = jax.lax.scan(advance, tuple(linear.exists * linear.start), first)[0]
        return jnp.stack(middle), jnp.stack(jax.lax.scan(advance, middle, second)[0])

    def rate(middle: np.ndarray, end: np.ndarray) -> float:
        return float(np.log(np.linalg.norm(end) / np.linalg.norm(middle)) / (num_steps * linear.order))

    keys = jax.random.split(jax.random.key(11), KEYS).reshape(BATCHES, -1)
    middle, end = (np.asarray(each, float).mean(axis=1) for each in jax.jit(jax.vmap(jax.vmap(one)))(keys))
    of_batches = [rate(*each) for each in zip(middle, end, strict=True)]
    return rate(middle.mean(axis=0), end.mean(axis=0)), float(np.std(of_batches, ddof=1) / np.sqrt(BATCHES))
