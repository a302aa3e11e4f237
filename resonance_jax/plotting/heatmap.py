"""Heatmaps over two axes of a sweep, with the contours of the theory on top."""

from collections.abc import Mapping
from typing import Any

import matplotlib.patheffects as effects
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from resonance_jax.plotting._axes import cell_edges, fit_axis, is_number, text_of
from resonance_jax.plotting._colours import colour_bar
from resonance_jax.plotting._colours import colours as colours_of
from resonance_jax.plotting._marks import period_axis_on_top, share_bar, share_cells

REDNESS = LinearSegmentedColormap.from_list("redness", ["#ffffff", "#ff8a70", "#e8200c", "#9c0010"])  # of rho >= 1
ZERO_STYLES = (("#ffffff", "-"), ("#ff7a5c", "--"), ("#4fd6ff", "-"), ("#b0ff8a", ":"))  # colour and line of each rate


def heatmap(
    data: xr.DataArray,
    *,
    log_rho: xr.DataArray | None = None,
    boundary: xr.Dataset | None = None,
    diverged: xr.DataArray | None = None,
    x: str = "f",
    y: str = "mu",
    limits: tuple[float, float] | None = None,
    centre: float | None = None,
    cmap: str | None = None,
    powers_of_ten: bool = True,
    colorbar: bool = True,
    period_axis: bool = False,
    title: str | None = None,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a quantity over two axes of a sweep: dark where it is small, bright where it is large.

    Growth rates and distances have blue colours for what shrinks and yellow ones for what grows, so bright means
    diverged. Cells meet half-way between the values of an axis, even or not; an axis whose values span decades is
    logarithmic, and one of labels has a tick for each.

    Args:
        data: two dimensions, `x` and `y`. For distances give their log10; the colour scale is then logarithmic.
        log_rho: log of the spectral radius over the same axes; contours at rho = 1 (white) and above (redder).
        boundary: from `rj.theory.stability_boundary`, over the same axes: the white line, exact on a coarse grid too.
        diverged: share of diverged runs over the same axes. Where it is above 0 it is drawn instead of the data, in
            hatched red: a mean of all runs says little there, and a mean of the others hides it.
        x, y: dimensions on the horizontal and vertical axis.
        limits: of the colour scale; values beyond are drawn in its end colours. None: the range of the data.
        centre: value between the blue and the yellow colours; None: 0 for growth rates, for the log10 of distances and
            for data of both signs, and no centre for others.
        cmap: the lightness of the default rises evenly, so it can be read in grey and by the colour-blind.
        powers_of_ten: label the colour bar 10^value.
        colorbar: draw the colour bars.
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
            "name yours, e.g. x='T', and reduce further ones first, e.g. rj.log10_mean(data, 'seed')"
        )
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
    data = _ascending(data)
    if diverged is not None:
        diverged = _ascending(diverged).transpose(*data.dims)
        data = data.where(diverged == 0)
    norm, colours = colours_of(data, limits, centre, cmap)
    across, up = cell_edges(data[x]), cell_edges(data[y])
    mesh = ax.pcolormesh(across, up, data.transpose(y, x), norm=norm, cmap=colours, rasterized=True)
    fit_axis(ax, "x", data[x])
    fit_axis(ax, "y", data[y])
    ax.set(xlim=(across[0], across[-1]), ylim=(up[0], up[-1]))
    if title:
        ax.set_title(title)
    if colorbar:
        colour_bar(mesh, ax, data, powers_of_ten, label or text_of(data))
    if diverged is not None and float(diverged.max()) > 0:
        shares = share_cells(diverged.transpose(y, x), ax)
        if colorbar:
            share_bar(shares, ax)
    if log_rho is not None:
        contours(log_rho, boundary=boundary, x=x, y=y, ax=ax)
    elif boundary is not None:
        _line(boundary, x, y, ax, color="white", lw=2.0)
    if period_axis:
        period_axis_on_top(ax)
    return ax


def _ascending(data: xr.DataArray) -> xr.DataArray:
    return data.sortby([dim for dim in data.dims if is_number(data[dim])])


