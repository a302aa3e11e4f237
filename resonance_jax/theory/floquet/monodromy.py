"""What one period of a shift does to the mean of a run."""

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks
from resonance_jax.numerics import entrywise, logscale
from resonance_jax.optimizers.choosing import chosen
from resonance_jax.shifts.base import Shift
from resonance_jax.theory.floquet.continuous import flow, longest_period
from resonance_jax.theory.floquet.discrete import product, whole_steps
from resonance_jax.theory.floquet.expected import for_ode, gradient_matrix, periodic_law

if TYPE_CHECKING:
    import optax


def monodromy(
    shift: Shift,
    *,
    mu: ArrayLike | None = None,
    eta: ArrayLike | None = None,
    optimizer: "optax.GradientTransformation | None" = None,
    input_variance: Any = 1.0,
    loss_factor: ArrayLike = 2.0,
    bias: bool = True,
    discrete: bool | None = None,
    rk4_steps: int | None = None,
) -> Array:
    """psi(T): what one period of the shift does to xi = (theta - theta*, theta') of the paper's ODE.

    With `discrete` it is what the steps themselves do to xi = (theta - theta*, v), exactly:

        xi_{k+1} = M_k xi_k,    M_k = [[I - eta B_k, mu I], [-eta B_k, mu I]]

    Args:
        shift: a periodic shift; its period is 1/f steps, sqrt(eta)/f in ODE time. It also sets the number of inputs:
            give its amplitude as a vector where there are several.
        mu: momentum, in [0, 1].
        eta: step size, > 0.
        input_variance: of the inputs around their mean: one number, one for each input, or a covariance matrix.
        loss_factor: 2 for the squared error, 1 for half of it; times n for gradients summed over n samples.
        bias: whether the model has a bias weight.
        optimizer: instead of mu and eta, any optax optimizer that is linear in the gradient; see `rj.optimizers.read`.
            xi is then (theta - theta*, its buffers as optax has them), always step by step.
        discrete: step by step instead of the ODE, for periods of a whole number of steps. None: the ODE for mu and eta.
        rk4_steps: of the ODE, per period; None chooses them from period and curvature.

    Returns:
        (2n, 2n) for n weights; with k buffers in the optimizer ((1 + k) n, (1 + k) n). A long period may leave the
        floating range; `growth_rate` does not. NaN for a traced f = 0, for a traced period that is not whole with
        `discrete`, and for periods above 2^14 steps (`discrete`: 2^20).

    >>> import resonance_jax as rj
    >>> psi = monodromy(rj.shifts.sinusoid(0.05), mu=0.98, eta=0.01)
    >>> round(float(jnp.log(jnp.linalg.det(psi))), 3)  # Liouville: -n alpha T = -2 * 0.2 * 2
    -0.8
    >>> M = monodromy(rj.shifts.sinusoid(0.05), mu=0.9, eta=0.01, discrete=True)
    >>> round(float(jnp.log(jnp.linalg.det(M)) / jnp.log(0.9)), 3)  # det = mu^(n N)
    40.0
    """
    B = gradient_matrix(shift, input_variance=input_variance, loss_factor=loss_factor, bias=bias)
    period = periodic_law(shift).period
    if checks.is_concrete(period) and not np.isfinite(np.asarray(period)):
        raise ValueError("what stands still has no period, got f = 0; ask growth_rate for its rate instead")
    linear = chosen(mu, eta, optimizer)
    if optimizer is not None if discrete is None else discrete:
        matrix = product(B, whole_steps(period), linear)
    else:
        mu, eta = for_ode(mu, eta)
        fits = period <= longest_period(B, eta)
        psi = flow(B, jnp.where(fits, period, 1), mu, eta, rk4_steps)
        matrix = psi._replace(mantissa=_nan_unless(fits, psi.mantissa))
    return entrywise.to_array(logscale.shift_by(matrix.mantissa, matrix.exponent))


def _nan_unless(fits: Array, rows: Any) -> Any:
    return tuple(tuple(jnp.where(fits, entry, jnp.nan) for entry in row) for row in rows)
