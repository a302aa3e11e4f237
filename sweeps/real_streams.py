"""Beyond the paper, real streams: growth in time order and shuffled over momentum and step size, beside training."""

import functools

import jax
import matplotlib.pyplot as plt
import numpy as np
import optax
import xarray as xr
from matplotlib.colors import SymLogNorm
from matplotlib.figure import Figure

import resonance_jax as rj
from resonance_jax import Claim
from resonance_jax.problems import LeastSquares, Recorded
from resonance_jax.theory.recorded.growth import clock_of, found_in, growth_of_run, mean_over
from resonance_jax.theory.recorded.plane import summary
from resonance_jax.theory.recorded.verdicts import NAMES
from sweeps import _streams
from sweeps._shared import pick

WHERE = "beyond the paper, real streams"
PERMUTATIONS = 4
LEAST = 0.97  # share of the cells, of those that grow or shrink by more than a standard error
TUTORIAL = 0.9  # momentum, the default of most tutorials


@functools.cache
def problem_of(stream: str) -> rj.problems.Problem:
    data = _streams.load(stream)
    return rj.problems.recorded(data.inputs, data.targets, samples=1)


def parts_of(stream: str) -> tuple[LeastSquares, Recorded]:
    linear = problem_of(stream).least_squares
    assert linear is not None
    assert linear.recorded is not None
    return linear, linear.recorded


def largest_step(stream: str) -> float:
    """The step size beyond which no quadratic of the mean curvature converges, whatever the momentum."""
    return 4 / float(np.linalg.eigvalsh(parts_of(stream)[1].curvature)[-1])


def point(stream: str, mu, step):
    """Growth in time order and shuffled, and whether training by optax diverges in time order."""
    linear, recorded = parts_of(stream)
    eta = step * largest_step(stream)
    clock = clock_of(recorded.steps)
    trained = rj.train(
        jax.random.key(0),
        problem=problem_of(stream),
        optimizer=optax.sgd(eta, momentum=mu),
        num_steps=2 * clock.passes * clock.steps,
        tail=1,
    )
    in_time = growth_of_run(linear, rj.problems.blocks(len(recorded.rows)), jax.random.key(1), mu, eta)
    keys = jax.random.split(jax.random.key(2), PERMUTATIONS)
    mixed = jax.vmap(lambda key: growth_of_run(linear, rj.problems.blocks(1), key, mu, eta))(keys)
    return {"trained_diverged": trained["diverged_at"] >= 0, "growth": in_time, "shuffled": mixed}


def axes(scale: str) -> dict[str, object]:
    """Momenta crowd towards 1, step sizes are in units of the largest that a quadratic allows."""
    size = pick(scale, tiny=dict(streams=1, cells=4), quick=dict(streams=7, cells=16), paper=dict(streams=7, cells=30))
    return {
        "stream": list(_streams.names()[: size["streams"]]),
        "mu": np.append(1 - np.geomspace(1, 1e-2, size["cells"] - 1), TUTORIAL),
        "step": np.geomspace(1e-4, 1, size["cells"]),
    }