def contours(
    log_rho: xr.DataArray,
    *,
    boundary: xr.Dataset | None = None,
    x: str = "f",
    y: str = "mu",
    labels: bool = True,
    ax: Axes,
) -> Axes:
    """Contours of the spectral radius: white at rho = 1, redder as rho grows.

    Args:
        log_rho: log of the spectral radius over `x` and `y`.
        boundary: from `rj.theory.stability_boundary`; drawn as the line rho = 1 in the place of one interpolated
            between the cells, which misses the tip of a narrow tongue.
        x, y: dimensions on the horizontal and vertical axis.
        labels: name the values of rho in a legend.
        ax: axes to draw on.

    Returns:
        The axes.

    >>> import matplotlib.pyplot as plt
    >>> grid = dict(f=np.linspace(0, 0.05, 6), mu=np.linspace(0.95, 0.999, 5))
    >>> log_rho = xr.DataArray(np.linspace(-0.3, 0.3, 30).reshape(6, 5), grid)
    >>> ax = contours(log_rho, ax=plt.figure().gca())
    >>> len(ax.collections) > 0
    True
    """
    rho: xr.DataArray = np.exp(log_rho.where(np.isfinite(log_rho)).transpose(y, x))  # pyright: ignore[reportAssignmentType]
    highest = float(rho.max())
    above = [level for level in MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(1, highest) if 1 < level < highest]
    levels = [1.0, *above] if float(rho.min()) < 1 < highest else above
    colours = dict(zip([1.0, *above], REDNESS(np.linspace(0, 1, 1 + len(above))), strict=True))
    if boundary is not None:
        _line(boundary, x, y, ax, color="white", lw=2.0)
        levels = above
    if levels:
        chosen = [colours[level] for level in levels]
        lines = ax.contour(
            rho[x], rho[y], rho, levels=levels, colors=chosen, linewidths=[2.0 - 0.4 * (level > 1) for level in levels]
        )
        lines.set_path_effects([effects.withStroke(linewidth=2.8, foreground="black")])
    drawn = [1.0, *above] if boundary is not None and boundary.sizes["point"] else levels
    if labels and drawn:
        handles = [Line2D([], [], color=colours[level], lw=1.8, label=f"{level:.4g}") for level in drawn]
        _legend(ax, handles, title=r"$\rho$ of the theory")
    return ax


def _legend(ax: Axes, handles: list[Line2D], title: str | None = None) -> None:
    legend = ax.legend(
        handles=handles,
        loc="lower left",
        title=title,
        fontsize=8,
        title_fontsize=8,
        facecolor="0.3",
        labelcolor="white",
        framealpha=0.9,
    )
    legend.get_title().set_color("white")


def _line(boundary: xr.Dataset, x: str, y: str, ax: Axes, **style: Any) -> None:
    """The pieces of a boundary, with a black edge."""
    missing = [name for name in (x, y) if name not in boundary]
    if missing:
        raise ValueError(
            f"boundary must hold {x!r} and {y!r}, got {', '.join(map(str, boundary.data_vars))}; "
            "call stability_boundary with the ranges of these two"
        )
    (line,) = ax.plot(boundary[x], boundary[y], **style)
    line.set_path_effects([effects.withStroke(linewidth=line.get_linewidth() + 1.4, foreground="black")])


def zero_lines(rates: Mapping[str, xr.DataArray | xr.Dataset], *, x: str = "f", y: str = "mu", ax: Axes) -> Axes:
    """The line on which each rate changes its sign, with a legend that also names rates without such a line.

    Args:
        rates: name -> values over `x` and `y`, between which the line is interpolated, or the line itself, from
            `rj.theory.stability_boundary`; at most four of them.
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
        if isinstance(rate, xr.Dataset):
            found = rate.sizes["point"] > 0
            _line(rate, x, y, ax, color=color, ls=style, lw=1.8)
        else:
            values = rate.transpose(y, x)
            found = float(values.min()) < 0 < float(values.max())
            if found:
                lines = ax.contour(
                    rate[x], rate[y], values, levels=[0.0], colors=color, linestyles=style, linewidths=1.8
                )
                lines.set_path_effects([effects.withStroke(linewidth=3.2, foreground="black")])
        handles.append(Line2D([], [], color=color, ls=style, lw=1.8, label=name if found else f"{name}: no zero here"))
    _legend(ax, handles)
    return ax
