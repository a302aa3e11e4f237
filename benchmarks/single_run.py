"""One run of 10,000 steps, alone: latency, where the grids measure throughput."""

from typing import Any

import numpy as np

import resonance_jax as rj
from benchmarks._heatmap_setting import AMPLITUDE, ETA, SAMPLES, TAIL
from benchmarks._measure import Form
from benchmarks.first_heatmap import oscillated

NAME = "one run"
F, MU = 1 / 22, 0.98


def numpy_run(num_steps: int = 10_000) -> Any:
    rng = np.random.default_rng(0)
    error, velocity, distances = rng.uniform(-2, 2, 2), np.zeros(2), []
    for k in range(num_steps):
        x = AMPLITUDE * np.sin(2 * np.pi * F * k) + rng.standard_normal(SAMPLES)
        x = np.stack([x, np.ones_like(x)], axis=1)
        velocity = MU * velocity - ETA * 2 * ((x @ error) @ x) / len(x)
        error = error + velocity
        distances.append(np.linalg.norm(error))
    return np.log10(np.mean(distances[-TAIL:]))


def forms() -> list[Form]:
    point = oscillated(10_000)
    one = {"f": np.array([F]), "seed": np.array([0]), "mu": np.array([MU])}
    return [
        Form("rj.sweep of one cell", lambda: lambda: rj.sweep(point, one, devices=1).log10_distance),
        Form("NumPy loop", lambda: numpy_run),
    ]
