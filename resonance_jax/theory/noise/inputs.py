"""Which weights the theory of noise has to follow one by one: turning the inputs changes nothing."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from resonance_jax.numerics import entrywise
from resonance_jax.problems.linear_regression import LinearRegression
from resonance_jax.runs import contracts
from resonance_jax.shifts.base import Shift

NUM_PHASES = 64  # among which the largest mean is looked for: it gives the direction of the line


class Inputs(NamedTuple):
    """Weights that are followed one by one, and how many slopes there are besides.

    The noise around the mean is alike in all directions. So where the mean stays on a line through 0, the slope along
    that line and the bias are followed; the `rest` of the slopes see inputs of mean 0, and fare alike.
    """

    coordinates: Callable[[Array], Array]  # mean (dim,) -> m of the slopes followed
    num_weights: int  # followed, with the bias
    variance: Array  # (), of each input around its mean
    rest: Array | None  # (), number of the other slopes; None: there are none
    bias: bool  # whether the last weight followed is the bias

    @property
    def variances(self) -> tuple[Any, ...]:
        """Of the inputs of the weights followed; a bias has a constant one. Plain numbers cost a program nothing."""
        return (self.variance,) * (self.num_weights - 1) + (0.0,) if self.bias else (self.variance,) * self.num_weights

    def constant(self, m: Array) -> tuple[Any, ...]:
        """x = (m, 1), entry by entry; m without a bias."""
        return (*entrywise.vector(m), 1.0) if self.bias else entrywise.vector(m)


def inputs_of(shift: Shift, problem: LinearRegression) -> Inputs:
    """What to follow under a shift.

    Raises:
        ValueError: another problem; means that do not fit it, or leave a line while the number of inputs is an axis.
    """
    if not isinstance(problem, LinearRegression):
        raise ValueError(
            f"theory of noise is for rj.problems.linear_regression, got {type(problem).__name__}; for other problems "
            "measure the growth of runs, as rj.train does"
        )
    law, num_entries = problem.law, contracts.num_inputs(shift)
    variance = law.input_variance + jnp.asarray(shift.spread, law.input_variance.dtype)
    if num_entries not in (1, problem.dim):
        raise ValueError(
            f"the shift moves {num_entries} inputs but the problem has dim={problem.dim}; give both the same "
            "number, or a shift of one input, which moves all alike"
        )

    if num_entries == 1 or shift.straight or shift.redrawn is not None:
        direction = _direction(shift, num_entries)

        def along_the_line(mean: Array) -> Array:
            if num_entries == 1:  # every input moves alike: a vector of dim equal entries
                return mean * jnp.sqrt(law.dim)
            return jnp.sum(mean * direction, keepdims=True)

        rest = None if problem.dim == 1 else law.dim - 1
        return Inputs(along_the_line, 1 + int(law.bias), variance, rest, law.bias)
    if law.input_mask is not None:
        raise ValueError(
            "the mean of several inputs leaves a line, so theory needs their number; give dim as a plain number, "
            "without max_dim, or say straight=True where the mean stays on a line through 0"
        )
    return Inputs(lambda mean: mean, problem.num_weights, variance, None, law.bias)


def _direction(shift: Shift, num_entries: int) -> Array:
    """Unit vector along the line that a straight profile moves on; any one where it stands still."""
    dtype = jnp.result_type(float)
    if num_entries == 1 or shift.profile is None:
        return jnp.eye(num_entries, dtype=dtype)[0]
    means = jax.vmap(shift.profile)(jnp.arange(NUM_PHASES, dtype=dtype) / NUM_PHASES)
    lengths = jnp.sqrt(jnp.sum(means**2, axis=1))
    longest = jnp.argmax(lengths)
    return means[longest] / jnp.where(lengths[longest] > 0, lengths[longest], 1)
