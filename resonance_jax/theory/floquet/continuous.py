"""Floquet theory in continuous time: the ODE that SGDm integrates.

With step sqrt(eta), SGDm integrates the linear time-varying ODE of a damped parametric oscillator,

    xi' = A(t) xi,    A = [[0, I], [-B(t), -alpha I]],    alpha = (1 - mu) / sqrt(eta),    xi = (theta - theta*, theta')

N steps of the optimizer last N sqrt(eta). A period T of the shift multiplies xi by psi(T).
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from resonance_jax import checks
from resonance_jax.fused import fused
from resonance_jax.numerics import entrywise, logscale
from resonance_jax.numerics.derivatives import FORWARD_ONLY, forward_only
from resonance_jax.numerics.logscale import Scaled
from resonance_jax.numerics.products import LONGEST
from resonance_jax.numerics.spectral import log_spectral_radius
from resonance_jax.shifts.inputs import Inputs
from resonance_jax.shifts.laws.periodic import Periodic
from resonance_jax.theory.floquet.expected import GradientMatrix
from resonance_jax.theory.moments.followed import Followed

BLOCK = 16  # RK4 steps between two rescalings
TOGETHER = range(16, 0, -1)  # blocks in one kernel of a GPU: the most that divide their number
MOST_STEPS = 2.0**20  # per period


def integrate(B: GradientMatrix, *, alpha: Array, duration: Array, rk4_steps: int | Array) -> Scaled:
    """Fundamental matrix of xi' = A xi while the phase of B runs from 0 to 1, psi = I at the start, by RK4.

    Args:
        B: phase -> (n, n); may jump at multiples of 1/16.
        alpha: damping.
        duration: T, in ODE time.
        rk4_steps: rounded up to a multiple of 16; may be traced.

    Returns:
        psi(T), (2n, 2n) with its entries in nested tuples, rescaled on the way: neither strong damping nor strong
        growth leaves the floating range.

    >>> T = jnp.array(2 * jnp.pi, jnp.float32)  # a turn of theta'' = -theta brings it back
    >>> psi = integrate(lambda phase: jnp.ones((1, 1)), alpha=jnp.array(0.0), duration=T, rk4_steps=64)
    >>> (jnp.round(jnp.array(logscale.shift_by(psi.mantissa, psi.exponent)), 3) + 0).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    dtype = duration.dtype
    n = jax.eval_shape(B, duration).shape[0]
    num_blocks = -(-rk4_steps // BLOCK)
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


def flow(B: GradientMatrix, period: Array, mu: Array, eta: Array, rk4_steps: int | None) -> Scaled:
    """psi over `period` optimizer steps."""
    if rk4_steps is not None:
        checks.at_least_one("rk4_steps", rk4_steps, "leave it out to have it chosen")
    alpha = (1 - mu) / jnp.sqrt(eta)
    steps = rk4_steps or _enough_steps(B, period, eta).astype(jnp.int32)
    return integrate(B, alpha=alpha, duration=period * jnp.sqrt(eta), rk4_steps=steps)


def longest_period(B: GradientMatrix, eta: Array) -> Array:
    """Longest period, in optimizer steps, that is integrated: 2^14, or fewer where that takes above 2^20 RK4 steps."""
    return jnp.minimum(LONGEST, MOST_STEPS * _longest_h(B, eta) / jnp.sqrt(eta))


def _enough_steps(B: GradientMatrix, period: Array, eta: Array) -> Array:
    """RK4 steps per period, at most 2^20, for an error of log rho near 1e-6 in float64 and 1e-4 in float32.

    Measured for the problem of experiment 1 (float32 in the range of the heatmap), see the tests. The number does not
    depend on mu: momentum is at least 0, so alpha h <= h / sqrt(eta), and cells that differ in mu share the evaluations
    of B.
    """
    fewest = 256 if jnp.finfo(period.dtype).bits == 64 else 64  # per period, for the shape of the shift itself
    wanted = jnp.maximum(jnp.ceil(period * jnp.sqrt(eta) / _longest_h(B, eta)), fewest)
    return jnp.minimum(wanted, MOST_STEPS)


def _longest_h(B: GradientMatrix, eta: Array) -> Array:
    """RK4 step in ODE time. The error grows as T h^4 b^(5/2) with the largest curvature b, and so h follows b."""
    dtype = eta.dtype
    curvature = jnp.max(jax.vmap(lambda phase: jnp.trace(B(phase)))(jnp.arange(32, dtype=dtype) / 32))
    stiffer = jnp.maximum(curvature / 4.5, 1) ** 0.625  # 4.5: tr B of experiment 1, where the step was measured
    accurate = (0.012 if jnp.finfo(dtype).bits == 64 else 0.065) / stiffer
    return jnp.minimum(accurate, 2 * jnp.sqrt(eta))  # RK4 is stable to alpha h = 2.78


def ode_rate(law: Periodic, followed: Followed, mu: Array, eta: Array, rk4_steps: int | None = None) -> Array:
    """log rho of psi per optimizer step, for the weights that theory tracks and for the others."""

    def B(phase: Array) -> Array:
        inputs = followed.coordinates(law.profile(phase))
        return _expected(followed, inputs)

    def B_of_others(phase: Array) -> Array:
        variance = followed.variances_at(followed.coordinates(law.profile(phase)))[0]
        return jnp.reshape(followed.gaussian.factor * variance, (1, 1))

    def rate(B: GradientMatrix) -> Array:
        period = jnp.minimum(jnp.where(jnp.isfinite(law.period), law.period, 1), longest_period(B, eta))
        return log_spectral_radius(flow(B, period, mu, eta, rk4_steps)) / period

    if followed.rest is None:
        return rate(B)
    return jnp.maximum(rate(B), jnp.where(followed.rest > 0, rate(B_of_others), -jnp.inf))


def _expected(followed: Followed, inputs: Inputs) -> Array:
    """E[B] for the weights tracked."""
    x = jnp.stack([jnp.asarray(each, inputs.mean.dtype) for each in followed.constant(inputs)])
    D = jnp.stack([*followed.variances_at(inputs), *[jnp.zeros_like(inputs.variance)] * int(followed.bias)])
    return followed.gaussian.factor * (jnp.diag(D) + x[:, None] * x[None, :])
