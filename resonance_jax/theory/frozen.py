"""Growth while the mean of the inputs is held where the drift takes it: is the motion to blame, or the place?"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax.numerics.spectral import log_spectral_radius
from resonance_jax.problems.linear_regression import LinearRegression
from resonance_jax.shifts.base import Shift
from resonance_jax.theory.floquet.growth import mode_rates
from resonance_jax.theory.noise.inputs import inputs_of
from resonance_jax.theory.noise.products import Step
from resonance_jax.theory.noise.steps import mean_square_step, mean_step
from resonance_jax.theory.search.resonances import visited_means


def farthest_mean(shift: Shift) -> np.ndarray:
    """The largest of the means that the shift visits, (dim,), or (1,) where it moves all inputs alike.

    Over a period; of a mean without one, the largest of 256 draws from its stationary law.
    """
    means = visited_means(shift)
    return means[np.linalg.norm(means, axis=1).argmax()]


def frozen_growth(
    shift: Shift, problem: LinearRegression, mean: Array, *, mu: Array, eta: Array
) -> tuple[Array, Array]:
    """Growth per step of the mean and of the mean square of a run while the mean of the inputs is held, exactly.

    Args:
        shift: for the variance that it adds, and the line that it moves on.
        problem: from `linear_regression`.
        mean: where it is held, as `farthest_mean` has it.
        mu, eta: checked.
    """
    inputs = inputs_of(shift, problem)
    m = inputs.coordinates(mean)
    first, size = mean_step(inputs, problem.law, mu, eta)
    square, counts = mean_square_step(inputs, problem.law, mu, eta)
    along = _rate(first, jnp.ones((size,), mu.dtype), m)
    if inputs.rest is not None:  # slopes across the mean
        along = jnp.maximum(along, mode_rates(problem.law.factor * inputs.variance, mu, eta, discrete=True))
    return along, _rate(square, counts, m) / 2


def _rate(step: Step, counts: Array, m: Array) -> Array:
    """log rho of a linear step."""
    columns = jax.vmap(lambda column: jnp.stack(step(tuple(column), m)))(jnp.diag(counts))
    return log_spectral_radius(columns.T, entrywise_size=4)
