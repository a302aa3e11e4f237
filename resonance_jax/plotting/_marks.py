"""Parts that several pictures share: ranges, axes in powers of ten, shares of diverged runs, periods."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.ticker import FuncFormatter, MaxNLocator

from resonance_jax.plotting._axes import cell_edges, positions

SHARES = LinearSegmentedColormap.from_list("shares", ["#ffb3a1", "#e8200c", "#6b0010"])  # of diverged runs


def value_range(data: xr.DataArray) -> tuple[float, float]:
    """Smallest and largest finite value; 0 and 1 if there is none."""
    finite = data.values[np.isfinite(data.values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def spans_decades(low: float, high: float) -> bool:
    """Whether a linear axis or linear colours would only show the largest values."""
    return 0 < low < high / 1000


def decades(ax: Axes, low: float, high: float) -> None:
    """Label an axis of log10 values: by powers of ten, or by plain numbers where it spans few decades."""
    if high - low > 3:
        ax.yaxis.set_major_locator(MaxNLocator(8, integer=True))
        ax.yaxis.set_major_formatter(FuncFormatter(power_of_ten))
        return
    steps = (1, 2, 3, 5, 7) if high - low < 1.5 else (1, 2, 5)
    values = [step * 10.0**power for power in range(int(np.floor(low)), int(np.ceil(high)) + 1) for step in steps]
    shown = [value for value in values if low <= np.log10(value) <= high]
    ax.set_yticks(np.log10(shown), [f"{value:.3g}" for value in shown])


def power_of_ten(value: float, position: int | None = None) -> str:
    return f"$10^{{{value:.4g}}}$"


def cover(ax: Axes, low: xr.DataArray, high: xr.DataArray, curves: xr.DataArray, colours: Any) -> None:
    """Limit the vertical axis to a range, with a triangle at the top for each point above; dimensions: x, curves."""
    bottom, top = value_range(low)[0], value_range(high)[1]
    if ax.get_yscale() == "log":
        margin = (top / bottom) ** 0.05 if top > bottom else 1.1
        bottom, top = bottom / margin, top * margin
    else:
        margin = 0.05 * (top - bottom) or 0.05 * abs(top) or 0.05
        bottom, top = bottom - margin, top + margin
    ax.set_ylim(bottom, top)
    at = positions(curves[curves.dims[0]])
    for values, colour in zip(curves.values.T, colours, strict=True):
        above = at[values > top]
        ax.plot(above, np.full(above.size, 0.985), "^", color=colour, ms=5, transform=ax.get_xaxis_transform())


def strip_of_shares(ax: Axes, share: xr.DataArray, colours: Any) -> None:
    """Shares of diverged runs above the axes; dimensions: the horizontal axis, the curves."""
    strip = ax.inset_axes((0, 1.03, 1, 0.14), sharex=ax)
    for values, colour in zip(share.values.T, colours, strict=True):
        strip.plot(positions(share[share.dims[0]]), 100 * values, ".-", color=colour, lw=1, ms=3)
    strip.set_ylim(-8, 108)
    strip.set_yticks([0, 50, 100])
    strip.tick_params(labelbottom=False, labelsize=7)
    strip.set_ylabel("diverged\n(% of runs)", fontsize=7)
    strip.grid(alpha=0.3, lw=0.6)


def share_cells(share: xr.DataArray, ax: Axes) -> Any:
    """Shares of diverged runs as red cells, hatched to stand out in grey too; dimensions: vertical, horizontal axis."""
    y, x = share.dims
    cells = np.ma.masked_where(~(share.values > 0), share.values)
    return ax.pcolor(
        cell_edges(share[x]),
        cell_edges(share[y]),
        cells,
        norm=Normalize(0, 1),
        cmap=SHARES,
        hatch="////",
        edgecolors="black",
        antialiased=False,
        lw=0,
    )


def share_bar(mesh: Any, axes: Axes | list[Axes]) -> None:
    mesh.figure.colorbar(mesh, ax=axes, label="share of diverged runs", format=lambda value, _: f"{value:.0%}")


def period_axis_on_top(ax: Axes) -> None:
    """The period 1/f along the top, at round numbers of steps."""

    def inverse(values: Any) -> Any:
        values = np.asarray(values, float)
        return np.divide(1, values, out=np.full_like(values, 1e9), where=values > 1e-9)

    top = ax.secondary_xaxis("top", functions=(inverse, inverse))
    low, high = ax.get_xlim()
    candidates = [d * 10**k for k in range(5) for d in (1, 2, 3, 5)]
    shown: list[float] = []
    for period in candidates:
        if low < 1 / period <= high and all(abs(1 / period - 1 / other) > 0.12 * (high - low) for other in shown):
            shown.append(period)
    top.set_xticks(shown, [f"{period:g}" for period in shown])
    top.minorticks_off()
    top.set_xlabel("period $1/f$ (steps)")
