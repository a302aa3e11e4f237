"""Shared by the figures of reduced momentum: an experiment with a curve for each momentum."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

import resonance_jax as rj
from resonance_jax import Claim
from sweeps import _response
from sweeps._shared import Claims, Point, Sweep, each

MOMENTA = np.linspace(0.85, 0.95, 5)
WHERE = "Reducing the momentum parameter"


def sweep(
    experiment: Point,
    curves: Callable[..., _response.Curves],
    title: str,
    *,
    claims: Claims | None = None,
    **fixed: Any,
) -> Sweep:
    """An experiment over momentum and T.

    Args:
        experiment: point of the experiment; its variants are arguments of the new point too.
        curves: (title, mu=values) -> axes and figure.
        title: what the experiment is.
        claims: of the dataset; None: those about distances.
        fixed: other arguments of the experiment's point.
    """

    def point(seed, mu, T, **reading):
        return experiment(seed=seed, mu=mu, T=T, **fixed, **reading)

    axes, figure = curves(f"Reduced momentum: {title}", mu=MOMENTA)
    return Sweep(point, axes, figure, claims or distance_claims)


def distance_claims(data: xr.Dataset) -> list[Claim]:
    """The two statements about every figure of reduced momentum, for distances."""
    curves = rj.log10_mean(data.log10_distance, "seed")
    top = _response.highest(curves)
    smallest = float(curves.mu[0])
    baseline = float(curves.sel(T=0).isel(mu=0))
    return [
        Claim(
            "reducing the momentum significantly damps the response",
            WHERE,
            f"log10 of the largest distance over T: {each(top.values, '.2f', 'mu', curves.mu)}",
            "falls with mu, by at least a factor of 10 in all",
            bool((top.diff("mu") > 0).all()) and float(top[-1] - top[0]) > 1,
        ),
        Claim(
            "mu = 0.85 removes the resonant response completely",
            WHERE,
            f"at mu = {smallest:.2f} the largest distance over T is {10 ** float(top[0]):.2g}, "
            f"{10 ** (float(top[0]) - baseline):.1f} times the iid baseline",
            "no divergence: below 1",
            float(top[0]) < 0,
        ),
    ]
