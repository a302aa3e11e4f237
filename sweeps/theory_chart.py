"""Appendix, theory charts: growth of the mean over (T, mu) for three step sizes, zoomed in and wide."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import resonance_jax as rj
from resonance_jax import Claim
from sweeps import _heatmap
from sweeps._shared import each, pick

DTYPE = "float64"  # at mu = 0.75 and T = 2000, log rho in float32 has an error of 2e-3 with any number of RK4 steps
ETAS = (0.01, 0.005, 0.001)  # caption of the theory heatmaps
AMPLITUDE = 0.5  # table of experiment 1
ZOOM = {"T": 200, "mu": 0.95}  # the zoomed panels show periods up to 200 steps and momenta from 0.95


def point(eta, T, mu):
    shift = rj.shifts.sinusoid(1 / T, amplitude=AMPLITUDE)
    return {
        "growth_rate": rj.theory.growth_rate(shift, mu=mu, eta=eta),
        "discrete_rate": rj.theory.growth_rate(shift, mu=mu, eta=eta, discrete=True),
    }


def axes(scale: str) -> dict[str, np.ndarray]:
    """One grid for both columns: fine in the corner that the zoomed panels show, coarse beyond it.

    Periods are whole, so that the exact discrete theory applies everywhere.
    """
    size = pick(
        scale,
        tiny=dict(T_step=60, T_wide=450, mu=4, mu_wide=6),
        quick=dict(T_step=3, T_wide=150, mu=30, mu_wide=40),
        paper=dict(T_step=1, T_wide=20, mu=69, mu_wide=96),
    )
    return {
        "eta": np.array(ETAS),
        "T": np.concatenate(
            [np.arange(20, ZOOM["T"] + 1, size["T_step"]), np.arange(ZOOM["T"] + size["T_wide"], 2001, size["T_wide"])]
        ).astype(float),
        "mu": np.concatenate(
            [np.linspace(0, ZOOM["mu"], size["mu_wide"], endpoint=False), np.linspace(ZOOM["mu"], 0.999, size["mu"])]
        ),
    }


def _zoomed(data: xr.Dataset) -> xr.Dataset:
    return data.sel(T=slice(None, ZOOM["T"]), mu=slice(ZOOM["mu"] - 1e-9, None))


def _mu_best(data: xr.Dataset) -> xr.DataArray:
    """Momentum of fastest convergence, for each period and step size."""
    return data.growth_rate.idxmin("mu")


def figure(data: xr.Dataset) -> Figure:
    fig, panels = plt.subplots(len(ETAS), 2, figsize=(11, 11), layout="constrained")
    fig.suptitle(r"Growth of the mean under a sinusoid; contours: $\rho$ = 1 (white) and above (redder)")
    for row, eta in zip(panels, data.eta.values, strict=True):
        one = data.sel(eta=eta)
        for ax, part, name in zip(row, (_zoomed(one), one), ("zoom", "wide range"), strict=True):
            title = rf"$\eta$ = {eta:g}, {name}"
            rj.plotting.heatmap(part.growth_rate, x="T", powers_of_ten=False, title=title, ax=ax)
            edge = _heatmap.boundary(float(eta), (0.0, 1 / 20), (ZOOM["mu"], 0.999))
            edge = edge.assign({"T": 1 / edge.f.where(edge.f > 0)})
            rj.plotting.contours(part.growth_rate * part["T"], boundary=edge, x="T", labels=False, ax=ax)
            ax.set(xscale="log", xlim=(part["T"].min(), part["T"].max()), xlabel="period of the shift $T$ (steps)")
            ticks = [T for T in (20, 30, 50, 70, 100, 200, 500, 1000, 2000) if part["T"].max() >= T]
            ax.set_xticks(ticks, [str(T) for T in ticks])
            ax.minorticks_off()
        wide = row[1]
        wide.plot(one["T"], _mu_best(one), color="black", lw=3)
        wide.plot(one["T"], _mu_best(one), color="white", ls="--", lw=1.5, label=r"$\mu_\mathrm{best}$")
        wide.plot([20, ZOOM["T"], ZOOM["T"]], [ZOOM["mu"], ZOOM["mu"], 1], color="white", ls=":", lw=1.5, label="zoom")
        wide.set_ylim(0, 1)
        wide.legend(loc="lower right", facecolor="0.35", labelcolor="white")
    return fig


def claims(data: xr.Dataset) -> list[Claim]:
    zoomed = _zoomed(data)
    resonant = data.growth_rate > 0
    lowest = [float(data.mu.where(resonant.sel(eta=eta).any("T")).min()) for eta in ETAS]
    even_in_f = zoomed["T"] ** -2.0  # |df/dT|: the paper's heatmaps are even in frequency, this grid in the period
    area = [float((zoomed.growth_rate.sel(eta=eta) > 0).weighted(even_in_f).mean()) for eta in ETAS]
    best = _mu_best(data)
    best_at_end = [float(best.sel(eta=eta).isel(T=-1)) for eta in ETAS]
    spread = [float(best.sel(eta=eta).max() - best.sel(eta=eta).min()) for eta in ETAS]
    slower = [
        float((data.growth_rate.sel(eta=eta).min("mu") / data.growth_rate.sel(eta=eta, mu=0)).min()) for eta in ETAS
    ]
    differ = [int(((zoomed.growth_rate > 0) != (zoomed.discrete_rate > 0)).sel(eta=eta).sum()) for eta in ETAS]
    pixels = zoomed.growth_rate.sel(eta=ETAS[0]).size

    def per_eta(values: Sequence[float], form: str) -> str:
        return each(values, form, "eta", ETAS)

    return [
        Claim(
            "a sufficiently low momentum removes resonance completely",
            "Reducing the momentum parameter",
            f"lowest mu with rho > 1: {per_eta(lowest, '.4f')}",
            "above 0.95 for every eta (nan: no mu up to 0.999 resonates)",
            all(not mu <= 0.95 for mu in lowest),
        ),
        Claim(
            "too low a momentum converges more slowly",
            "Reducing the momentum parameter",
            f"the best mu is faster than mu = 0 by at least a factor of {per_eta(slower, '.1f')}",
            "more than 1",
            min(slower) > 1,
        ),
        Claim(
            "one mu_best is best at nearly all periods, with minor deviations at the shortest",
            "caption of the theory heatmaps",
            f"mu_best at T = 2000: {per_eta(best_at_end, '.3f')}; it varies over T by {per_eta(spread, '.3f')}",
            "largest minus smallest at most 0.1",
            max(spread) <= 0.1,
        ),
        Claim(
            "mu_best moves with the step size",
            "caption of the theory heatmaps",
            f"mu_best at T = 2000: {per_eta(best_at_end, '.3f')}",
            "rises as eta falls",
            best_at_end == sorted(best_at_end) and best_at_end[0] < best_at_end[-1],
        ),
        Claim(
            "regions of resonance shrink with the step size",
            "Reducing the step-size",
            f"share of the zoomed range, even in f, with rho > 1: {per_eta(area, '.2%')}",
            "falls with eta",
            area[0] > area[1] > area[2],
        ),
        Claim(
            "the momentum needed for resonance rises towards 1 as the step size falls",
            "Reducing the step-size",
            f"lowest mu with rho > 1: {per_eta(lowest, '.4f')}",
            "rises as eta falls (nan: above 0.999)",
            bool(np.all(np.diff(np.nan_to_num(lowest, nan=1.0)) > 0)),
        ),
        Claim(
            "the boundary rho = 1 is the same in continuous and discrete time",
            "Parametric Resonance for ODE Convergence and Divergence",
            f"pixels of {pixels} on which the two disagree: {per_eta(differ, 'd')}",
            "at most 1% for every eta",
            max(differ) <= 0.01 * pixels,
        ),
    ]
