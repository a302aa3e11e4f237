"""W1, the first heatmap: 100 mu x 100 f x 10 seeds, 10,000 steps, 20 samples a step, mean distance of the last 500."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import resonance_jax as rj
from benchmarks._measure import Form

NAME = "W1 first heatmap"
ETA, AMPLITUDE, SAMPLES, TAIL = 0.01, 0.5, 20, 500
AXES = {"f": np.linspace(0, 0.05, 100), "seed": np.arange(10), "mu": np.linspace(0.95, 0.999, 100)}


def swept(point: Callable[..., dict]) -> Callable[[], Callable[[], Any]]:
    """Whole calls of `rj.sweep`, labels and transfers included."""
    return lambda: lambda: rj.sweep(point, AXES).log10_distance


def oscillated(num_steps: int) -> Callable[..., dict]:
    def point(seed, f, mu):
        return rj.oscillate(
            jax.random.key(seed),
            shift=rj.shifts.sinusoid(f, amplitude=AMPLITUDE),
            problem=rj.problems.linear_regression(dim=1, samples=SAMPLES),
            mu=mu,
            eta=ETA,
            num_steps=num_steps,
            tail=TAIL,
        )

    return point


def plain(num_steps: int) -> Callable[..., dict]:
    """What a good JAX user writes first: theta itself, the gradient by autodiff, one step a trip."""

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


def advance(state: tuple[Any, ...], mu: Any, mean: Any, z: Any) -> tuple[Any, ...]:
    """One step on the moments of the samples, for NumPy and PyTorch alike: errors, then velocities, of both weights."""
    slope, offset, slope_velocity, offset_velocity = state
    z_mean, zz_mean = z.mean(1)[:, None], (z * z).mean(1)[:, None]
    x, xx = mean + z_mean, mean**2 + 2 * mean * z_mean + zz_mean
    slope_velocity = mu * slope_velocity - 2 * ETA * (xx * slope + x * offset)
    offset_velocity = mu * offset_velocity - 2 * ETA * (x * slope + offset)
    return slope + slope_velocity, offset + offset_velocity, slope_velocity, offset_velocity


def numpy_grid(num_steps: int) -> np.ndarray:
    """NumPy, vectorised over the grid, a Python loop over the steps."""
    rng = np.random.default_rng(0)
    f, mu = AXES["f"].astype(np.float32)[:, None, None], AXES["mu"].astype(np.float32)
    seeds = len(AXES["seed"])
    shape = (len(AXES["f"]), seeds, len(AXES["mu"]))
    slope, offset = (np.broadcast_to(rng.uniform(-2, 2, (seeds, 1)).astype(np.float32), shape) for _ in range(2))
    zeros = np.zeros(shape, np.float32)
    state, total = (slope, offset, zeros, zeros), zeros.copy()
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for k in range(num_steps):
            z = rng.standard_normal((seeds, SAMPLES), dtype=np.float32)
            mean = AMPLITUDE * np.sin(2 * np.pi * f * k, dtype=np.float32)
            state = advance(state, mu, mean, z)
            if k >= num_steps - TAIL:
                total += np.hypot(*state[:2])
        return np.log10(total / TAIL)


def torch_grid(num_steps: int) -> Callable[[], Callable[[], Any]]:
    """PyTorch, batched tensors over the grid, an eager loop over the steps."""

    def prepare() -> Callable[[], Any]:
        import torch  # pyright: ignore[reportMissingImports]

        device = "cuda" if torch.cuda.is_available() and jax.default_backend() != "cpu" else "cpu"
        f, mu = (torch.tensor(AXES[name], dtype=torch.float32, device=device) for name in ("f", "mu"))
        f = f[:, None, None]
        shape = (len(AXES["f"]), len(AXES["seed"]), len(AXES["mu"]))

        def call() -> Any:
            torch.manual_seed(0)
            slope, offset = (torch.rand(shape[1], 1, device=device).mul(4).sub(2).expand(shape) for _ in range(2))
            zeros = torch.zeros(shape, device=device)
            state, total = (slope, offset, zeros, zeros), zeros
            for k in range(num_steps):
                z = torch.randn(shape[1], SAMPLES, device=device)
                mean = AMPLITUDE * torch.sin(2 * torch.pi * f * k)
                state = advance(state, mu, mean, z)
                if k >= num_steps - TAIL:
                    total = total + torch.hypot(*state[:2])
            return torch.log10(total / TAIL).cpu().numpy()

        return call

    return prepare


def forms(num_steps: int = 10_000) -> list[Form]:
    return [
        Form("rj.sweep of rj.oscillate", swept(oscillated(num_steps))),
        Form("plain vmapped scan, autodiff", swept(plain(num_steps))),
        Form("NumPy over the grid", lambda: lambda: numpy_grid(num_steps)),
        Form("PyTorch over the grid, eager", torch_grid(num_steps), needs="torch"),
    ]
