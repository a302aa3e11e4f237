"""The expected gradient along one period of a shift: what both forms of the theory start from."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks
from resonance_jax.numerics.logscale import root
from resonance_jax.problems.linear_regression import expected_gradient_matrix
from resonance_jax.shifts.base import Shift

GradientMatrix = Callable[[Array], Array]  # phase in [0, 1) -> B, (n, n)


def gradient_matrix(
    shift: Shift, *, input_variance: ArrayLike = 1.0, loss_factor: ArrayLike = 2.0, bias: bool = True
) -> GradientMatrix:
    """B as a function of the phase of a periodic shift."""
    if shift.period is None or shift.profile is None:
        raise ValueError(
            "growth_rate and monodromy need a periodic shift, got one without a period; for AR(2) and all others "
            "take rj.theory.mean_growth(shift, problem, mu=mu, eta=eta)"
        )
    checks.between("input_variance", input_variance, 0, jnp.inf, "give a variance")
    checks.between("loss_factor", loss_factor, 0, jnp.inf, "2 is the squared error, 1 half of it", open_low=True)
    profile, variance = shift.profile, _variance(shift, input_variance)

    def B(phase: Array) -> Array:
        return expected_gradient_matrix(profile(phase), input_variance=variance, loss_factor=loss_factor, bias=bias)

    return B


def curvatures(
    shift: Shift, *, input_variance: ArrayLike = 1.0, loss_factor: ArrayLike = 2.0, bias: bool = True
) -> GradientMatrix:
    """Eigenvalues of B as a function of the phase, (n,), from the smallest on where there is no bias.

    B is loss_factor times c I + m m^T on the slopes. Across the mean its eigenvalue is c, along it c + |m|^2, and with
    a bias those of [[c + |m|^2, |m|], [|m|, 1]]. LAPACK is not called: in a large program on two CPU devices it was
    seen to wait for ever for a thread.
    """
    profile = shift.profile
    assert profile is not None  # `gradient_matrix` has checked it

    def eigenvalues(phase: Array) -> Array:
        mean = profile(phase)
        c, factor = (jnp.asarray(value, mean.dtype) for value in (_variance(shift, input_variance), loss_factor))
        square = jnp.sum(mean**2)
        along = c + square
        if bias:
            upper = (along + 1) / 2 + root(((along - 1) / 2) ** 2 + square, 0.0)
            ends = [c / upper, upper]  # their product is the determinant, c
        else:
            ends = [along]
        return factor * jnp.stack([c] * (mean.size - 1) + ends)

    return eigenvalues


def _variance(shift: Shift, input_variance: ArrayLike) -> Array:
    """Of the inputs around their mean, with what the shift adds to it."""
    dtype = jnp.result_type(float)
    return jnp.asarray(input_variance, dtype) + jnp.asarray(shift.spread, dtype)


def optimizer(mu: ArrayLike, eta: ArrayLike) -> tuple[Array, Array]:
    """mu and eta as checked arrays of the working precision."""
    checks.between("mu", mu, 0, 1, "momentum is the share of the velocity that is kept")
    checks.between("eta", eta, 0, jnp.inf, "give a positive step size", open_low=True)
    dtype = jnp.result_type(float)
    return jnp.asarray(mu, dtype), jnp.asarray(eta, dtype)
