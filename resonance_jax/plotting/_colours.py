"""Colours of heatmaps: dark means small or convergent, bright means large or divergent."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize, TwoSlopeNorm
from matplotlib.ticker import MaxNLocator

from resonance_jax.plotting._marks import power_of_ten, value_range

GROWTH = (
    LinearSegmentedColormap.from_list(  # blue below the centre, yellow above; lightness rises evenly, so grey works
        "growth", ["#03152e", "#123b6e", "#4a6f9c", "#8f8f8f", "#cf9f3f", "#f6c934", "#fff6a8"]
    )
)
NARROWEST = 0.1  # reach of the colours on one side of the centre, at least, as a share of that on the other


class Colours(NamedTuple):
    """How the values of a heatmap become colours."""

    norm: Normalize
    cmap: Any


def centre_of(data: xr.DataArray) -> float | None:
    """The value between shrinking and growing: no growth, or a distance of 1. None if the quantity has no such value.

    Known by name are rates, exponents and the log10 of distances; other data have a centre if they have both signs.

    >>> [centre_of(xr.DataArray([0.5, 2.0], name=name)) for name in ("growth_rate", "log10_distance", "loss")]
    [0.0, 0.0, None]
    """
    name = str(data.name)
    if name.startswith("log10_"):
        return 0.0 if "distance" in name else None
    low, high = value_range(data)
    return 0.0 if name.endswith(("rate", "exponent", "log_rho")) or low < 0 < high else None


def colours(
    data: xr.DataArray,
    limits: tuple[float, float] | None = None,
    centre: float | None = None,
    cmap: str | Colormap | None = None,
) -> Colours:
    """Colours for data: around the centre, if there is one within the limits, else from the smallest to the largest."""
    low, high = limits or value_range(data)
    centre = centre_of(data) if centre is None else centre
    if centre is not None and limits is None:
        below, above = max(centre - low, 0), max(high - centre, 0)
        low, high = centre - max(below, NARROWEST * above), centre + max(above, NARROWEST * below)
        if low == high:
            low, high = centre - 1, centre + 1
    if centre is None or not low < centre < high:
        return Colours(Normalize(low, high), cmap or "cividis")
    return Colours(TwoSlopeNorm(centre, low, high), cmap or GROWTH)


def colour_bar(mesh: Any, axes: Axes | list[Axes], data: xr.DataArray, powers_of_ten: bool, label: str) -> None:
    """A colour bar that says by its ends what it cuts; beside one or several axes."""
    low, high = mesh.norm.vmin, mesh.norm.vmax
    below, above = float(data.min()) < low, float(data.max()) > high
    extend = {(True, True): "both", (True, False): "min", (False, True): "max"}.get((below, above), "neither")
    bar = mesh.figure.colorbar(mesh, ax=axes, label=label, extend=extend)
    bar.set_ticks(_ticks(mesh.norm, powers_of_ten))
    bar.ax.yaxis.set_major_formatter(power_of_ten if powers_of_ten else lambda value, _: f"{value:.4g}")
    bar.ax.yaxis.minorticks_off()


def _ticks(norm: Any, powers_of_ten: bool) -> np.ndarray:
    """Round values; on both sides of a centre as many as there is room for."""
    low, high = norm.vmin, norm.vmax
    parts = [(low, norm.vcenter), (norm.vcenter, high)] if isinstance(norm, TwoSlopeNorm) else [(low, high)]
    found = [
        MaxNLocator(
            8 if len(parts) == 1 else 5, steps=[1, 2, 5, 10], integer=powers_of_ten and end - begin > 3
        ).tick_values(begin, end)
        for begin, end in parts
    ]
    ticks = np.concatenate(
        [each[(each >= begin) & (each <= end)] for each, (begin, end) in zip(found, parts, strict=True)]
    )
    return np.unique((ticks / (high - low)).round(9)) * (high - low)  # a centre that both parts have counts once
