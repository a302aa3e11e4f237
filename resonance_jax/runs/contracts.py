"""What a run expects of its parts, checked on the host: functions of a shift or a problem, by name and by shape.

The functions are traced without being computed, so that one of the wrong form is named here and not deep in a loop.
"""

import inspect
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from resonance_jax import checks
from resonance_jax.problems.base import Gaussian, LeastSquares, Problem, Stream
from resonance_jax.shifts.base import Shift
from resonance_jax.shifts.inputs import Inputs
from resonance_jax.shifts.resting import resting

BLOCK = 2  # steps that inputs are asked for: neither one nor none


def check_run(key: Any, shift: Any, problem: Any, num_steps: Any, tail: Any) -> tuple[LeastSquares, Shift | Stream]:
    """The sequence of gradients and what its inputs come from; ValueError unless these make a run of least squares."""
    least_squares = least_squares_of(problem)
    _check_lengths(key, num_steps, tail)
    source = source_of(shift, problem)
    return least_squares, least_squares.stream or source


def source_of(shift: Any, problem: Problem) -> Shift | Stream:
    """What the inputs of a run come from: the shift, resting where it is None, or the problem's own stream.

    Raises:
        ValueError: a shift for a problem that has a stream, or one that does not fit the problem.
    """
    if problem.stream is not None:
        if shift is not None:
            raise ValueError(
                f"{problem!r} has inputs of its own, got shift={shift!r} as well; leave the shift out, or take "
                "rj.problems.linear_regression"
            )
        return problem.stream
    shift = resting() if shift is None else shift
    check_inputs(shift, problem.dim)
    return shift


def least_squares_of(problem: Any) -> LeastSquares:
    """What `oscillate` and the Lyapunov estimates run; ValueError for another problem."""
    if not isinstance(problem, Problem) or problem.least_squares is None:
        raise ValueError(
            f"problem must be least squares, e.g. rj.problems.linear_regression, got {_kind(problem)}; rj.train runs "
            "any problem"
        )
    return problem.least_squares


def gaussian_of(problem: Any) -> Gaussian:
    """What exact theory knows of the inputs; ValueError for inputs that are known by their draws alone."""
    gaussian = least_squares_of(problem).gaussian
    if gaussian is None:
        raise ValueError(
            f"the mean and the mean square are exact for Gaussian inputs, as of rj.problems.linear_regression, got "
            f"{problem!r}; take rj.theory.almost_sure_growth"
        )
    return gaussian


def check_training(key: Any, shift: Any, problem: Any, num_steps: Any, tail: Any) -> Shift | Stream:
    """What the inputs of a run of `train` come from; ValueError unless these make one."""
    missing = [name for name in Problem._fields if not hasattr(problem, name)]
    if missing:
        raise ValueError(
            f"problem must be a problems.Problem, got {_kind(problem)} without {', '.join(missing)}; take one of "
            "rj.problems, and call its factory first"
        )
    _check_lengths(key, num_steps, tail)
    checks.at_least_one("Problem.dim", problem.dim, "count the inputs")
    source = source_of(shift, problem)
    check_problem(key, source, problem)
    return source


def check_problem(key: Any, source: Shift | Stream, problem: Problem) -> None:
    """ValueError unless every function of a problem takes and returns what `train` expects, by shapes alone."""
    inputs: Any
    if isinstance(source, Shift):
        number = jnp.result_type(float)
        inputs = Inputs(jax.ShapeDtypeStruct((problem.dim,), number), jax.ShapeDtypeStruct((), number))  # pyright: ignore[reportArgumentType]
    else:
        steps = jax.ShapeDtypeStruct((BLOCK,), jnp.int32)
        state = _result_of("Stream.init", source.init, "key", key)
        found = _result_of("Stream.inputs", source.inputs, "key, k, state", key, steps, state)
        inputs = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), found[0])
    k = jax.ShapeDtypeStruct((), jnp.int32)
    _check_call("Problem.init", problem.init, "key, shift, state")
    start = jax.eval_shape(lambda key, state: problem.init(key, source, state), key, jax.eval_shape(source.init, key))
    parameters, truth = _pair("Problem.init", start, "the parameters to start from, and the truth")
    drawn = _result_of("Problem.draw", problem.draw, "key, k", key, k)
    batch = _result_of("Problem.batch", problem.batch, "drawn, inputs", drawn, inputs)
    loss = _result_of("Problem.loss", problem.loss, "parameters, truth, batch", parameters, truth, batch)
    error = _result_of("Problem.error", problem.error, "parameters, truth", parameters, truth)
    for name, value in {"Problem.loss": loss, "Problem.error": error}.items():
        if getattr(value, "shape", None) != () or not jnp.issubdtype(value.dtype, jnp.floating):
            raise ValueError(f"{name} must return one real number, got {_of(value)}; take its mean or sum")


