"""Growth while the inputs are held where the drift takes them: is the motion to blame, or the place?"""

import jax
import jax.numpy as jnp
from jax import Array

from resonance_jax.numerics.products import LinearMap, largest_rate
from resonance_jax.optimizers.linear import LinearOptimizer
from resonance_jax.problems.base import Problem
from resonance_jax.shifts.base import Shift
from resonance_jax.shifts.inputs import Inputs
from resonance_jax.shifts.laws.periodic import Periodic, orthonormal
from resonance_jax.theory.moments.followed import follow
from resonance_jax.theory.moments.maps import mean_map, mean_square_map
from resonance_jax.theory.search.resonances import curvatures_each


def farthest_inputs(shift: Shift, problem: Problem) -> Inputs:
    """Of what the shift visits, the inputs of the largest curvature, (dim,) and ()."""
    visited = shift.law.visited(shift)
    farthest = int(curvatures_each(visited, problem)[:, -1].argmax())
    return jax.tree.map(lambda leaf: leaf[farthest], visited)


def held_shift(inputs: Inputs) -> Shift:
    """A shift that stands at these inputs."""

    def at_every_step(key: Array, k: Array, state: tuple[()]) -> tuple[Inputs, tuple[()]]:
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*k.shape, *leaf.shape)), inputs), state

    return Shift(lambda key: (), at_every_step, _held_law(inputs), stationary=lambda key, state: inputs)


def _held_law(inputs: Inputs) -> Periodic:
    still = jnp.asarray(jnp.inf, inputs.mean.dtype)
    if inputs.mean.size == 1:
        return Periodic(still, lambda phase: inputs)
    basis, length = orthonormal(inputs.mean[None, :])
    return Periodic(still, lambda phase: inputs._replace(mean=length[0]), basis)


def held_growth(inputs: Inputs, problem: Problem, optimizer: LinearOptimizer) -> tuple[Array, Array]:
    """Growth per step of the mean and of the mean square of a run while the inputs are held, exactly.

    Args:
        inputs: where they are held, as `farthest_inputs` has them.
        problem: from `linear_regression`.
        optimizer: who fits.
    """
    shift = held_shift(inputs)
    followed = follow(shift, problem)
    at = followed.coordinates(_held_law(inputs).profile(jnp.zeros_like(inputs.variance)))
    mean, square = (_rate(make(followed, optimizer), at) for make in (mean_map, mean_square_map))
    return mean, square


def _rate(linear: LinearMap, inputs: Inputs) -> Array:
    """log rho of one step."""
    columns = jax.vmap(lambda column: jnp.stack(linear.step(tuple(column), inputs)))(jnp.diag(linear.exists))
    return largest_rate(columns.T, linear, jnp.ones((), columns.dtype))
