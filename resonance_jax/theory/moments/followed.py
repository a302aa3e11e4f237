"""Which weights theory must track one by one.

By rotational symmetry of isotropic inputs, only the slopes along the mean and the bias must be tracked individually;
the other slopes see inputs of mean 0 and fare alike. Inputs of different variances have no such symmetry: all slopes
are tracked, in the eigenbasis of their covariance.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from resonance_jax.numerics import entrywise
from resonance_jax.problems.base import Gaussian, Problem
from resonance_jax.runs import contracts
from resonance_jax.shifts.base import Shift
from resonance_jax.shifts.inputs import Inputs


class Followed(NamedTuple):
    """The weights that are tracked, and how many slopes there are besides."""

    coordinates: Callable[[Inputs], Inputs]  # as the law has them -> mean along the slopes tracked (num_slopes,)
    num_slopes: int
    variances: tuple[Array, ...]  # of the inputs of these slopes around their mean, without what the shift adds
    rest: Array | None  # (), number of the other slopes; None: there are none
    gaussian: Gaussian

    @property
    def bias(self) -> bool:
        return self.gaussian.bias

    @property
    def num_weights(self) -> int:
        """Tracked, with the bias."""
        return self.num_slopes + int(self.bias)

    def variances_at(self, inputs: Inputs) -> tuple[Array, ...]:
        """Of the inputs of the slopes in a step."""
        return tuple(each + inputs.variance for each in self.variances)

    def constant(self, inputs: Inputs) -> tuple[Any, ...]:
        """Mean of (x, 1) in a step, entry by entry; without a bias, that of x."""
        return (*entrywise.vector(inputs.mean), 1.0) if self.bias else entrywise.vector(inputs.mean)


def follow(shift: Shift, problem: Problem) -> Followed:
    """What to track under a shift.

    Raises:
        ValueError: a problem without Gaussian inputs; a shift that does not fit it, or has a symmetry that it lacks.
    """
    gaussian = contracts.gaussian_of(problem)
    num_entries = contracts.check_inputs(shift, problem.dim)
    law, dim = shift.law, gaussian.dim
    if law.isotropic and num_entries != problem.dim:
        raise ValueError(
            f"the shift draws {num_entries} inputs but the problem has dim={problem.dim}; give both the same number"
        )

    def slopes(number: int, coordinates: Callable[[Inputs], Inputs] = lambda inputs: inputs) -> Followed:
        rest = None if problem.dim == number else dim - number
        return Followed(coordinates, number, (gaussian.variances,) * number, rest, gaussian)

    def alike(inputs: Inputs) -> Inputs:
        """One entry that moves every input is a vector of dim equal entries."""
        return inputs._replace(mean=law.whole(inputs).mean * jnp.sqrt(dim))

    def in_eigenbasis(inputs: Inputs) -> Inputs:
        if law.isotropic:
            return inputs
        return inputs._replace(mean=gaussian.turned(jnp.broadcast_to(law.whole(inputs).mean, (problem.dim,))))

    if gaussian.variances.ndim == 0 and num_entries == 1 and not law.isotropic:
        return slopes(1, alike)
    if gaussian.variances.ndim == 0 and law.num_coordinates is not None:
        return slopes(law.num_coordinates)
    if gaussian.input_mask is not None:
        raise ValueError(
            "theory tracks every input of this setting, so it needs their number; give dim as a plain number, without "
            "max_dim, or the shift the directions that its mean moves along"
        )
    if gaussian.variances.ndim == 0:
        return slopes(problem.dim)
    if law.random:
        raise ValueError(
            f"each run of {shift!r} draws a direction of its own, and in inputs of different variances each grows at "
            "its own rate; give a shift with a fixed direction, e.g. rj.shifts.periodic(f, profile, directions=u)"
        )
    return Followed(in_eigenbasis, problem.dim, entrywise.vector(gaussian.variances), None, gaussian)
