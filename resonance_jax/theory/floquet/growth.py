"""Growth of the mean: log rho of the monodromy matrix, per optimizer step."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from resonance_jax.numerics.logscale import root
from resonance_jax.numerics.spectral import log_spectral_radius
from resonance_jax.shifts.base import Shift
from resonance_jax.theory.floquet.continuous import MOST_STEPS, flow, too_long
from resonance_jax.theory.floquet.discrete import product, whole_steps
from resonance_jax.theory.floquet.expected import GradientMatrix, curvatures, gradient_matrix, optimizer

NUM_PHASES = 512  # of the mean over a period that lasts forever


def growth_rate(
    shift: Shift,
    *,
    mu: ArrayLike,
    eta: ArrayLike,
    input_variance: ArrayLike = 1.0,
    loss_factor: ArrayLike = 2.0,
    bias: bool = True,
    num_steps: int | None = None,
    discrete: bool = False,
) -> Array:
    """log rho / (period in steps): positive where the expected gradient drives the weights away.

    A stability chart is `rj.sweep` of this. At f = 0, and for periods of more than 2^20 steps, it is the limit of long
    periods.

    Args:
        discrete: the exact product of one-step matrices instead of the ODE, for periods of whole steps.
        Others: as `monodromy`.

    Returns:
        Scalar. -inf if one period forgets everything; NaN for `discrete` and a traced period that is not whole.
        `jax.jvp` and `jax.jacfwd` differentiate it in mu, eta and the parameters of the shift, but not `discrete` in
        its period; `jax.grad` needs `num_steps`. What has no derivative says so with a ValueError.

    >>> import resonance_jax as rj
    >>> rate = rj.theory.growth_rate(rj.shifts.sinusoid(1 / 22), mu=0.99, eta=0.01)
    >>> bool(rate > 0)  # inside the first tongue
    True
    """
    B = gradient_matrix(shift, input_variance=input_variance, loss_factor=loss_factor, bias=bias)
    mu, eta = optimizer(mu, eta)
    period = jnp.asarray(shift.period)
    standing = too_long(B, period, eta) if not discrete else period > MOST_STEPS
    period = jnp.where(standing, jnp.ones_like(period), period)  # any short one where it is not used
    if discrete:
        steps = whole_steps(period)
        rate = log_spectral_radius(product(B, steps, mu, eta)) / steps.astype(mu.dtype)
    else:
        rate = log_spectral_radius(flow(B, period, mu, eta, num_steps)) / period
    b = curvatures(shift, input_variance=input_variance, loss_factor=loss_factor, bias=bias)
    return jnp.where(standing, _slow_rate(b, mu, eta, discrete, modes_mix=bias), rate)


def _slow_rate(curvatures: GradientMatrix, mu: Array, eta: Array, discrete: bool, modes_mix: bool) -> Array:
    """Limit of long periods, from the modes of the system frozen at each phase.

    With a bias the modes turn with the mean and mix: at each phase the slowest decides. Without, a mean along one
    direction leaves them apart: each goes through all phases, and the slowest of them decides.
    """
    phases = (jnp.arange(NUM_PHASES, dtype=mu.dtype) + 0.5) / NUM_PHASES
    b = jax.vmap(curvatures)(phases)  # (phases, n); free of mu and eta, so computed once per sweep
    rates = mode_rates(b, mu, eta, discrete)
    return rates.max(axis=1).mean() if modes_mix else rates.mean(axis=0).max()


def mode_rates(b: Array, mu: Array, eta: Array, discrete: bool) -> Array:
    """Growth per step of a mode of constant curvature b.

    In ODE time  lambda^2 + alpha lambda + b = 0,  and step by step  z^2 - (1 + mu - eta b) z + mu = 0.
    """
    if discrete:
        centre = (1 + mu - eta * b) / 2
        real = jnp.abs(centre) + root(centre**2 - mu, 0.0)
        size = jnp.where(centre**2 > mu, real, root(mu, 0.0))
        return jnp.log(jnp.maximum(size, jnp.finfo(mu.dtype).tiny))
    half = (1 - mu) / 2  # alpha sqrt(eta) / 2
    return -half + root(half**2 - eta * b, 0.0)
