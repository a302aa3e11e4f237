"""W1, the first heatmap: 100 mu x 100 f x 10 seeds, 10,000 steps, 20 samples a step, mean distance of the last 500.

Every form gives log10 of the mean distance with the axes (f, seed, mu). The draws depend on the seed and the step only.
Forms that need more than NumPy and JAX are in files of their own, which are imported when they are prepared.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import resonance_jax as rj
from benchmarks._heatmap_setting import AMPLITUDE, ETA, SAMPLES, TAIL, advance
from benchmarks._measure import Axes, Form, swept

NAME = "W1 first heatmap"
NUM_STEPS = {"tiny": 600, "quick": 1_000, "paper": 10_000}


def axes(scale: str) -> Axes:
    """f, seed and mu, in this order."""
    side, seeds = (10, 4) if scale == "tiny" else (100, 10)
    return {"f": np.linspace(0, 0.05, side), "seed": np.arange(seeds), "mu": np.linspace(0.95, 0.999, side)}


def oscillated(num_steps: int, *, samples: int = SAMPLES, dim: int = 1, tail: int = TAIL) -> Callable[..., dict]:
    def point(seed, f, mu):
        return rj.oscillate(
            jax.random.key(seed),
            shift=rj.shifts.sinusoid(f, amplitude=AMPLITUDE),
            problem=rj.problems.linear_regression(dim=dim, samples=samples),
            mu=mu,
            eta=ETA,
            num_steps=num_steps,
            tail=tail,
        )

    return point


def plain(num_steps: int) -> Callable[..., dict]:
    """What a good JAX user writes first: theta itself, the gradient by autodiff, one step per iteration."""

    def point(seed, f, mu):
        key = jax.random.key(seed)
        theta_star, theta_0 = jax.random.uniform(key, (2, 2), minval=-1, maxval=1)

        def loss(theta, x):
            return jnp.mean((x @ (theta - theta_star)) ** 2)

        def step(carry, k):
            theta, velocity, total = carry
            mean = AMPLITUDE * jnp.sin(2 * jnp.pi * f * k.astype(jnp.float32))
            x = mean + jax.random.normal(jax.random.fold_in(key, k), (SAMPLES,))
            x = jnp.stack([x, jnp.ones_like(x)], axis=1)
            velocity = mu * velocity - ETA * jax.grad(loss)(theta, x)
            theta = theta + velocity
            distance = jnp.linalg.norm(theta - theta_star)
            return (theta, velocity, total + jnp.where(k >= num_steps - TAIL, distance, 0)), None

        start = (theta_0, jnp.zeros(2), jnp.zeros(()))
        (_, _, total), _ = jax.lax.scan(step, start, jnp.arange(num_steps))
        return {"log10_distance": jnp.log10(total / TAIL)}

    return point


def numpy_grid(axes: Axes, num_steps: int) -> np.ndarray:
    """NumPy, vectorised over the grid, a Python loop over the steps."""
    rng = np.random.default_rng(0)
    f, mu = axes["f"].astype(np.float32)[:, None, None], axes["mu"].astype(np.float32)
    seeds = len(axes["seed"])
    shape = (len(axes["f"]), seeds, len(axes["mu"]))
    weights = rng.uniform(-1, 1, (2, 2, seeds, 1)).astype(np.float32)
    slope, offset = (np.broadcast_to(error, shape) for error in weights[0] - weights[1])
    zeros = np.zeros(shape, np.float32)
    state, total = (slope, offset, zeros, zeros), zeros.copy()
    with np.errstate(all="ignore"):
        for k in range(num_steps):
            z = rng.standard_normal((seeds, SAMPLES), dtype=np.float32)
            mean = AMPLITUDE * np.sin(2 * np.pi * f * k, dtype=np.float32)
            state = advance(state, mu, mean, z)
            if k >= num_steps - TAIL:
                total += np.hypot(*state[:2])
        return np.log10(total / TAIL)


def torch_eager(axes: Axes, num_steps: int) -> Callable[[], Any]:
    from benchmarks import first_heatmap_torch

    return first_heatmap_torch.eager(axes, num_steps)


def torch_graph(axes: Axes, num_steps: int) -> Callable[[], Any]:
    from benchmarks import first_heatmap_torch

    return first_heatmap_torch.graph(axes, num_steps)


def numba_loop(axes: Axes, num_steps: int) -> Callable[[], Any]:
    from benchmarks import first_heatmap_numba

    return first_heatmap_numba.loop(axes, num_steps)


def native(language: str, axes: Axes, num_steps: int) -> Callable[[], Any]:
    from benchmarks import first_heatmap_native

    return first_heatmap_native.compiled(language, axes, num_steps)


def forms(axes: Axes, num_steps: int) -> list[Form]:
    cpu, gpu = ("cpu",), ("gpu",)
    size = (axes, num_steps)
    return [
        Form("rj.sweep of rj.oscillate", swept(oscillated(num_steps), axes, "log10_distance")),
        Form("plain vmapped scan, autodiff", swept(plain(num_steps), axes, "log10_distance")),
        Form("NumPy over the grid", lambda: lambda: numpy_grid(*size), platforms=cpu),
        Form("PyTorch over the grid, eager", lambda: torch_eager(*size), needs="torch"),
        Form("PyTorch, CUDA graph of ten steps", lambda: torch_graph(*size), needs="torch", platforms=gpu),
        Form("numba, parallel loop", lambda: numba_loop(*size), needs="numba", platforms=cpu),
        Form("C with OpenMP", lambda: native("c", *size), needs="cc", platforms=cpu),
        Form("CUDA, one thread a cell", lambda: native("cu", *size), needs="nvcc", platforms=gpu),
    ]
