"""W1, the first heatmap: 100 mu x 100 f x 10 seeds, 10,000 steps, 20 samples a step. And its theory.

    python -m benchmarks.first_heatmap [--steps 10000] [--repeats 3]

Compares, in one run on one machine: `rj.sweep` of `rj.oscillate`, as a user calls it; the plain form, a vmapped scan
with autodiff and a key per seed, which overflows; and `rj.sweep` of the theory. Calls are synchronised, compilation is
timed apart, the median of the repeats is printed.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable

import jax

jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)  # one per core

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import resonance_jax as rj  # noqa: E402

ETA, AMPLITUDE, SAMPLES, TAIL = 0.01, 0.5, 20, 500
AXES = {"seed": np.arange(10), "f": np.linspace(0, 0.05, 100), "mu": np.linspace(0.95, 0.999, 100)}


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


def theory(f, mu):
    return {"growth_rate": rj.theory.growth_rate(rj.shifts.sinusoid(f, amplitude=AMPLITUDE), mu=mu, eta=ETA)}


def measure(name: str, point: Callable[..., dict], axes: dict[str, np.ndarray], repeats: int) -> float:
    """Median seconds of a whole warm `rj.sweep` call, labels and transfers included."""
    first = rj.sweep(point, axes)
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        rj.sweep(point, axes)
        seconds.append(time.perf_counter() - begin)
    finite = min(float(np.isfinite(first[variable]).mean()) for variable in first)
    print(
        f"| {name} | {statistics.median(seconds) * 1e3:,.1f} ms | {first.attrs['compile_seconds']:.1f} s | "
        f"{first.attrs['peak_bytes'] / 2**20:.1f} MiB | {finite:.1%} |",
        flush=True,
    )
    return statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_heatmap", description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000, help="steps of a run (default: 10,000)")
    parser.add_argument("--repeats", type=int, default=3, help="warm calls to take the median of (default: 3)")
    arguments = parser.parse_args()
    device = jax.local_devices()[0]
    print(f"{jax.local_device_count()} x {device.device_kind}, {os.cpu_count()} cores, jax {jax.__version__}")
    print(f"W1 with {arguments.steps:,} steps\n")
    print(
        "| form | warm call | compile | memory of the program, per device | finite |\n| --- | --- | --- | --- | --- |"
    )
    ours = measure("rj.sweep of rj.oscillate", oscillated(arguments.steps), AXES, arguments.repeats)
    slow = measure("plain vmapped scan, autodiff", plain(arguments.steps), AXES, arguments.repeats)
    measure("rj.sweep of the theory", theory, {name: AXES[name] for name in ("f", "mu")}, arguments.repeats)
    print(f"\nplain / ours: {slow / ours:.1f}")


if __name__ == "__main__":
    main()
