"""Beyond the paper, noise: growth of experiments 3 and 4 over T against three predictions."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import resonance_jax as rj
from resonance_jax import Claim
from sweeps import _noise, _response
from sweeps._shared import pick

MOST_SAMPLES, MOST_DIM = 5, 9  # of experiments 3 and 4b
LONGEST = 60  # experiment 3 goes to 120, experiment 4 to 50
SWITCHING = functools.partial(rj.shifts.switching, variance=0.25)  # table of experiment 4
VARIANTS = {
    "square_wave": dict(shift=rj.shifts.square_wave),  # experiment 3, of norm 1/2, in 5 inputs
    "higher_variance": dict(shift=functools.partial(rj.shifts.switching, variance=0.4)),  # the highest of experiment 4a
}
TITLES = {
    "default": "a mean drawn anew every $T$ steps, $v$ = 0.25",
    "square_wave": "a square wave of period $T$",
    "higher_variance": "a mean drawn anew every $T$ steps, $v$ = 0.4",
}


def point(
    seed,
    T,
    samples,
    dim,
    mu=_response.MU,
    shift: Callable[..., rj.shifts.Shift] = SWITCHING,
):
    problem = rj.problems.linear_regression(
        dim=dim, max_dim=MOST_DIM, samples=samples, max_samples=MOST_SAMPLES, input_variance=0.25
    )
    settings: dict[str, Any] = dict(mu=mu, eta=_response.ETA, num_steps=_response.NUM_STEPS)
    return _noise.rates(seed, shift(T, dim=dim, max_dim=MOST_DIM), problem, with_run=True, **settings)


def axes(scale: str) -> dict[str, np.ndarray]:
    size = pick(scale, tiny=dict(step=30, seed=2), quick=dict(step=4, seed=5), paper=dict(step=1, seed=10))
    return {
        "seed": np.arange(size["seed"]),
        "T": np.arange(0, LONGEST + 1, size["step"]).astype(float),
        "samples": np.array([1, MOST_SAMPLES]),
        "dim": np.array([1, 5, MOST_DIM]),
    }


def figure(data: xr.Dataset) -> Figure:
    panels = [
        (f"$d$ = {dim}, {samples} sample{'s' if samples > 1 else ''} a step", {"samples": samples, "dim": dim})
        for samples in data.samples.values
        for dim in data.dim.values
    ]
    return _noise.curves(data, panels, data.dim.size, f"SGDm under {TITLES[_noise.reading(data)]}", "$T$ (steps)")


def claims(data: xr.Dataset) -> list[Claim]:
    return _noise.curve_claims(data)
