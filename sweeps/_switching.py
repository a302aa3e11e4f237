"""Shared by both figures of experiment 4: a mean drawn anew every T steps, and the readings of the paper."""

import functools

import jax

import resonance_jax as rj
from sweeps import _response

LONGEST = 50  # table of experiment 4
VARIANTS = {
    "one_sample": dict(samples=1, input_variance=0.1, loss_factor=1.0),  # the text's variance, half squared error
    "table": dict(samples=1),  # the table's variance, one sample, squared error
}
curves = functools.partial(_response.curves, longest=LONGEST, x=_response.INTERVAL)
WHERE = "Ablating Periodicity Further"


def run(seed, T, v, dim, mu, samples, input_variance, loss_factor, max_dim=None) -> dict[str, jax.Array]:
    shift = rj.shifts.switching(T, dim=dim, variance=v, max_dim=max_dim)
    problem = dict(samples=samples, input_variance=input_variance, loss_factor=loss_factor)
    return _response.run(seed, shift, mu, dim=dim, max_dim=max_dim, **problem)
