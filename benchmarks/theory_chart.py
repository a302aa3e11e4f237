"""W2, the theory chart: log rho over 400 frequencies x 400 momenta, by RK4 with 256 steps a period."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

import resonance_jax as rj
from benchmarks._measure import Axes, Form, swept

NAME = "W2 theory chart"
ETA, AMPLITUDE, NUM_STEPS = 0.01, 0.5, 256
SIDE = {"tiny": 8, "quick": 100, "paper": 400}
SAMPLE = 16  # cells that SciPy solves; its time is scaled to all of them


def axes(scale: str) -> Axes:
    return {"f": np.linspace(0.005, 0.05, SIDE[scale]), "mu": np.linspace(0.95, 0.999, SIDE[scale])}


def ours(f, mu):
    psi = rj.theory.monodromy(rj.shifts.sinusoid(f, amplitude=AMPLITUDE), mu=mu, eta=ETA, rk4_steps=NUM_STEPS)
    return {"log_rho": rj.theory.log_spectral_radius(psi)}


def oscillator(f: Any, mu: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The period in ODE time, and the matrix A(t) of xi' = A xi, 4x4."""
    period, alpha = jnp.sqrt(ETA) / f, (1 - mu) / jnp.sqrt(ETA)

    def A(t: Any) -> Any:
        m = AMPLITUDE * jnp.sin(2 * jnp.pi * t / period)
        B = 2 * jnp.array([[1 + m * m, m], [m, 1.0]])
        return jnp.block([[jnp.zeros((2, 2)), jnp.eye(2)], [-B, -alpha * jnp.eye(2)]])

    return period, A


def matrices(f, mu):
    """The same RK4 on 4x4 matrices with `@`, as one writes it first."""
    period, A = oscillator(f, mu)
    h = period / NUM_STEPS

    def step(psi, k):
        t = k * h
        k1 = A(t) @ psi
        k2 = A(t + h / 2) @ (psi + h / 2 * k1)
        k3 = A(t + h / 2) @ (psi + h / 2 * k2)
        k4 = A(t + h) @ (psi + h * k3)
        return psi + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    psi, _ = jax.lax.scan(step, jnp.eye(4), jnp.arange(NUM_STEPS, dtype=jnp.float32))
    return {"log_rho": rj.theory.log_spectral_radius(psi)}


def diffrax_tsit5(f, mu):
    """diffrax, Tsit5 with as many steps of constant length."""
    import diffrax  # pyright: ignore[reportMissingImports]

    period, A = oscillator(f, mu)
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, psi, _: A(t) @ psi),
        diffrax.Tsit5(),
        t0=0.0,
        t1=period,
        dt0=period / NUM_STEPS,
        y0=jnp.eye(4),
        stepsize_controller=diffrax.ConstantStepSize(),
        max_steps=NUM_STEPS + 2,  # the times are summed in float32 and may end a little short of the period
        throw=False,  # no call back to the host
    )
    return {"log_rho": rj.theory.log_spectral_radius(solution.ys[0])}


def scipy_cell(f: float, mu: float) -> float:
    period, alpha = ETA**0.5 / f, (1 - mu) / ETA**0.5

    def slope(t: float, psi: np.ndarray) -> np.ndarray:
        m = AMPLITUDE * np.sin(2 * np.pi * t / period)
        error, velocity = psi.reshape(2, 2, 4)
        pull = 2 * np.array([[1 + m * m, m], [m, 1]]) @ error
        return np.concatenate([velocity, -pull - alpha * velocity]).ravel()

    psi = solve_ivp(slope, (0, period), np.eye(4).ravel(), rtol=1e-6, atol=1e-9).y[:, -1].reshape(4, 4)
    return float(np.log(np.abs(np.linalg.eigvals(psi)).max()))


def scipy_sample(axes: Axes) -> np.ndarray:
    """log rho at a few cells on the diagonal of the chart."""
    at = np.linspace(0, len(axes["f"]) - 1, SAMPLE).astype(int)
    return np.array([scipy_cell(f, mu) for f, mu in zip(axes["f"][at], axes["mu"][at], strict=True)])


def forms(axes: Axes) -> list[Form]:
    cells = len(axes["f"]) * len(axes["mu"])
    return [
        Form("rj.sweep of rj.theory.monodromy", swept(ours, axes, "log_rho")),
        Form("scan over 4x4 matrices", swept(matrices, axes, "log_rho")),
        Form("diffrax, Tsit5, vmapped", swept(diffrax_tsit5, axes, "log_rho"), needs="diffrax"),
        Form(
            "SciPy, solve_ivp",
            lambda: lambda: scipy_sample(axes),
            share=SAMPLE / cells,
            note=f"{SAMPLE} of {cells:,} cells",
        ),
    ]
