"""Growth of the mean square of a run, E ||xi||^2, under any shift: sampling noise included, exactly."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from resonance_jax.numerics.spectral import log_spectral_radius
from resonance_jax.problems.linear_regression import LinearRegression
from resonance_jax.shifts.base import Redrawn, Shift
from resonance_jax.theory.estimate import Estimate, exact
from resonance_jax.theory.floquet.expected import optimizer
from resonance_jax.theory.noise.inputs import Inputs, inputs_of
from resonance_jax.theory.noise.path import rate_along_paths
from resonance_jax.theory.noise.products import Step, over_turns, turns
from resonance_jax.theory.noise.redrawn import average, check_redrawn, held, nodes_of
from resonance_jax.theory.noise.steps import mean_square_step, places


def mean_square_growth(
    shift: Shift,
    problem: LinearRegression,
    *,
    mu: ArrayLike,
    eta: ArrayLike,
    nodes: int = 64,
    key: Array | None = None,
    num_steps: int = 20_000,
    num_paths: int = 4,
) -> Estimate:
    """Half the growth of log E ||xi||^2 per step, xi = (theta - theta*, v), for samples drawn at every step.

        S_{k+1} = E[M_k (x) M_k] S_k,    S = E xi xi^T,    rate = log rho(product over a period) / (2 steps)

    with the fourth moments of the Gaussian inputs, exact for every number of samples. Observation noise adds to S and
    does not change its growth.

    - Periodic shifts: the exact product over a period, or over a few where it is not a whole number of steps: the
      fewest turns, up to 64, whose length is whole to 1e-4; the phases are spread evenly over them. Periods of more
      than 2^14 steps count as so many. At f = 0 the mean stands at 0, as in a run.
    - A mean drawn anew every T steps: averaged over means as well, exactly, for whole T below `nodes`.
    - Others, as AR(2): along simulated paths of the mean, averaged over the samples alone. By Jensen's inequality this
      lies between the almost-sure rate and the true mean square. The amplitude of AR(2) lasts up to 4000 steps, so that
      4 paths of 20,000 steps leave an error of 1.3e-3 per step at f = 0.05 (standard deviation over keys), and of at
      most 3e-4 away from the first tongue.

    Args:
        shift, problem, mu, eta, nodes, key, num_steps, num_paths: as `mean_growth`.

    Returns:
        An `Estimate`; its standard error is 0 but along simulated paths. The rate is -inf if the steps forget
        everything.

    Raises:
        ValueError: as `mean_growth`.

    >>> import resonance_jax as rj
    >>> problem = rj.problems.linear_regression(dim=1, samples=1, bias=False)
    >>> rate = mean_square_growth(rj.shifts.resting(), problem, mu=0.0, eta=0.5).rate  # E (1 - x^2)^2 = 2
    >>> round(float(rate / jnp.log(2)), 4)  # noise alone makes it grow
    0.5
    """
    mu, eta = optimizer(mu, eta)
    inputs = inputs_of(shift, problem)
    step, counts = mean_square_step(inputs, problem.law, mu, eta)
    if shift.redrawn is not None:
        T = check_redrawn(shift.redrawn, problem.dim, nodes)
        return exact(_redrawn_rate(step, counts.size, shift.redrawn, T, problem.law.dim, inputs, nodes))
    if shift.period is None or shift.profile is None:
        key = jax.random.key(0) if key is None else key
        start = counts * _identity(inputs)
        found = rate_along_paths(step, start, inputs, shift, key, num_steps=num_steps, num_paths=num_paths)
        return Estimate(found.rate / 2, found.standard_error / 2)

    period, profile = jnp.asarray(shift.period), shift.profile

    def coordinates(phase: Array) -> Array:
        return inputs.coordinates(jnp.where(jnp.isfinite(period), profile(phase), 0))

    matrix = over_turns(step, counts, period, coordinates)
    return exact(log_spectral_radius(matrix) / (2 * turns(period)[1].astype(mu.dtype)))


def _identity(inputs: Inputs) -> Array:
    """S = I, in entries."""
    place = places(inputs.num_weights)
    entries = np.zeros(place.max() + 1)
    entries[np.diag(place)] = 1
    rest = [] if inputs.rest is None else [1, 0, 1]
    return jnp.asarray([*entries, *rest], inputs.variance.dtype)


def _redrawn_rate(
    step: Step, size: int, redrawn: Redrawn, T: Array, dim: Array, inputs: Inputs, num_nodes: int
) -> Array:
    """The average over directions commutes with every turn of the inputs, and so it keeps S isotropic.

    S is then E e^2, E e v, E v^2 of a slope, the same for all, and of the bias, with nothing between them: 6 numbers.
    """
    place, w, T_dtype = places(inputs.num_weights), inputs.num_weights, T.dtype
    parts = [(0, 0), (0, w), (w, w)]  # e e, e v, v v of the weight along the mean
    basis, shares = np.zeros((3 * w, size)), np.zeros((3 * w, size))
    for i in range(w):
        for n, (a, b) in enumerate(parts):
            basis[3 * i + n, place[a + i, b + i]] = shares[3 * i + n, place[a + i, b + i]] = 1
    start, back = jnp.asarray(basis, T_dtype), jnp.asarray(shares, T_dtype)
    if inputs.rest is not None:  # a slope is the mean over one along the mean and the others across
        others = np.zeros((3 * w, size))
        others[:3, -3:] = np.eye(3)
        slope = np.arange(3 * w)[:, None] < 3
        start = start + jnp.asarray(others, T_dtype)
        back = jnp.where(slope, back / dim, back) + jnp.asarray(others, T_dtype) * (1 - 1 / dim)

    nodes = nodes_of(redrawn, dim, num_nodes)
    moved = jax.vmap(lambda length: held(step, start, length, T, num_nodes))(nodes.lengths)
    matrix = average(moved, nodes.weights)
    seen = matrix._replace(mantissa=jnp.matmul(back, matrix.mantissa, precision="highest"))
    return log_spectral_radius(seen, entrywise_size=4) / (2 * T)
