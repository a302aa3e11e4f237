"""W6, the plane of a diagnosis: 50 momenta x 50 step sizes on 50,000 rows of 16 inputs, one row a step."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import resonance_jax as rj
from benchmarks._measure import Form
from resonance_jax.theory.recorded.growth import LEAST_STEPS, clock_of
from resonance_jax.theory.recorded.plane import axes_of, point_of

NAME = "W6 diagnosis"
ROWS = {"tiny": 200, "quick": 10_000, "paper": 50_000}
SIDE = {"tiny": 3, "quick": 20, "paper": 50}
INPUTS, PERMUTATIONS = 16, 4
SAMPLE = 500  # steps that NumPy computes; its time is scaled to all of them


def rows_of(scale: str) -> np.ndarray:
    k = np.arange(ROWS[scale])
    rng = np.random.default_rng(0)
    drift = 0.5 * np.sin(2 * np.pi * k / 22)[:, None] * rng.normal(size=INPUTS)
    return (drift + rng.normal(size=(len(k), INPUTS))).astype(np.float32)


def plane(scale: str) -> tuple[np.ndarray, np.ndarray]:
    side = SIDE[scale]
    return 1 - np.geomspace(1, 1e-3, side), np.geomspace(1e-5, 0.05, side)


def num_steps(scale: str) -> int:
    """Of each run: those that are left out, and those that are measured."""
    clock = clock_of(ROWS[scale])
    return min(LEAST_STEPS, clock.passes * clock.steps) + clock.checks * clock.check


def ours(scale: str) -> Any:
    problem = rj.problems.recorded(rows_of(scale), samples=1).least_squares
    assert problem is not None
    point, axes = point_of(problem), axes_of(problem, *plane(scale), PERMUTATIONS)
    return lambda: rj.sweep(point, axes)["growth"]


def optax_scan(scale: str) -> Any:
    """The run in time order alone, as one would write it: float32 weights that overflow where they diverge."""
    x = jnp.asarray(np.concatenate([rows_of(scale), np.ones((ROWS[scale], 1), np.float32)], axis=1))
    steps = num_steps(scale)

    def run(mu: Any, eta: Any) -> Any:
        optimizer = optax.sgd(eta, momentum=mu)
        weights = jnp.ones((INPUTS + 1,))

        def step(carry: Any, k: Any) -> Any:
            weights, state = carry
            gradient = jax.grad(lambda weights: (x[k % len(x)] @ weights) ** 2)(weights)
            updates, state = optimizer.update(gradient, state, weights)
            return (optax.apply_updates(weights, updates), state), None

        (weights, _), _ = jax.lax.scan(step, (weights, optimizer.init(weights)), jnp.arange(steps))
        return jnp.linalg.norm(weights)

    grid = jax.jit(jax.vmap(jax.vmap(run, (None, 0)), (0, None)))
    mus, etas = (jnp.asarray(values, jnp.float32) for values in plane(scale))
    return lambda: np.asarray(grid(mus, etas))


def numpy_loop(scale: str) -> Any:
    """The run in time order alone, all cells at once."""
    x = np.concatenate([rows_of(scale), np.ones((ROWS[scale], 1), np.float32)], axis=1)
    mus, etas = (values.astype(np.float32) for values in plane(scale))
    mu, eta = (each.reshape(-1, 1) for each in np.meshgrid(mus, etas, indexing="ij"))

    def loop() -> Any:
        error = np.ones((mu.size, INPUTS + 1), np.float32)
        velocity = np.zeros_like(error)
        with np.errstate(all="ignore"):
            for k in range(min(SAMPLE, num_steps(scale))):
                row = x[k % len(x)]
                velocity = mu * velocity - eta * 2 * np.outer(error @ row, row)
                error = error + velocity
        return np.linalg.norm(error, axis=1)

    return loop


def forms(scale: str) -> list[Form]:
    alone = f"in time order alone: 1 of {1 + PERMUTATIONS} runs"
    steps = num_steps(scale)
    return [
        Form("rj.sweep, as rj.diagnose calls it", lambda: ours(scale)),
        Form("optax in a vmapped scan", lambda: optax_scan(scale), share=1 / (1 + PERMUTATIONS), note=alone),
        Form(
            "NumPy, all cells at once",
            lambda: numpy_loop(scale),
            share=min(SAMPLE, steps) / steps / (1 + PERMUTATIONS),
            note=f"{alone}, {min(SAMPLE, steps)} of {steps} steps",
        ),
    ]
