"""How far SGD with momentum drifts away when the mean of its inputs swings: runs beside theory."""

import jax
import numpy as np

import resonance_jax as rj

# What is fitted: least squares on 1 input and a bias, 20 samples a step. rj.problems has more, also your own rows.
PROBLEM = rj.problems.linear_regression(dim=1, samples=20)


def point(seed, f, mu, eta=0.01):
    """One cell of the grid. Numbers go in, a dict of numbers comes out; every argument may be an axis."""
    shift = rj.shifts.sinusoid(f, amplitude=0.5)  # what the inputs do over time: swing with frequency f
    run = rj.oscillate(
        jax.random.key(seed), shift=shift, problem=PROBLEM, mu=mu, eta=eta, num_steps=5_000, tail=500, record=50
    )
    return run | {"predicted_rate": rj.theory.growth_rate(shift, mu=mu, eta=eta)}


def axes(scale):
    """Values of each axis. `resonance run --scale quick` passes "quick"; --set mu=0.9,0.99 replaces one axis."""
    n = {"tiny": 4, "quick": 20, "paper": 100}[scale]
    return {
        "f": np.linspace(0, 0.05, n),  # the first axis is cut into chunks, which are stored one by one
        "seed": np.arange(3),
        "mu": np.linspace(0.95, 0.999, n),
    }


def figure(data):
    """Drawn when the sweep is complete, and by `resonance plot --file`. Leave it out for a plain picture."""
    mean = rj.log10_mean(data.log10_distance, "seed").rename("log10_distance")
    growth_of_a_period = data.predicted_rate.isel(seed=0) / data.f
    return rj.plotting.heatmap(mean, log_rho=growth_of_a_period, period_axis=True).figure
