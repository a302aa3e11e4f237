"""Appendix, reducing the step size: the heatmaps of experiments 1 and 2 at eta = 0.01, 0.005 and 0.001."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from resonance_jax import Claim
from sweeps import _heatmap
from sweeps._agreement import base_rates
from sweeps._shared import each

point = _heatmap.both_processes
axes = _heatmap.axes_over_step_sizes
WHERE = "Reducing the step-size"


def figure(data: xr.Dataset) -> Figure:
    return _heatmap.figure_over_step_sizes(data, f"SGDm at three step sizes, {_heatmap.SAMPLES} samples a step")


def claims(data: xr.Dataset) -> list[Claim]:
    rate = data.predicted_rate.isel(seed=0)
    regions = {name: _heatmap.diverged(data[name]) for name in _heatmap.PROCESSES} | {"theory": rate > 0}
    rows = []
    for name, region in regions.items():
        share = [float(region.sel(eta=eta).mean()) for eta in data.eta.values]
        lowest = [float(data.mu.where(region.sel(eta=eta).any("f")).min()) for eta in data.eta.values]
        width = [float(region.sel(eta=eta).mean("f").max()) for eta in data.eta.values]
        rows += [
            Claim(
                f"regions that diverge shrink with the step size ({name})",
                WHERE,
                f"share of the pixels: {each(share, '.2%', 'eta', data.eta)}",
                "falls with eta",
                share[0] > share[1] > share[2],
            ),
            Claim(
                f"the smallest momentum that resonates rises towards 1 ({name})",
                WHERE,
                f"lowest mu: {each(lowest, '.4f', 'eta', data.eta)}",
                "rises as eta falls (nan: none up to 0.999)",
                bool(np.all(np.diff(np.nan_to_num(lowest, nan=1.0)) > 0)),
            ),
            Claim(
                f"a narrower band of frequencies diverges ({name})",
                WHERE,
                f"largest share of f in [0, 0.05] at one mu: {each(width, '.1%', 'eta', data.eta)}",
                "falls with eta",
                width[0] > width[1] > width[2],
            ),
        ]

    def per_eta(values: xr.DataArray) -> str:
        return each(values.sel(eta=data.eta).values, ".1%", "eta", data.eta)

    for name in _heatmap.PROCESSES:
        agreeing = [_heatmap.agreement(data[name].sel(eta=eta), rate.sel(eta=eta)) for eta in data.eta.values]
        rows.append(
            Claim(
                f"the theory shows the same trend ({name})",
                WHERE,
                f"rho > 1 agrees with divergence on {each(agreeing, '.2%', 'eta', data.eta)} of the pixels; "
                + base_rates(rate > 0, _heatmap.diverged(data[name]), per_eta, ("f", "mu")),
                "at least 90% each",
                min(agreeing) >= 0.9,
            )
        )
    return rows
