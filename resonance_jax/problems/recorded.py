"""Least squares on recorded rows, in the order of time or in another."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax import checks, naming
from resonance_jax.numerics import entrywise, logscale
from resonance_jax.numerics.entrywise import Matrix, Vector
from resonance_jax.problems.base import LeastSquares, Problem, Recorded, Stream
from resonance_jax.problems.orders import Order, as_order
from resonance_jax.problems.rows import SLICE, as_rows, as_targets, check_independent, second_moments

if TYPE_CHECKING:
    from flax import linen as nn

dot = functools.partial(jnp.matmul, precision="highest")
ENTRIES = 6  # weights up to which B is passed on entry by entry, and so is formed


class Samples(NamedTuple):
    """The rows of one step."""

    x: Array  # (samples, weights), with the 1 of the bias
    residual: Array | None  # (samples,), target less that of the solution; None without targets


class Step(NamedTuple):
    """The same, summed up."""

    B: Array  # (weights, weights)
    b: Array | None  # (weights,)


def recorded(
    inputs: Any,
    targets: Any = None,
    *,
    samples: int,
    order: Order | str = "time",
    features: Callable[[Array], Array] | None = None,
    bias: bool = True,
    loss_factor: float = 2.0,
    module: "nn.Module | None" = None,
    loss: Callable[[Array, Array], Array] | None = None,
) -> Problem:
    """Regression on a stream of your own: `samples` consecutive rows a step, pass after pass.

    Runs take it without a shift: its inputs move by themselves. The solution theta* is that of all rows. Without
    targets all of them are 0; how fast a run grows does not depend on them.

    Make the problem once, outside of the point of a sweep: the rows are then shared by all cells.

    Args:
        inputs: rows in the order of time, (N, d) or (N,): NumPy, pandas or xarray. The last N mod `samples` are left
            out.
        targets: one for each row.
        samples: rows of a step.
        order: "time", "shuffled", `blocks(length)` or `buffer(size)`.
        features: function of rows (n, d) -> (n, p), for least squares on a basis of its own: polynomials, random
            Fourier features, the last hidden layer of a network.
        bias: whether the model has a bias weight, the last one.
        loss_factor: 2 for the squared error, 1 for half of it.
        module: a flax network for `train`, (n, d) -> (n,) or (n, 1), in the place of the linear model; it has its own
            biases.
        loss: with a module, outputs (n,) and targets (n,) -> losses (n,); None is the squared error.

    Returns:
        A `Problem`. The linear model runs in `oscillate`, in the Lyapunov estimates, in `explain` and in `train`, which
        measures the distance to theta*; a module in `train` alone, which measures the loss on all rows.

    Raises:
        ValueError: rows or targets that are not finite numbers or do not fit, columns that are constant or linearly
            dependent, more samples than rows, a module without targets.

    >>> rows = np.random.default_rng(0).normal(size=(1000, 3))
    >>> problem = recorded(rows, samples=10)
    >>> problem, problem.least_squares.num_weights, problem.least_squares.recorded.steps
    (recorded(rows=1000, inputs=3, samples=10, order=time), 4, 100)
    """
    checks.at_least_one("samples", samples, "a step needs at least one row")
    checks.between("loss_factor", loss_factor, 0, jnp.inf, "2 is the squared error, 1 half of it", open_low=True)
    if not checks.is_concrete(loss_factor):
        raise ValueError("loss_factor must be a plain number, got a traced one; it scales eta, so put eta on the axis")
    order = as_order(order)
    rows = as_rows(inputs)
    if samples > len(rows.values):
        raise ValueError(f"samples must be at most the {len(rows.values)} rows, got {samples}; take fewer of them")
    used = len(rows.values) - len(rows.values) % samples
    wanted = None if targets is None else as_targets(targets, len(rows.values))[:used]
    label = naming.call("recorded", rows=used, inputs=rows.values.shape[1], samples=samples, order=order, module=module)
    values = rows.values[:used]
    if module is not None:
        from resonance_jax.problems.recorded_module import recorded_module

        return recorded_module(module, loss, values, wanted, samples, order, label)
    if loss is not None:
        raise ValueError("a loss needs a module to fit; give module as well, or leave the loss out: it is the square")
    x, names = (values, rows.names) if features is None else _features(features, values)
    return _linear(x, names, wanted, samples, order, bias, loss_factor, rows.values.shape[1], label)


def _linear(
    x: np.ndarray,
    names: tuple[str, ...],
    targets: np.ndarray | None,
    samples: int,
    order: Order,
    bias: bool,
    loss_factor: float,
    dim: int,
    label: str,
) -> Problem:
    dtype = jnp.result_type(float)
    x = np.concatenate([x, np.ones((len(x), 1), x.dtype)], axis=1) if bias else x
    num_rows, num_weights = x.shape
    second = second_moments(x)
    check_independent(second, names, bias)
    theta_star, residual = _solution(x, second, targets)
    curvature = loss_factor * second
    factor = jnp.asarray(loss_factor, dtype)
    table = jnp.asarray(x)
    residuals = None if residual is None else jnp.asarray(residual, dtype)
    formed = num_weights <= ENTRIES or 2 * samples > num_weights  # B is formed where that costs a lane less

    def stream(order: Order, summed: bool) -> Stream:
        def inputs(key: Array, k: Array, state: Any) -> tuple[Samples | Step, Any]:
            taken, state = order.rows(key, k, state, num_rows, samples)
            step = Samples(table[taken], None if residuals is None else residuals[taken])
            return (jax.vmap(sum_up)(step) if summed else step), state

        return Stream(lambda key: order.init(key, num_rows), inputs)

    def sum_up(step: Samples) -> Step:
        B = (factor / samples) * dot(step.x.T, step.x)
        return Step(B, None if step.residual is None else (factor / samples) * dot(step.residual, step.x))

    def weights(key: Array) -> tuple[Array, Array]:
        return jnp.asarray(theta_star, dtype), jax.random.uniform(key, (num_weights,), dtype, -1, 1)

    def matrix(drawn: tuple[()], step: Step) -> Matrix:
        return entrywise.matrix(step.B)

    def product(drawn: tuple[()], step: Any, error: Array) -> Array:
        if isinstance(step, Step):
            return dot(step.B, error)
        return (factor / samples) * dot(dot(step.x, error), step.x)

    def trace(drawn: tuple[()], step: Any) -> Array:
        return jnp.trace(step.B) if isinstance(step, Step) else (factor / samples) * jnp.sum(step.x**2)

    def kick(drawn: tuple[()], step: Any) -> Vector | None:
        b = (step if isinstance(step, Step) else sum_up(step)).b
        return None if b is None else entrywise.vector(b)

    def least_squares(order: Order) -> LeastSquares:
        return LeastSquares(
            num_weights,
            weights,
            nothing,
            matrix,
            product,
            trace,
            kick,
            stream=stream(order, formed),
            recorded=Recorded(x, samples, order, curvature, num_rows // samples, least_squares),
        )

    def init(key: Array, source: Stream, state: Any) -> tuple[Array, Array]:
        theta_star, theta_0 = weights(key)
        return theta_0, theta_star

    def loss(theta: Array, theta_star: Array, step: Samples) -> Array:
        miss = dot(step.x, theta - theta_star)
        miss = miss if step.residual is None else miss - step.residual
        return factor / 2 * jnp.mean(miss**2)

    return Problem(
        dim=dim,
        init=init,
        draw=nothing,
        batch=lambda drawn, step: step,
        loss=loss,
        error=lambda theta, theta_star: logscale.norm(theta - theta_star),
        measure="distance",
        least_squares=least_squares(order),
        stream=stream(order, False),
        label=label,
    )


def nothing(key: Array, k: Array) -> tuple[()]:
    """What a step of recorded rows draws: which rows it takes is up to the order."""
    return ()


def _solution(x: np.ndarray, second: np.ndarray, targets: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """theta* of all rows, and the residuals of the targets there."""
    if targets is None:
        return np.zeros(x.shape[1]), None
    slices = [slice(start, start + SLICE) for start in range(0, len(x), SLICE)]
    theta = np.linalg.solve(second, sum(x[part].T.astype(float) @ targets[part] for part in slices) / len(x))
    return theta, np.concatenate([targets[part] - x[part].astype(float) @ theta for part in slices])


def _features(features: Callable[[Array], Array], values: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """What the function makes of all rows, a slice at a time."""
    if not callable(features):
        raise ValueError(f"features must be a function of rows (n, d) -> (n, p), got {features!r}; give a function")
    parts = [np.asarray(features(jnp.asarray(values[i : i + SLICE]))) for i in range(0, len(values), SLICE)]
    shapes = {part.shape[1:] for part in parts}
    if any(part.ndim != 2 for part in parts) or len(shapes) != 1 or sum(map(len, parts)) != len(values):
        raise ValueError(
            f"features must map rows (n, {values.shape[1]}) to (n, p), got {parts[0].shape} for "
            f"n={len(values[:SLICE])}; one row of features for each row"
        )
    found = as_rows(np.concatenate(parts), "features")
    return found.values, tuple(f"feature {name}" for name in found.names)
