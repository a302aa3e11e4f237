"""Appendix, fully stochastic gradients: the heatmaps of experiments 1 and 2 with one sample a step."""

import functools

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from resonance_jax import Claim
from sweeps import _heatmap
from sweeps._agreement import base_rates
from sweeps._shared import each

point = _heatmap.both_processes
WHERE = "Experiments 1 and 2 with Stochastic Gradients"
NOISE = "Sampling noise alone makes runs grow at high momentum, even at f = 0; rho of the expected gradient ignores it."


def axes(scale: str) -> dict[str, np.ndarray]:
    """One sample, and twenty beside it to compare with."""
    return _heatmap.axes_over_step_sizes(scale) | {"samples": np.array([1, _heatmap.SAMPLES])}


def figure(data: xr.Dataset) -> Figure:
    return _heatmap.figure_over_step_sizes(data.sel(samples=1), "SGDm at three step sizes, one sample a step")


def claims(data: xr.Dataset) -> list[Claim]:
    rate = data.predicted_rate.isel(seed=0, samples=0)
    rows = []
    for name in _heatmap.PROCESSES:
        one, many = (data[name].sel(samples=n) for n in (1, _heatmap.SAMPLES))
        few, all_ = _heatmap.diverged(one), _heatmap.diverged(many)

        def per_eta(values: xr.DataArray, form: str) -> str:
            return each(values.values, form, "eta", data.eta)

        inside = all_ & (rate > 0)
        change = (one.median("seed") - many.median("seed")).where(inside).median(("f", "mu"))
        new, gone = ((few & ~all_).mean(("f", "mu")), (all_ & ~few).mean(("f", "mu")))
        outside = (few & ~(rate > 0)).mean(("f", "mu"))
        iid = few.sel(f=0).mean("mu")
        size = [region.mean(("f", "mu")) for region in (few, all_)]
        agreeing = [_heatmap.agreement(one.sel(eta=eta), rate.sel(eta=eta)) for eta in data.eta.values]
        rows += [
            Claim(
                f"one sample damps the resonant response ({name})",
                WHERE,
                f"where twenty samples diverge and rho > 1, median change of log10 distance: {per_eta(change, '+.2f')}",
                "below 0 wherever there is such a region (nan: none)",
                bool((change.fillna(-1) < 0).all()),
                why=NOISE,
            ),
            Claim(
                f"no region of instability is introduced or removed ({name})",
                WHERE,
                f"pixels that diverge with one sample but not with twenty: {per_eta(new, '.1%')}; the reverse: "
                f"{per_eta(gone, '.1%')}; of f = 0, the iid baseline, {per_eta(iid, '.0%')} diverge",
                "each at most 2%, and none at f = 0",
                bool((new <= 0.02).all() and (gone <= 0.02).all() and not iid.any()),
                why=NOISE,
            ),
            Claim(
                f"the bright band of instability is wider with one sample ({name})",
                WHERE,
                f"share of diverging pixels: {per_eta(size[0], '.1%')}; with twenty: {per_eta(size[1], '.1%')}",
                "larger for every eta",
                bool((size[0] > size[1]).all()),
            ),
            Claim(
                f"rho of the expected gradient still bounds the region ({name})",
                WHERE,
                f"rho > 1 agrees with divergence on {each(agreeing, '.2%', 'eta', data.eta)} of the pixels; "
                f"{base_rates(rate > 0, few, functools.partial(per_eta, form='.1%'), ('f', 'mu'))}; "
                f"diverging although rho < 1: {per_eta(outside, '.1%')}",
                "agreement of at least 90% each",
                min(agreeing) >= 0.9,
                why=NOISE,
            ),
        ]
    return rows
