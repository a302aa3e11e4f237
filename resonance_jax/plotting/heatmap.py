"""Heatmaps over two axes of a sweep, with the contours of the theory on top."""

from collections.abc import Mapping

import matplotlib.patheffects as effects
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from resonance_jax.plotting._marks import colorbar, period_axis_on_top, share_cells, text_of, value_range

REDNESS = LinearSegmentedColormap.from_list("redness", ["#ffffff", "#ff8a70", "#e8200c", "#9c0010"])  # of rho >= 1
ZERO_STYLES = (("#ffffff", "-"), ("#ff7a5c", "--"), ("#4fd6ff", "-"), ("#b0ff8a", ":"))  # colour and line of each rate


def heatmap(
    data: xr.DataArray,
    *,
    log_rho: xr.DataArray | None = None,
    diverged: xr.DataArray | None = None,
    x: str = "f",
    y: str = "mu",
    limits: tuple[float, float] | None = None,
    cmap: str = "cividis",
    powers_of_ten: bool = True,
    period_axis: bool = False,
    title: str | None = None,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a quantity over two axes of a sweep: dark where it is small, bright where it is large.

    Args:
        data: two dimensions, `x` and `y`. For distances give their log10; the colour scale is then logarithmic.
        log_rho: log of the spectral radius over the same axes; contours at rho = 1 (white) and above (redder).
        diverged: share of diverged runs over the same axes. Where it is above 0 it is drawn instead of the data, in
            hatched red: a mean of all runs says little there, and a mean of the others hides it.
        x, y: dimensions on the horizontal and vertical axis.
        limits: of the colour scale; values beyond are drawn in its end colours. None: the range of the data.
        cmap: the lightness of the default is even, so it can be read in grey and by the colour-blind.
        powers_of_ten: label the colour bar 10^value.
        period_axis: also label the top with the period 1/x.
        title: above the picture.
        label: of the colour bar; None: from the name of the data.
        ax: axes to draw on; None: new ones.

    Returns:
        The axes.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> grid = xr.DataArray(np.zeros((2, 2)), {"f": [0.0, 0.1], "mu": [0.9, 1.0]}, name="log10_distance")
    >>> heatmap(grid).get_ylabel()
    'momentum $\\\\mu$'
    """
    missing = {x, y} ^ set(map(str, data.dims))
    if missing:
        raise ValueError(
            f"heatmap draws the two dimensions {x!r} and {y!r}, got {tuple(data.dims)}; "
            "reduce the others first, e.g. rj.log10_mean(data, 'seed')"
        )
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
    if diverged is not None:
        data = data.where(diverged.transpose(*data.dims) == 0)
    low, high = limits or value_range(data)
    mesh = ax.pcolormesh(
        data[x], data[y], data.transpose(y, x), norm=Normalize(low, high), cmap=cmap, shading="nearest", rasterized=True
    )
    ax.set_xlabel(text_of(data[x]))
    ax.set_ylabel(text_of(data[y]))
    if title:
        ax.set_title(title)
    colorbar(mesh, ax, data, (low, high), powers_of_ten, label or text_of(data))
    if diverged is not None and float(diverged.max()) > 0:
        share_cells(diverged.transpose(y, x), ax)
    if log_rho is not None:
        contours(log_rho, x=x, y=y, ax=ax)
    if period_axis:
        period_axis_on_top(ax)
    return ax


def contours(log_rho: xr.DataArray, *, x: str = "f", y: str = "mu", labels: bool = True, ax: Axes) -> Axes:
    """Contours of the spectral radius: white at rho = 1, redder as rho grows, with the values of rho as labels.

    >>> import matplotlib.pyplot as plt
    >>> grid = dict(f=np.linspace(0, 0.05, 6), mu=np.linspace(0.95, 0.999, 5))
    >>> log_rho = xr.DataArray(np.linspace(-0.3, 0.3, 30).reshape(6, 5), grid)
    >>> ax = contours(log_rho, ax=plt.figure().gca())
    >>> len(ax.collections) > 0
    True
    """
    rho: xr.DataArray = np.exp(log_rho.where(np.isfinite(log_rho)).transpose(y, x))  # pyright: ignore[reportAssignmentType]
    highest = float(rho.max())
    if not float(rho.min()) < 1 < highest:
        return ax
    levels = [
        1.0,
        *(level for level in MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(1, highest) if 1 < level < highest),
    ]
    lines = ax.contour(
        rho[x],
        rho[y],
        rho,
        levels=levels,
        colors=REDNESS(np.linspace(0, 1, len(levels))),
        linewidths=[2.0] + [1.6] * (len(levels) - 1),
    )
    lines.set_path_effects([effects.withStroke(linewidth=2.8, foreground="black")])
    for text in ax.clabel(lines, fmt="%.3g", fontsize=8, colors="white") if labels else []:
        text.set_path_effects([effects.withStroke(linewidth=2.0, foreground="black")])
    return ax


def zero_lines(rates: Mapping[str, xr.DataArray], *, x: str = "f", y: str = "mu", ax: Axes) -> Axes:
    """The line on which each rate changes its sign, with a legend that also names rates without such a line.

    Lines are drawn without smoothing.

    Args:
        rates: name -> values over `x` and `y`, at most four of them.
        x, y: dimensions on the horizontal and vertical axis.
        ax: axes to draw on.

    Returns:
        The axes.

    >>> import matplotlib.pyplot as plt
    >>> grid = dict(f=np.linspace(0, 0.05, 6), mu=np.linspace(0.95, 0.999, 5))
    >>> rate = xr.DataArray(np.linspace(-1, 1, 30).reshape(6, 5), grid)
    >>> ax = zero_lines({"mean": rate - 2, "mean square": rate}, ax=plt.figure().gca())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['mean: no zero here', 'mean square']
    """
    if len(rates) > len(ZERO_STYLES):
        raise ValueError(f"zero_lines draws at most {len(ZERO_STYLES)} rates, got {len(rates)}; draw fewer")
    handles = []
    for (name, rate), (color, style) in zip(rates.items(), ZERO_STYLES, strict=False):
        values = rate.transpose(y, x)
        found = float(values.min()) < 0 < float(values.max())
        if found:
            lines = ax.contour(rate[x], rate[y], values, levels=[0.0], colors=color, linestyles=style, linewidths=1.8)
            lines.set_path_effects([effects.withStroke(linewidth=3.2, foreground="black")])
        handles.append(Line2D([], [], color=color, ls=style, lw=1.8, label=name if found else f"{name}: no zero here"))
    ax.legend(handles=handles, loc="lower left", fontsize=8, facecolor="0.3", labelcolor="white", framealpha=0.9)
    return ax
