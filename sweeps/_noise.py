"""Shared by the figures of noise: the three rates of a setting, their names, and how they agree with runs."""

from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import resonance_jax as rj
from resonance_jax import Claim

NOTIONS = {"mean": "mean", "mean_square": "mean square", "almost_sure": "almost sure"}
OTHER_SEEDS = 1000  # added to a seed, so that the estimate is independent of the runs it is compared with
WHERE = "beyond the paper: growth under sampling noise"


def rates(
    seed, shift: rj.shifts.Shift, problem, *, num_steps: int, with_run: bool = False, **settings: Any
) -> dict[str, jax.Array]:
    """The three notions, the almost-sure one from a run of another seed; `with_run` the growth of one of this seed too.

    The runs have no observation noise: with it, the distance ends at a floor that says nothing of its growth. Where the
    mean is neither periodic nor drawn anew, predictions follow the path of the other seed. Settings: `mu` and `eta`, or
    `optimizer`.
    """
    seeds = [OTHER_SEEDS + seed, seed] if with_run else [OTHER_SEEDS + seed]
    keys = jax.vmap(jax.random.key)(jnp.stack(seeds))
    paths: dict[str, Any] = dict(key=keys[0], path_steps=num_steps, num_paths=1)

    def growth(key: jax.Array) -> jax.Array:
        return rj.theory.almost_sure_growth(shift, problem, key=key, num_steps=num_steps, **settings).rate

    found = jax.vmap(growth)(keys)
    return {
        "mean_rate": rj.theory.mean_growth(shift, problem, **settings, **paths).rate,
        "mean_square_rate": rj.theory.mean_square_growth(shift, problem, **settings, **paths).rate,
        "almost_sure_rate": found[0],
    } | ({"growth_rate": found[1]} if with_run else {})


def reading(data: xr.Dataset) -> str:
    """Name of the variant of the data."""
    return data.attrs.get("variant") or "default"


def over_seeds(data: xr.Dataset) -> dict[str, xr.DataArray]:
    """The rates without their seeds: a mean of the estimates, and the one value of the others."""
    return {notion: data[f"{notion}_rate"].mean("seed") for notion in NOTIONS}


def curves(data: xr.Dataset, panels: list[tuple[str, dict[str, float]]], columns: int, title: str, x: str) -> Figure:
    """Growth over T, a panel for each setting of the other axes: growth of runs, and the three predictions."""
    rows = -(-len(panels) // columns)
    picture, grid = plt.subplots(
        rows, columns, figsize=(4 * columns, 3.4 * rows), layout="constrained", squeeze=False, sharex=True, sharey=True
    )
    picture.suptitle(f"{title}; dots: runs without observation noise, 95% over {data.seed.size} seeds", fontsize=11)
    for ax, (name, chosen) in zip(grid.flat, panels, strict=True):
        one = data.sel(chosen, method="nearest")
        predicted = {NOTIONS[notion]: rate for notion, rate in over_seeds(one).items()}
        rj.plotting.growth_curves(one.growth_rate, predicted, title=name, ax=ax)
        ax.set_xlabel(x if ax in grid[-1] else "")
        ax.set_ylabel(ax.get_ylabel() if ax in grid[:, 0] else "")
    grid[0][0].legend(fontsize=8)
    return picture


def curve_claims(data: xr.Dataset) -> list[Claim]:
    """How far each prediction is from the growth of runs."""
    found, measured = over_seeds(data), data.growth_rate.mean("seed")
    error = standard_error(data.growth_rate)
    both = (error**2 + standard_error(data.almost_sure_rate) ** 2) ** 0.5
    off = {notion: np.abs(rate - measured) for notion, rate in found.items()}
    typical = {notion: float(distance.median()) for notion, distance in off.items()}
    sign = {notion: float(((rate > 0) == (measured > 0)).mean()) for notion, rate in found.items()}
    scores = off["almost_sure"] / both
    return [
        Claim(
            "the almost-sure rate is the growth of runs",
            WHERE,
            f"differs by more than four standard errors on {float((scores > 4).mean()):.1%} of {scores.size} settings; "
            f"median difference {typical['almost_sure']:.1e} per step, same sign on {sign['almost_sure']:.1%}",
            "same sign on at least 95%, median difference at most 5e-4",
            sign["almost_sure"] >= 0.95 and typical["almost_sure"] <= 5e-4,
        ),
        Claim(
            "the mean alone does not tell how runs grow",
            WHERE,
            f"median difference {typical['mean']:.1e} per step, same sign on {sign['mean']:.1%}; "
            f"of the mean square {typical['mean_square']:.1e}, {sign['mean_square']:.1%}",
            "median difference at least three times that of the almost-sure rate",
            typical["mean"] >= 3 * typical["almost_sure"],
        ),
        enclosing_claim(found, both),
    ]


def enclosing_claim(found: dict[str, xr.DataArray], error: xr.DataArray) -> Claim:
    """By Jensen's inequality, up to four standard errors of the estimate, and the rounding of float32."""
    inside = found["mean_square"] >= found["almost_sure"] - 4 * error - 2e-5
    share = float(inside.mean())
    return Claim(
        "the mean square grows at least as fast as a typical run",
        WHERE,
        f"on {share:.2%} of {inside.size} settings, within four standard errors",
        "on all but 0.1%",
        share >= 0.999,
    )


def standard_error(almost_sure: xr.DataArray) -> xr.DataArray:
    """Of the mean over seeds."""
    return almost_sure.std("seed", ddof=1) / np.sqrt(almost_sure.seed.size)
