"""W2, the theory chart: log rho over 400 frequencies x 400 momenta, by RK4 with 256 steps a period."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import resonance_jax as rj
from benchmarks._measure import Form

NAME = "W2 theory chart"
ETA, AMPLITUDE, NUM_STEPS = 0.01, 0.5, 256
AXES = {"f": np.linspace(0.005, 0.05, 400), "mu": np.linspace(0.95, 0.999, 400)}


def ours(f, mu):
    psi = rj.theory.monodromy(rj.shifts.sinusoid(f, amplitude=AMPLITUDE), mu=mu, eta=ETA, num_steps=NUM_STEPS)
    return {"log_rho": rj.theory.log_spectral_radius(psi)}


def matrices(f, mu):
    """The same RK4 on 4x4 matrices with `@`, as one writes it first."""
    period, alpha = jnp.sqrt(ETA) / f, (1 - mu) / jnp.sqrt(ETA)
    h = period / NUM_STEPS

    def A(t):
        m = AMPLITUDE * jnp.sin(2 * jnp.pi * t / period)
        B = 2 * jnp.array([[1 + m * m, m], [m, 1.0]])
        return jnp.block([[jnp.zeros((2, 2)), jnp.eye(2)], [-B, -alpha * jnp.eye(2)]])

    def step(psi, k):
        t = k * h
        k1 = A(t) @ psi
        k2 = A(t + h / 2) @ (psi + h / 2 * k1)
        k3 = A(t + h / 2) @ (psi + h / 2 * k2)
        k4 = A(t + h) @ (psi + h * k3)
        return psi + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    psi, _ = jax.lax.scan(step, jnp.eye(4), jnp.arange(NUM_STEPS, dtype=jnp.float32))
    return {"log_rho": rj.theory.log_spectral_radius(psi)}


def swept(point: Callable[..., dict]) -> Callable[[], Callable[[], Any]]:
    return lambda: lambda: rj.sweep(point, AXES).log_rho


def forms() -> list[Form]:
    return [Form("rj.sweep of rj.theory.monodromy", swept(ours)), Form("scan over 4x4 matrices", swept(matrices))]