def num_inputs(shift: Any) -> int:
    """Entries of the means of a shift; ValueError for a shift that does not keep to its form."""
    if not isinstance(shift, Shift):
        raise ValueError(f"shift must be a Shift, got {_kind(shift)}; call its factory, e.g. rj.shifts.sinusoid(0.05)")
    key = jax.eval_shape(lambda: jax.random.key(0))
    k = jax.ShapeDtypeStruct((BLOCK,), jnp.int32)
    state = _result_of("Shift.init", shift.init, "key", key)
    found = _result_of("Shift.inputs", shift.inputs, "key, k, state", key, k, state)
    inputs, after = _pair("Shift.inputs", found, "the Inputs and the state after them")
    if not isinstance(inputs, Inputs):
        raise ValueError(
            f"Shift.inputs must return Inputs(mean, variance), got {_of(inputs)}; a mean alone is "
            "Inputs(mean, jnp.zeros(k.shape))"
        )
    for name, value, shape, rank, remedy in (
        ("mean", inputs.mean, "(block, dim)", 2, "a mean of one input is mean[:, None]"),
        ("variance", inputs.variance, "(block,)", 1, "one that does not move is jnp.full(k.shape, variance)"),
    ):
        found = getattr(value, "shape", None)
        if found is None or len(found) != rank or found[0] != BLOCK:
            raise ValueError(
                f"Shift.inputs must return a {name} of shape {shape}, got {_of(value)} for a block of {BLOCK} steps; "
                f"{remedy}"
            )
        if value.dtype != jnp.result_type(float):
            raise ValueError(
                f"Shift.inputs must return a {name} of {jnp.result_type(float)}, got {value.dtype}; cast it: "
                f"{name}.astype(jnp.result_type(float))"
            )
    if _form(after) != _form(state):
        raise ValueError(
            f"Shift.inputs must return a state like that of Shift.init, {_of(state)}, got {_of(after)}; keep its "
            "shapes and dtypes"
        )
    return inputs.mean.shape[1]


def _check_lengths(key: Any, num_steps: Any, tail: Any) -> None:
    if not (isinstance(key, Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ()):
        raise ValueError(f"key must be one typed key, got {key!r}; make it with jax.random.key(seed)")
    checks.at_least_one("num_steps", num_steps, "a run needs at least one step")
    checks.at_least_one("tail", tail, "what is reported is a mean over the last steps")
    if tail > num_steps:
        raise ValueError(f"tail must be at most num_steps, got tail={tail} > num_steps={num_steps}; shorten the tail")


def check_inputs(shift: Any, dim: int) -> int:
    """Entries of the means of a shift; ValueError unless they fit `dim` inputs."""
    entries = num_inputs(shift)
    if entries not in (1, dim):
        raise ValueError(
            f"the shift moves {entries} inputs but the problem has dim={dim}; give both the same number, or a shift of "
            "one input, which moves all alike"
        )
    return entries


def _result_of(name: str, function: Any, arguments: str, *args: Any) -> Any:
    """What a function of these arguments returns, in shapes."""
    _check_call(name, function, arguments)
    return jax.eval_shape(function, *args)


def _check_call(name: str, function: Any, arguments: str) -> None:
    if not callable(function):
        raise ValueError(f"{name} must be a function of ({arguments}), got {_kind(function)}; give a function")
    try:
        inspect.signature(function).bind(*arguments.split(", "))
    except TypeError as error:
        raise ValueError(
            f"{name} must be a function of ({arguments}), got one of {inspect.signature(function)}: {error}; give it "
            "these arguments, used or not"
        ) from None
    except ValueError:  # no signature to look at
        pass


def _pair(name: str, value: Any, parts: str) -> tuple[Any, Any]:
    if not isinstance(value, tuple) or len(value) != 2:
        raise ValueError(f"{name} must return two things, {parts}, got {_of(value)}; return them as a tuple")
    return value


def _kind(value: Any) -> str:
    return value.__name__ if callable(value) and hasattr(value, "__name__") else type(value).__name__


def _form(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: (leaf.shape, str(leaf.dtype)), tree)


def _of(tree: Any) -> str:
    """Shapes and dtypes, for a message."""

    def text(leaf: Any) -> str:
        return f"{leaf.dtype}{list(leaf.shape)}" if hasattr(leaf, "dtype") else type(leaf).__name__

    return str(jax.tree.map(text, tree)).replace("'", "")
