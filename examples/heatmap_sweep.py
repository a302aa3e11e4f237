"""A heatmap of your own: SGDm on a sinusoidal mean, runs against theory. Copy this file anywhere and change it.

resonance run heatmap_sweep.py --scale quick --out heatmap.zarr
"""

import jax
import numpy as np

import resonance_jax as rj

ETA, TAIL = 0.01, 500
PROBLEM = rj.problems.linear_regression(dim=1, samples=20)
SIZES = {"tiny": (2, 6, 5), "quick": (4, 30, 30), "paper": (10, 100, 100)}  # seeds, frequencies, momenta
VARIANTS = {"weak": dict(amplitude=0.25)}  # other readings: keyword arguments of the point


def point(seed, f, mu, amplitude=0.5):
    """One cell: a run and what the theory predicts for it. Every argument may be an axis."""
    shift = rj.shifts.sinusoid(f, amplitude=amplitude)
    run = rj.oscillate(jax.random.key(seed), shift=shift, problem=PROBLEM, mu=mu, eta=ETA, num_steps=10_000, tail=TAIL)
    return run | {"predicted_rate": rj.theory.growth_rate(shift, mu=mu, eta=ETA)}


def axes(scale):
    seeds, frequencies, momenta = SIZES[scale]
    return {
        "f": np.linspace(0, 0.05, frequencies),  # first: chunks are cut here
        "seed": np.arange(seeds),
        "mu": np.linspace(0.95, 0.999, momenta),
    }


def figure(data):
    """Mean distance over the seeds; contours where theory changes from decay to growth, and beyond."""
    mean = rj.log10_mean(data.log10_distance, "seed").rename("log10_distance")
    log_rho = data.predicted_rate.isel(seed=0) / data.f  # growth over a period
    return rj.plotting.heatmap(mean, log_rho=log_rho, limits=(-20, 20), period_axis=True).figure


def claims(data):
    """Statements about the dataset, each with what is taken as agreement."""
    grows = data.growth_rate.median("seed") > 0
    agreeing = float((grows == (data.predicted_rate.isel(seed=0) > 0)).mean())
    return [
        rj.Claim(
            "theory predicts which runs grow",
            where="experiment 1 of the paper",
            measured=f"the signs of both growth rates agree on {agreeing:.1%} of {grows.size} pixels",
            expected="at least 95%",
            holds=agreeing >= 0.95,
        )
    ]
