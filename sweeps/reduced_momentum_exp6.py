"""Appendix, reducing the momentum in experiment 6: a ReLU network under a switching mean of variance 0.4."""

import xarray as xr

from resonance_jax import Claim
from sweeps import _momentum, _response, exp6_mlp
from sweeps._shared import each

VARIANCE = 0.4  # caption of the figure
VARIANTS = exp6_mlp.VARIANTS


def loss_claims(data: xr.Dataset) -> list[Claim]:
    curves = exp6_mlp.mean_loss(data)
    top = _response.highest(curves)
    excess = top / curves.sel(T=0)
    return [
        Claim(
            "reducing the momentum significantly damps the response",
            _momentum.WHERE,
            f"largest mean loss over T: {each(top.values, '.3f', 'mu', data.mu)}",
            "at the smallest mu less than half of that at the largest",
            float(top[0]) < 0.5 * float(top[-1]),
        ),
        Claim(
            "mu = 0.85 removes the resonant response completely",
            _momentum.WHERE,
            f"largest mean loss over T against the iid baseline: {each(excess.values, '.2f', 'mu', data.mu)} times",
            "at mu = 0.85 at most 1.2 times",
            float(excess[0]) <= 1.2,
            why="Not known: the loss falls with the momentum, but not to that of the iid baseline.",
        ),
    ]


point, axes, figure, claims = _momentum.sweep(
    exp6_mlp.point, exp6_mlp.curves, f"ReLU network, $v$ = {VARIANCE}", claims=loss_claims, v=VARIANCE
)
