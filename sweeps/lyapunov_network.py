"""Beyond the paper, Lyapunov exponents: do perturbations of the network grow in the band of T of experiment 6?"""

import jax
import numpy as np
import optax
import xarray as xr
from matplotlib.figure import Figure

import resonance_jax as rj
from resonance_jax import Claim
from sweeps import _lyapunov, _response, exp6_mlp
from sweeps._shared import Axes, each

NEUTRAL = 1e-3  # per step, a fifth of the growth of SGDm in experiment 4 at v = 0.4, 10^21.7 in 10,000 steps
POOR = 0.3  # the paper's extremely poor fit


def point(seed, v, T):
    """The run of experiment 6, and the exponent along it."""
    exponent = rj.lyapunov(
        jax.random.key(seed),
        shift=rj.shifts.switching(T, dim=2, variance=v),
        problem=rj.problems.mlp_regression(),
        optimizer=optax.sgd(_response.ETA, momentum=_response.MU),
        num_steps=exp6_mlp.NUM_STEPS,
    )
    return exp6_mlp.point(seed, v, T) | {"exponent": exponent.rate}


def axes(scale: str) -> Axes:
    grid = _response.axes(scale, exp6_mlp.LONGEST, {"v": np.linspace(0, 0.4, 5)}, paper_seeds=_lyapunov.SEEDS)
    return grid | _lyapunov.QUICK | {"v": np.array([0.0, 0.4])} if scale == "quick" else grid


def figure(data: xr.Dataset) -> Figure:
    return _lyapunov.figure(
        data.loss,
        data.exponent,
        data.diverged_at >= 0,
        "v",
        "SGDm on a ReLU network under a switching mean",
        label=f"mean test loss, last {exp6_mlp.TAIL} steps",
    )


def claims(data: xr.Dataset) -> list[Claim]:
    """What theory expects: exponents near 0, in the band too.

    A network has neutral directions. Rescaling a unit's weights in and out changes nothing, and weights of a unit that
    is dead for all inputs keep every perturbation. So the largest exponent is about 0 without drift. Resonance makes
    weights grow, but not for ever: they leave the region in which the loss is curved. A ReLU that is pushed below 0 for
    all inputs is dead from then on. A loss of 0.6 in the band of experiment 6 is that of an output which does not
    depend on the input, that is of a dead layer; its perturbations stay as they are, exactly. So the band of bad
    losses should not show in the exponent of the steps that follow.
    """
    alive = data.exponent.where(data.diverged_at < 0)
    mean = alive.mean("seed")
    still, strongest = mean.isel(v=0), mean.isel(v=-1)
    v = f"v = {float(data.v[-1]):g}"
    runs = alive.isel(v=-1)
    parts = [exp6_mlp.band(runs), runs.isel(T=0), runs.isel(T=-1)]
    inside, first, last = (_lyapunov.per_1000(part.mean()) for part in parts)
    score = _lyapunov.score(parts[0], max(parts[1:], key=lambda end: float(end.mean())))
    poor = alive.values[(data.loss > POOR).values & (data.diverged_at < 0).values]
    typical = float(np.median(np.abs(poor))) if poor.size else np.nan
    correlation = _lyapunov.rank_correlation(strongest, exp6_mlp.mean_loss(data).isel(v=-1))
    return [
        Claim(
            "without drift, perturbations neither grow nor die out",
            _lyapunov.WHERE,
            f"v = {float(data.v[0]):g}: {_lyapunov.per_1000(still.min())} to {_lyapunov.per_1000(still.max())} "
            "per 1000 steps",
            f"within {1000 * NEUTRAL:g} of 0 per 1000 steps",
            bool((np.abs(still) <= NEUTRAL).all()),
        ),
        Claim(
            "the band of high loss does not show as growth",
            _lyapunov.WHERE,
            f"{v}: {inside} per 1000 steps in the band of T from {exp6_mlp.BAND[0]} to {exp6_mlp.BAND[1]}, {first} at "
            f"T = 0, {last} at T = {exp6_mlp.LONGEST}; the band is {score:+.1f} standard errors above the higher end; "
            f"rank correlation with the loss for T > 0: {correlation:.2f}",
            "not above both ends by more than two standard errors",
            score <= 2,
        ),
        Claim(
            "where the fit is extremely poor, perturbations are kept: units are dead",
            _lyapunov.WHERE,
            f"median size of the exponent of the {poor.size} runs of a loss above {POOR}: {typical:.1e} per step",
            "at most 1e-4 per step",
            typical <= 1e-4 if poor.size else None,
            why="The steps before the last unit dies may count as well."
            if poor.size
            else "No run of this grid fits that poorly.",
        ),
        Claim(
            "no drift makes runs part as fast as SGDm on least squares",
            _lyapunov.WHERE,
            f"largest mean exponent over T: {each(1000 * mean.max('T').values, '+.2f', 'v', data.v)} per 1000 steps",
            f"at most {1000 * NEUTRAL:g} per 1000 steps for every T and v",
            bool((mean <= NEUTRAL).all()),
        ),
    ]
