"""W5, mean-square growth: 200 frequencies x 200 momenta, five samples a step, exact products over whole turns."""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

import resonance_jax as rj
from benchmarks._measure import Axes, Form, swept
from resonance_jax.numerics.products import turns as turns_of

NAME = "W5 mean-square chart"
ETA, SAMPLES, AMPLITUDE = 0.01, 5, 0.5
SIDE = {"tiny": 6, "quick": 200, "paper": 200}
SAMPLE = 8  # cells that NumPy computes; its time is scaled to all of them


def axes(scale: str) -> Axes:
    return {"f": np.linspace(0, 0.05, SIDE[scale] + 1)[1:], "mu": np.linspace(0.95, 0.999, SIDE[scale])}


def ours(f, mu):
    problem = rj.problems.linear_regression(dim=1, samples=SAMPLES)
    shift = rj.shifts.sinusoid(f, amplitude=AMPLITUDE)
    return {"rate": rj.theory.mean_square_growth(shift, problem, mu=mu, eta=ETA).rate}


def kronecker(f: float, mu: float) -> float:
    """E[M (x) M], 16 x 16, written out with all its moments, multiplied over the same turns; float64."""
    turns, steps = (int(n) for n in turns_of(jnp.float32(1 / f)))
    product, log_size = np.eye(16), 0.0
    I, up = np.eye(2), np.array([[1.0], [1.0]])  # noqa: E741 - the identity
    for k in range(steps):
        m = AMPLITUDE * np.sin(2 * np.pi * turns * k / steps)
        x = np.array([m, 1.0])
        C = np.diag([1.0, 0.0]) + np.outer(x, x)
        # E x_i x_j x_k x_l by Isserlis; [i, j, k, l] = [row of the left B, its column, row of the right B, its column]
        four = np.einsum("ij,kl->ijkl", C, C) + np.einsum("ik,jl->ijkl", C, C) + np.einsum("il,jk->ijkl", C, C)
        four -= 2 * np.einsum("i,j,k,l->ijkl", x, x, x, x)
        both = 4 * (four / SAMPLES + (1 - 1 / SAMPLES) * np.einsum("ij,kl->ijkl", C, C))
        mean = np.block([[I, mu * I], [np.zeros((2, 2)), mu * I]])  # M without the gradient
        pull = ETA * np.kron(up, np.hstack([2 * C, np.zeros((2, 2))]))
        step = np.kron(mean - pull, mean - pull) - np.kron(pull, pull)
        blocks = np.einsum("ijkl->ikjl", both).reshape(2, 2, 2, 2)
        squares = np.zeros((4, 4, 4, 4))
        for a in (0, 2):
            for b in (0, 2):
                squares[a : a + 2, b : b + 2, :2, :2] = ETA**2 * blocks
        product = (step + squares.reshape(16, 16)) @ product
        size = np.abs(product).max()
        product, log_size = product / size, log_size + np.log(size)
    return (np.log(np.abs(np.linalg.eigvals(product)).max()) + log_size) / (2 * steps)


def numpy_chart(axes: Axes) -> Any:
    rng = np.random.default_rng(0)
    return np.array([kronecker(rng.choice(axes["f"]), rng.choice(axes["mu"])) for _ in range(SAMPLE)])


def forms(scale: str) -> list[Form]:
    grid = axes(scale)
    share = SAMPLE / (grid["f"].size * grid["mu"].size)
    return [
        Form("rj.theory.mean_square_growth", swept(ours, grid, "rate")),
        Form(
            "NumPy, E[M (x) M]",
            lambda: functools.partial(numpy_chart, grid),
            share=min(1.0, share),
            note=f"{SAMPLE} cells",
        ),
    ]
