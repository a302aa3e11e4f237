"""Experiment 2: the mean of the inputs follows an AR(2) process with a spectral peak at f."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks, naming
from resonance_jax.shifts.base import Shift
from resonance_jax.shifts.inputs import Inputs

NUM_NEWTON_STEPS = 12  # from the start below it converges in at most 7, for every f in [0, 0.5] (see the tests)


def ar2(
    f: ArrayLike, *, variance: ArrayLike = 0.1, noise_variance: ArrayLike = 1e-5, joint_start: bool = True
) -> Shift:
    """Mean  m_k = phi_1 m_{k-1} + phi_2 m_{k-2} + xi_k,  xi_k ~ N(0, noise_variance).

    phi_1 = 4 phi_2 cos(2 pi f) / (phi_2 - 1) puts the peak of the spectrum at f; phi_2 is solved for the stationary
    variance.

    Args:
        f: frequency of the peak in turns per step, in [0, 0.5]; 0 is the iid baseline, mean 0.
        variance: stationary variance of the mean.
        noise_variance: of xi_k; smaller than the variance.
        joint_start: draw the two means before the first step from their joint stationary law. False draws them
            independently, as the paper's table says, which starts with a transient of variance up to 39.

    Returns:
        A shift of one input with memory (m_{k-1}, m_{k-2}).

    >>> ar2(0.05)
    ar2(f=0.05, variance=0.1, noise_variance=1e-05)
    """
    checks.between("f", f, 0, 0.5, "give a frequency in turns per step")
    checks.between("variance", variance, 0, jnp.inf, "give a variance", open_low=True)
    checks.between("noise_variance", noise_variance, 0, jnp.inf, "give a variance", open_low=True)
    label = naming.call("ar2", f=f, variance=variance, noise_variance=noise_variance)
    dtype = jnp.result_type(float)
    f, variance = jnp.asarray(f, dtype), jnp.asarray(variance, dtype)
    noise_variance = jnp.asarray(noise_variance, dtype)
    shift = process(
        *coefficients(f, variance / noise_variance),
        scale=jnp.where(f > 0, jnp.sqrt(variance), 0),
        noise_scale=jnp.where(f > 0, jnp.sqrt(noise_variance), 0),
        joint_start=joint_start,
    )
    return shift._replace(label=label)


def process(
    phi_1: ArrayLike,
    phi_2: ArrayLike,
    decorrelation: ArrayLike,
    *,
    scale: ArrayLike,
    noise_scale: ArrayLike,
    joint_start: bool = True,
    direction: Any = (1.0,),
    offset: Any = (0.0,),
) -> Shift:
    """Mean  offset + m_k direction,  with  m_k = phi_1 m_{k-1} + phi_2 m_{k-2} + xi_k.

    Args:
        phi_1, phi_2: of a stationary process.
        decorrelation: 1 - corr(m_k, m_{k-1})^2.
        scale, noise_scale: standard deviations of m_k and of xi_k.
        joint_start: as `ar2`.
        direction, offset: (dim,).
    """
    dtype = jnp.result_type(float)
    phi_1, phi_2, decorrelation, scale, noise_scale = (
        jnp.asarray(each, dtype) for each in (phi_1, phi_2, decorrelation, scale, noise_scale)
    )
    line, start = jnp.asarray(direction, dtype), jnp.asarray(offset, dtype)
    zero = jnp.zeros((), dtype)

    def init(key: Array) -> tuple[Array, Array]:
        z = jax.random.normal(key, (2,), dtype)
        first = scale * z[0]
        if joint_start:
            return phi_1 / (1 - phi_2) * first + scale * jnp.sqrt(decorrelation) * z[1], first
        return scale * z[1], first

    def inputs(key: Array, k: Array, state: tuple[Array, Array]) -> tuple[Inputs, tuple[Array, Array]]:
        xi = jax.vmap(lambda one: noise_scale * jax.random.normal(jax.random.fold_in(key, one), (), dtype))(k)

        def step(last_two: tuple[Array, Array], xi_k: Array) -> tuple[tuple[Array, Array], Array]:
            last, before = last_two
            mean = phi_1 * last + phi_2 * before + xi_k
            return (mean, last), mean

        state, sequence = jax.lax.scan(step, state, xi)
        return Inputs(start[None, :] + sequence[:, None] * line[None, :], jnp.zeros_like(sequence)), state

    def stationary(key: Array, state: tuple[Array, Array]) -> Inputs:
        return Inputs(start + scale * jax.random.normal(key, (), dtype) * line, zero)

    return Shift(init=init, inputs=inputs, stationary=stationary)


def coefficients(f: Array, ratio: Array) -> tuple[Array, Array, Array]:
    """phi_1, phi_2 and 1 - corr(m_k, m_{k-1})^2 for a spectral peak at f and a variance of `ratio` times the noise's.

    With u = 1 + phi_2 and s = sin^2(2 pi f) the stationary variance is

        ratio = (2 - u)^3 / (u D),    D = u^2 (8 - 8u + u^2) + 16 (1 - u)^2 s,

    a form without cancellation, however close phi_2 is to -1. Newton's method in log u, where the slope is near 1 to 3.
    """
    s = jnp.sin(2 * jnp.pi * f) ** 2

    def D(u: Array) -> Array:
        return u**2 * (8 - 8 * u + u**2) + 16 * (1 - u) ** 2 * s

    def excess(log_u: Array) -> Array:
        u = jnp.exp(log_u)
        return jnp.log(ratio) + log_u + jnp.log(D(u)) - 3 * jnp.log(2 - u)

    def newton(_: int, log_u: Array) -> Array:
        return jnp.minimum(log_u - excess(log_u) / jax.grad(excess)(log_u), -1e-3)

    start = jnp.minimum(-jnp.log(ratio) / 3, -jnp.log(2 * ratio * jnp.maximum(s, jnp.finfo(s.dtype).tiny)))
    u = jnp.exp(jax.lax.fori_loop(0, NUM_NEWTON_STEPS, newton, jnp.minimum(start, -0.1)))
    phi_1 = 4 * (1 - u) * jnp.cos(2 * jnp.pi * f) / (2 - u)
    return phi_1, u - 1, D(u) / (2 - u) ** 4
