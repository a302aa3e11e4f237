"""A sweep file of your own: a small network under a switching mean, over momentum, step size and switching interval.

resonance plan examples/mlp_sweep.py --scale large
resonance run examples/mlp_sweep.py --out mlp.zarr
"""

import jax
import numpy as np
import optax

import resonance_jax as rj


def point(seed, T, mu, eta):
    return rj.train(
        jax.random.key(seed),
        shift=rj.shifts.switching(T, dim=2, variance=0.4),
        problem=rj.problems.mlp_regression(),
        optimizer=optax.sgd(eta, momentum=mu),
        num_steps=2_000,
        tail=200,
    )


def axes(scale):
    sizes = {"quick": (2, 5, 5, 2), "large": (20, 50, 50, 20)}  # 100 cells, a million cells
    seeds, intervals, momenta, step_sizes = sizes[scale]
    return {
        "eta": np.geomspace(0.001, 0.1, step_sizes),  # first: chunks are cut here
        "seed": np.arange(seeds),
        "T": np.linspace(1, 100, intervals).round(),
        "mu": np.linspace(0.8, 0.99, momenta),
    }


def figure(data):
    return rj.plotting.overview(data.loss, diverged=data.diverged_at >= 0)
