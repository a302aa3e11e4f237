"""Beyond the paper, real streams: growth in time order and shuffled over momentum and step size, beside real training."""

import functools
from typing import Any

import jax
import numpy as np
import optax

import resonance_jax as rj
from resonance_jax.theory.recorded import growth
from sweeps import _streams

WHERE = "real streams"
PERMUTATIONS = 4
ORDERS = {"time": 0, **{f"shuffled {i}": i for i in range(PERMUTATIONS)}}  # name -> seed
SAMPLES = 1


@functools.cache
def problem_of(stream: str) -> rj.problems.Problem:
    data = _streams.load(stream)
    return rj.problems.recorded(data.inputs, data.targets, samples=SAMPLES)


def largest_step(stream: str) -> float:
    """The step size beyond which no quadratic of the mean curvature converges, whatever the momentum."""
    return 4 / np.linalg.eigvalsh(_recorded(stream).curvature)[-1]


def _recorded(stream: str) -> Any:
    linear = problem_of(stream).least_squares
    assert linear is not None
    return linear.recorded


def point(stream: str, mu, step):
    """Sizes of the error in time order and shuffled, and whether training by optax diverges in time order."""
    problem, eta = problem_of(stream), step * largest_step(stream)
    recorded = _recorded(stream)
    clock = growth.clock_of(recorded.steps)
    trained = rj.train(
        jax.random.key(0),
        problem=problem,
        optimizer=optax.sgd(eta, momentum=mu),
        num_steps=2 * clock.passes * clock.steps,
        tail=1,
    )
    found = {"trained_diverged": trained["diverged_at"] >= 0}
    lengths = [len(recorded.rows)] + [1] * PERMUTATIONS
    seeds = [0, *range(PERMUTATIONS)]
    sizes = [
        growth.sizes_of_run(problem.least_squares, rj.problems.blocks(length), seed, mu, eta)
        for length, seed in zip(lengths, seeds, strict=True)
    ]
    return found | {"size": jax.numpy.stack(sizes)}
