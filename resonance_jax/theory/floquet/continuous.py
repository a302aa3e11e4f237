"""Floquet theory: the monodromy matrix of the ODE that SGDm integrates.

With step sqrt(eta), SGDm integrates the linear time-varying ODE of a damped parametric oscillator,

    xi' = A(t) xi,    A = [[0, I], [-B(t), -alpha I]],    alpha = (1 - mu) / sqrt(eta),    xi = (theta - theta*, theta')

N steps of the optimizer last N sqrt(eta). A period T of the shift multiplies xi by psi(T).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks
from resonance_jax.fused import fused
from resonance_jax.numerics import entrywise, logscale
from resonance_jax.numerics.derivatives import FORWARD_ONLY, forward_only
from resonance_jax.numerics.logscale import Scaled
from resonance_jax.shifts.base import Shift
from resonance_jax.theory.floquet.expected import GradientMatrix, gradient_matrix, optimizer

BLOCK = 16  # RK4 steps between two rescalings
TOGETHER = range(16, 0, -1)  # blocks in one kernel of a GPU: the most that divide their number
MOST_STEPS = 2.0**20  # per period


def integrate(B: GradientMatrix, *, alpha: Array, duration: Array, num_steps: int | Array) -> Scaled:
    """Fundamental matrix of xi' = A xi while the phase of B runs from 0 to 1, psi = I at the start, by RK4.

    Args:
        B: phase -> (n, n); may jump at multiples of 1/16.
        alpha: damping.
        duration: T, in ODE time.
        num_steps: RK4 steps, rounded up to a multiple of 16; may be traced.

    Returns:
        psi(T), (2n, 2n) with its entries in nested tuples, rescaled on the way: neither strong damping nor strong
        growth leaves the floating range.
    """
    dtype = duration.dtype
    n = jax.eval_shape(B, duration).shape[0]
    num_blocks = -(-num_steps // BLOCK)
    together = next(n for n in TOGETHER if num_blocks % n == 0) if isinstance(num_blocks, int) else 1
    d_phase = 1 / jnp.asarray(num_blocks * BLOCK, dtype)
    h = duration * d_phase
    inside = float(jnp.finfo(dtype).eps) ** 0.5  # a jump of B between two steps, as of a square wave, is outside both

    def derivative(B: entrywise.Matrix, psi: Any) -> Any:
        error, velocity = psi  # upper and lower half of psi, (n, 2n) each
        pull = entrywise.matmul(B, error)
        return velocity, jax.tree.map(lambda p, v: -p - alpha * v, pull, velocity)

    def rk4(psi: Any, B: Array) -> tuple[Any, None]:
        def along(slope: Any, length: Array) -> Any:
            return jax.tree.map(lambda y, k: y + length * k, psi, slope)

        begin, middle, end = (entrywise.matrix(B[i]) for i in range(3))
        k1 = derivative(begin, psi)
        k2 = derivative(middle, along(k1, h / 2))
        k3 = derivative(middle, along(k2, h / 2))
        k4 = derivative(end, along(k3, h))
        return jax.tree.map(lambda y, a, b, c, d: y + h / 6 * (a + 2 * (b + c) + d), psi, k1, k2, k3, k4), None

    def block(psi: Scaled, B: Array) -> tuple[Scaled, None]:
        return logscale.normalize(Scaled(jax.lax.scan(rk4, psi.mantissa, B)[0], psi.exponent)), None

    @fused
    def blocks(psi: Scaled, B: Array) -> Scaled:
        return jax.lax.scan(block, psi, B)[0]

    def advance(j: Array, psi: Scaled) -> Scaled:
        """The next blocks, with B at the begin, the middle and the end of their steps."""
        i = (j * together * BLOCK + jnp.arange(together * BLOCK, dtype=jnp.int32)).astype(dtype)
        phases = jnp.stack([d_phase * (i + part) for part in (inside, 0.5, 1 - inside)], axis=1)
        B_of = jax.vmap(jax.vmap(B))(phases)
        return blocks(psi, B_of.reshape(together, BLOCK, *B_of.shape[1:]))

    identity = entrywise.matrix(jnp.eye(2 * n, dtype=dtype))
    start = Scaled((identity[:n], identity[n:]), jnp.int32(0))
    psi = jax.lax.fori_loop(0, num_blocks // together, advance, start)
    mantissa = psi.mantissa[0] + psi.mantissa[1]
    return Scaled(mantissa if isinstance(num_blocks, int) else forward_only(mantissa, FORWARD_ONLY), psi.exponent)


def flow(B: GradientMatrix, period: Array, mu: Array, eta: Array, num_steps: int | None) -> Scaled:
    """psi over `period` optimizer steps; NaN where the period is too long to integrate."""
    if num_steps is not None:
        checks.at_least_one("num_steps", num_steps, "leave it out to have it chosen")
    alpha = (1 - mu) / jnp.sqrt(eta)
    endless = too_long(B, period, eta)
    duration = jnp.where(endless, jnp.nan, period * jnp.sqrt(eta))
    num_steps_of = num_steps or jnp.where(endless, BLOCK, enough_steps(B, period, eta))
    return integrate(B, alpha=alpha, duration=duration, num_steps=num_steps_of)


def enough_steps(B: GradientMatrix, period: Array, eta: Array) -> Array:
    """RK4 steps per period, at most 2^20, for an error of log rho near 1e-6 in float64 and 1e-4 in float32.

    Measured for the problem of experiment 1 (float32 in the range of the heatmap), see the tests; there the error grows
    as T h^4 b^(5/2) with the largest curvature b, and so h follows b. The number does not depend on mu: momentum is at
    least 0, so alpha h <= h / sqrt(eta), and cells that differ in mu share the evaluations of B.
    """
    return jnp.minimum(_wanted_steps(B, period, eta), MOST_STEPS).astype(jnp.int32)


def too_long(B: GradientMatrix, period: Array, eta: Array) -> Array:
    """Whether a period has more steps than are worth integrating; `growth_rate` then takes the limit of long ones."""
    return ~(_wanted_steps(B, period, eta) <= MOST_STEPS)


def _wanted_steps(B: GradientMatrix, period: Array, eta: Array) -> Array:
    dtype = period.dtype
    double = jnp.finfo(dtype).bits == 64
    curvature = jnp.max(jax.vmap(lambda phase: jnp.trace(B(phase)))(jnp.arange(32, dtype=dtype) / 32))
    stiffer = jnp.maximum(curvature / 4.5, 1) ** 0.625  # 4.5: tr B of experiment 1, where the step was measured
    longest_h = jnp.minimum(
        (0.012 if double else 0.065) / stiffer, 2 * jnp.sqrt(eta)
    )  # RK4 is stable to alpha h = 2.78
    fewest = 256 if double else 64  # per period, for the shape of the shift itself
    return jnp.maximum(jnp.ceil(period * jnp.sqrt(eta) / longest_h), fewest)


def monodromy(
    shift: Shift,
    *,
    mu: ArrayLike,
    eta: ArrayLike,
    input_variance: ArrayLike = 1.0,
    loss_factor: ArrayLike = 2.0,
    bias: bool = True,
    num_steps: int | None = None,
) -> Array:
    """psi(T): what one period of the shift does to xi = (theta - theta*, theta').

    Args:
        shift: a periodic shift; its period is 1/f steps, sqrt(eta)/f in ODE time. It also sets the number of inputs:
            give its amplitude as a vector where there are several.
        mu: momentum, in [0, 1].
        eta: step size, > 0.
        input_variance: variance of the inputs around their mean.
        loss_factor: 2 for the squared error, 1 for half of it; times n for gradients summed over n samples.
        bias: whether the model has a bias weight.
        num_steps: RK4 steps per period; None chooses them from the period (see `enough_steps`).

    Returns:
        (2n, 2n) for n weights. A long period may leave the floating range; `growth_rate` does not. NaN for a period
        that would need more than 2^20 steps, or a traced f = 0.

    >>> import resonance_jax as rj
    >>> psi = monodromy(rj.shifts.sinusoid(0.05), mu=0.98, eta=0.01)
    >>> round(float(jnp.log(jnp.linalg.det(psi))), 3)  # Liouville: -n alpha T = -2 * 0.2 * 2
    -0.8
    """
    B = gradient_matrix(shift, input_variance=input_variance, loss_factor=loss_factor, bias=bias)
    psi = flow(B, _finite(shift.period), *optimizer(mu, eta), num_steps)
    return entrywise.to_array(logscale.shift_by(psi.mantissa, psi.exponent))


def _finite(period: Array | None) -> Any:
    if checks.is_concrete(period) and not np.isfinite(np.asarray(period)):
        raise ValueError("a mean that stands still has no period, got f = 0; ask growth_rate for its limit instead")
    return period
