"""A small dataset as `rj.sweep` returns them, with everything that a page has to show."""

import numpy as np
import xarray as xr

SEEDS, F, ETA, MU, STEPS = np.arange(3), np.array([0.0, 0.01, 0.03, 0.06]), [0.01, 0.02], [0.9, 0.95, 0.99], 16


def dataset() -> xr.Dataset:
    """Rates that rise with f and mu; at one cell each a run that diverged, one that is NaN and one without a rate."""
    axes = {"seed": SEEDS, "f": F, "eta": ETA, "mu": MU}
    seed, f, eta, mu = np.meshgrid(*axes.values(), indexing="ij")
    steps = np.arange(1, STEPS + 1) * 100
    predicted = 0.5 * (f - 0.02) + 0.1 * (mu - 0.95) + eta
    growth = predicted + 0.002 * (seed - 1)
    log10 = growth * steps[-1] / np.log(10)
    wave = 0.3 * np.sin(2 * np.pi * np.arange(STEPS) * 4 / STEPS)
    curve = growth[..., None] * steps / np.log(10) + wave
    log10[1, 2, 0, 1] = np.nan
    curve[2, 3, 1, 2, 5] = np.inf
    diverged = log10 > 15
    dims = tuple(axes)
    return xr.Dataset(
        {
            "log10_distance": (dims, log10.astype(np.float32)),
            "growth_rate": (dims, growth.astype(np.float32)),
            "predicted_rate": (dims, predicted.astype(np.float32)),
            "diverged": (dims, diverged),
            "log10_distance_curve": ((*dims, "step"), curve.astype(np.float32)),
        },
        coords=axes | {"step": steps},
    )
