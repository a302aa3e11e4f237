"""Growth of the mean of a run, E xi, under any shift."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from resonance_jax.numerics.logscale import Scaled
from resonance_jax.numerics.spectral import log_spectral_radius
from resonance_jax.problems.linear_regression import LinearRegression
from resonance_jax.shifts.base import Redrawn, Shift
from resonance_jax.theory.estimate import Estimate, exact
from resonance_jax.theory.floquet.expected import optimizer
from resonance_jax.theory.floquet.growth import growth_rate, mode_rates
from resonance_jax.theory.noise.inputs import Inputs, inputs_of
from resonance_jax.theory.noise.path import rate_along_paths
from resonance_jax.theory.noise.products import Step, over_turns, turns
from resonance_jax.theory.noise.redrawn import average, check_redrawn, held, nodes_of
from resonance_jax.theory.noise.steps import mean_step


def mean_growth(
    shift: Shift,
    problem: LinearRegression,
    *,
    mu: ArrayLike,
    eta: ArrayLike,
    discrete: bool = True,
    nodes: int = 64,
    key: Array | None = None,
    num_steps: int = 20_000,
    num_paths: int = 4,
) -> Estimate:
    """Growth of log ||E xi|| per step, xi = (theta - theta*, v): the paper's theory, for every shift.

    What the samples are drawn around is averaged over as well where the shift draws it anew. Along a simulated path of
    the mean, as of AR(2), only the samples are averaged over.

    Args:
        shift: from `resonance_jax.shifts`, or one of your own.
        problem: from `resonance_jax.problems.linear_regression`.
        mu: momentum, in [0, 1].
        eta: step size, > 0.
        discrete: the exact product of one-step matrices; False takes the paper's ODE for periodic shifts, which is
            close for small step sizes and blind to step sizes that are too large. Other shifts are always discrete.
        nodes: more than the longest interval T of a mean that is drawn anew; at most 128.
        key: of the paths, for shifts that are neither periodic nor drawn anew; None takes a fixed one. A single path
            is that of a run with this key.
        num_steps, num_paths: length and number of the paths.

    Returns:
        An `Estimate`; its standard error is 0 but along simulated paths. At f = 0 the mean of the inputs stands at 0,
        as in a run.

    Raises:
        ValueError: a shift that does not fit the problem, an interval that is not whole or too long (NaN where traced).

    >>> import resonance_jax as rj
    >>> problem = rj.problems.linear_regression(dim=1, samples=1, bias=False)
    >>> rate = mean_growth(rj.shifts.resting(), problem, mu=0.0, eta=0.1).rate  # E (1 - 0.2 x^2) = 0.8
    >>> round(float(jnp.exp(rate)), 4)
    0.8
    """
    mu, eta = optimizer(mu, eta)
    inputs, law = inputs_of(shift, problem), problem.law
    step, size = mean_step(inputs, law, mu, eta)
    # A slope across the line of the mean sees inputs of mean 0 at every step.
    across = mode_rates(law.factor * inputs.variance, mu, eta, discrete or shift.profile is None)
    across = jnp.where(inputs.rest > 0, across, -jnp.inf) if inputs.rest is not None else -jnp.inf
    if shift.redrawn is not None:
        T = check_redrawn(shift.redrawn, problem.dim, nodes)
        return exact(_redrawn_rate(step, size, shift.redrawn, T, law.dim, inputs, nodes))
    if shift.period is None or shift.profile is None:
        key = jax.random.key(0) if key is None else key
        start = jnp.ones((size,), mu.dtype)
        along = rate_along_paths(step, start, inputs, shift, key, num_steps=num_steps, num_paths=num_paths)
        return Estimate(jnp.maximum(along.rate, across), jnp.where(along.rate > across, along.standard_error, 0))

    period, profile = jnp.asarray(shift.period), shift.profile

    def coordinates(phase: Array) -> Array:
        return inputs.coordinates(jnp.where(jnp.isfinite(period), profile(phase), 0))

    if discrete:
        matrix = over_turns(step, jnp.ones((size,), mu.dtype), period, coordinates)
        rate = log_spectral_radius(matrix) / turns(period)[1].astype(mu.dtype)
    else:
        moved = shift._replace(profile=coordinates)
        rate = growth_rate(moved, mu=mu, eta=eta, input_variance=inputs.variance, loss_factor=law.factor, bias=law.bias)
    return exact(jnp.maximum(rate, across))


def _redrawn_rate(
    step: Step, size: int, redrawn: Redrawn, T: Array, dim: Array, inputs: Inputs, num_nodes: int
) -> Array:
    """The average over directions acts alike on every slope, as the mean over one along the mean and dim - 1 across.

    It keeps slopes and bias apart: what one gives to the other changes its sign with the mean.
    """
    nodes = nodes_of(redrawn, dim, num_nodes)
    lengths = jnp.append(nodes.lengths, 0)  # the last one for a slope across the mean
    basis = jnp.eye(size, dtype=T.dtype)
    matrices = jax.vmap(lambda length: held(step, basis, length, T, num_nodes))(lengths)

    def rate(weight: int, along: Array, across: Array) -> Array:
        own = np.array([weight, weight + inputs.num_weights])  # its error and its velocity
        shares = Scaled(jnp.append(along * nodes.weights.mantissa, across), jnp.append(nodes.weights.exponent, 0))
        part = matrices._replace(mantissa=matrices.mantissa[:, own][:, :, own])
        return log_spectral_radius(average(part, shares)) / T

    one = jnp.ones_like(dim)
    slope = rate(0, 1 / dim, 1 - 1 / dim)
    return jnp.maximum(slope, rate(1, one, 0 * one)) if inputs.bias else slope
