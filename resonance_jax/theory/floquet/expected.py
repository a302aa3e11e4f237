"""The expected gradient along one period of a shift: what both time models of the theory start from."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks
from resonance_jax.optimizers.linear import heavy_ball
from resonance_jax.problems.linear_regression import expected_gradient_matrix, principal_variances
from resonance_jax.runs import contracts
from resonance_jax.shifts.base import Shift
from resonance_jax.shifts.laws.periodic import Periodic

GradientMatrix = Callable[[Array], Array]  # phase in [0, 1) -> B, (n, n)


def gradient_matrix(
    shift: Shift, *, input_variance: Any = 1.0, loss_factor: ArrayLike = 2.0, bias: bool = True
) -> GradientMatrix:
    """B = E[B_k] as a function of the phase of a periodic shift, for all weights.

    >>> import resonance_jax as rj
    >>> B = gradient_matrix(rj.shifts.sinusoid(0.05))
    >>> B(jnp.array(0.25)).tolist()  # where the mean is 0.5
    [[2.5, 1.0], [1.0, 2.0]]
    """
    law = periodic_law(shift)
    principal_variances(input_variance, contracts.num_inputs(shift))
    checks.between("loss_factor", loss_factor, 0, jnp.inf, "2 is the squared error, 1 half of it", open_low=True)

    def B(phase: Array) -> Array:
        mean, added = law.inputs(phase)
        covariance = jnp.asarray(input_variance, mean.dtype)
        covariance = covariance if covariance.ndim == 2 else jnp.diag(jnp.broadcast_to(covariance, mean.shape))
        covariance = covariance + added * jnp.eye(mean.size, dtype=mean.dtype)
        return expected_gradient_matrix(mean, input_variance=covariance, loss_factor=loss_factor, bias=bias)

    return B


def periodic_law(shift: Shift) -> Periodic:
    """The law of a periodic shift; ValueError for another one."""
    law = getattr(shift, "law", None)
    if not isinstance(law, Periodic):
        raise ValueError(
            f"growth_rate and monodromy need a periodic shift, got {shift!r}; for AR(2) and all others take "
            "rj.theory.mean_growth(shift, problem, mu=mu, eta=eta)"
        )
    return law


def for_ode(mu: ArrayLike | None, eta: ArrayLike | None) -> tuple[Array, Array]:
    """mu and eta as arrays of the working precision; ValueError for another optimizer, which has no ODE here."""
    if mu is None or eta is None:
        raise ValueError(
            "the ODE is that of heavy-ball momentum, whose step is a step of time; for another optimizer take "
            "discrete=True, or rj.theory.mean_growth(shift, problem, optimizer=optimizer)"
        )
    heavy_ball(mu, eta)
    dtype = jnp.result_type(float)
    return jnp.asarray(mu, dtype), jnp.asarray(eta, dtype)
