"""Pictures: heatmaps of distances with the contours of the theory on top, and response curves with their bands.

Runs that diverged are never left out of a picture: their share is drawn, and the mean of all runs.
"""

from collections.abc import Mapping
from typing import Any, cast

import matplotlib.patheffects as effects
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from resonance_jax.confidence import mean_and_band
from resonance_jax.numerics.logscale import log10_mean

PANELS = 6  # of an overview

REDNESS = LinearSegmentedColormap.from_list("redness", ["#ffffff", "#ff8a70", "#e8200c", "#9c0010"])  # of rho >= 1
SHARES = LinearSegmentedColormap.from_list("shares", ["#ffb3a1", "#e8200c", "#6b0010"])  # of diverged runs
ZERO_STYLES = (("#ffffff", "-"), ("#ff7a5c", "--"), ("#4fd6ff", "-"), ("#b0ff8a", ":"))  # colour and line of each rate
CURVE_STYLES = (("#7f7f7f", "-"), ("#d62728", "--"), ("#1f77b4", "-"), ("#2ca02c", ":"))
LABELS = {
    "f": "frequency of the shift $f$ (1 / steps)",
    "T": "period of the shift $T$ (steps)",
    "mu": r"momentum $\mu$",
    "eta": r"step size $\eta$",
    "samples": "samples per step",
    "dim": "inputs $d$",
    "v": "variance of the mean $v$",
    "beta1": r"$\beta_1$",
    "distance": r"distance $\Vert\theta_k-\theta^*\Vert$, mean of the last steps",
    "loss": "test loss, mean of the last steps",
    "log10_distance": r"distance $\Vert\theta_k-\theta^*\Vert$, mean of the last steps",
    "growth_rate": r"growth rate, $\log\rho$ per step",
}


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
        cmap: the default is even in lightness, so it reads in grey and by the colour-blind.
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
    low, high = limits or _range(data)
    mesh = ax.pcolormesh(
        data[x], data[y], data.transpose(y, x), norm=Normalize(low, high), cmap=cmap, shading="nearest", rasterized=True
    )
    ax.set_xlabel(LABELS.get(x, x))
    ax.set_ylabel(LABELS.get(y, y))
    if title:
        ax.set_title(title)
    _colorbar(mesh, ax, data, (low, high), powers_of_ten, label or LABELS.get(str(data.name), str(data.name)))
    if diverged is not None and float(diverged.max()) > 0:
        _shares(diverged.transpose(y, x), ax)
    if log_rho is not None:
        contours(log_rho, x=x, y=y, ax=ax)
    if period_axis:
        _period_axis(ax)
    return ax


def contours(log_rho: xr.DataArray, *, x: str = "f", y: str = "mu", labels: bool = True, ax: Axes) -> Axes:
    """Contours of the spectral radius: white at rho = 1, redder as rho grows, with the values of rho as labels."""
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
    """The line on which each rate changes its sign, with a legend of their names; one without such a line is told so.

    A line is drawn as the values give it, without smoothing.

    Args:
        rates: name -> values over `x` and `y`, at most four of them.
        x, y: dimensions on the horizontal and vertical axis.
        ax: axes to draw on.

    Returns:
        The axes.
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


def growth_curves(
    measured: xr.DataArray, predicted: Mapping[str, xr.DataArray], *, x: str = "T", title: str | None = None, ax: Axes
) -> Axes:
    """Growth per step along an axis of a sweep: a dot for what runs did, a line for each prediction.

    Args:
        measured: dimensions `x` and `seed`; drawn as their mean with its 95% band.
        predicted: name -> values over `x`, at most four of them.
        x: dimension on the horizontal axis.
        title: above the picture.
        ax: axes to draw on.

    Returns:
        The axes.
    """
    if len(predicted) > len(CURVE_STYLES):
        raise ValueError(f"growth_curves draws at most {len(CURVE_STYLES)} rates, got {len(predicted)}; draw fewer")
    ax.axhline(0, color="0.6", lw=0.8)
    for (name, rate), (color, style) in zip(predicted.items(), CURVE_STYLES, strict=False):
        ax.plot(rate[x], rate, style, color=color, lw=1.6, label=name)
    mean, low, _ = mean_and_band(measured, "seed")
    ax.errorbar(measured[x], mean, mean - low, fmt=".", color="black", ms=4, lw=1, label="runs")
    ax.set_xlabel(LABELS.get(x, x))
    ax.set_ylabel("growth per step")
    if title:
        ax.set_title(title)
    return ax


def response(
    data: xr.DataArray,
    *,
    hue: str,
    x: str = "T",
    over: str = "seed",
    diverged: xr.DataArray | None = None,
    log10: bool = False,
    cmap: str = "viridis",
    title: str | None = None,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw curves over a parameter of the shift: mean over the seeds with its 95% band, one colour per value of `hue`.

    Args:
        data: three dimensions, `x`, `hue` and `over`.
        hue: dimension with a curve for each of its values.
        x: dimension on the horizontal axis. Its value 0, the iid baseline, is marked by diamonds.
        over: dimension to average over.
        diverged: which runs diverged, over the same dimensions, e.g. `dataset.diverged_at >= 0`. A strip above the
            curves shows their share. They are part of the mean all the same. Without `log10`, the vertical axis covers
            the means without a diverged run: where there is one, the curve leaves the picture, to a triangle.
        log10: the data are log10 of what is averaged; means are taken of the values themselves and the vertical axis is
            logarithmic.
        cmap: colours of the curves, from the smallest value of `hue` to the largest.
        title: above the picture.
        label: of the vertical axis; None: from the name of the data.
        ax: axes to draw on; None: new ones.

    Returns:
        The axes.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> curves = xr.DataArray(np.zeros((3, 2, 4)), {"T": [0, 1, 2], "v": [0.1, 0.2]}, ("T", "v", "seed"), name="loss")
    >>> [text.get_text() for text in response(curves, hue="v").get_legend().get_texts()]
    ['0.1', '0.2', 'iid baseline']
    """
    if {x, hue, over} != set(map(str, data.dims)) or len(data.dims) != 3:
        raise ValueError(
            f"response draws the dimensions {x!r}, {hue!r} and {over!r}, got {tuple(data.dims)}; "
            "select one value of the others first"
        )
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
    mean, low, high = mean_and_band(data, over, log10=log10, bootstrap=True)
    colours = plt.get_cmap(cmap)(np.linspace(0, 0.92, data.sizes[hue]))
    for value, colour in zip(data[hue].values, colours, strict=True):
        one = {hue: value}
        ax.fill_between(data[x], low.sel(one), high.sel(one), color=colour, alpha=0.2, lw=0)
        ax.plot(data[x], mean.sel(one), ".-", color=colour, lw=1, ms=4, label=f"{value:.4g}")
    if 0 in data[x]:
        ax.scatter(
            np.zeros(data.sizes[hue]), mean.sel({x: 0}), marker="D", s=45, c=colours, edgecolors="black", zorder=3
        )
        ax.scatter([], [], marker="D", s=45, c="white", edgecolors="black", label="iid baseline")
    if log10:
        _decades(ax, float(low.min()), float(high.max()))
    share = None if diverged is None else diverged.astype(float).mean(over).transpose(x, hue)
    if share is not None and float(share.max()) > 0:
        if not log10:
            _cover(ax, low.where(share == 0), high.where(share == 0), mean.transpose(x, hue), colours)
        _strip(ax, share, colours)
    ax.set_xlabel(LABELS.get(x, x))
    ax.set_ylabel(label or LABELS.get(str(data.name), str(data.name)))
    ax.grid(alpha=0.3, lw=0.6)
    ax.legend(title=LABELS.get(hue, hue), fontsize=8, title_fontsize=9)
    if title:
        ax.set_title(title)
    return ax


def overview(data: xr.DataArray, *, over: str = "seed", diverged: xr.DataArray | None = None) -> Figure:
    """Draw any output of a sweep: a curve over one axis, a heatmap over two, and a panel for each value of a third.

    Args:
        data: over the axes of a sweep. Of further axes, and of dimensions of its own, the first value is drawn.
        over: dimension to average over, if it is there; a log10 is averaged as what it is the log10 of. What spans more
            than three decades is drawn on a logarithmic scale.
        diverged: which runs diverged, over the same axes, e.g. `dataset.diverged_at >= 0`. Their share is drawn too:
            instead of the data in a heatmap, above it beside a curve.

    Returns:
        The figure.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> loss = xr.DataArray([[0.1, 0.2], [0.2, 1e30]], {"T": [1.0, 2.0]}, ("seed", "T"), name="loss")
    >>> overview(loss, diverged=loss > 1e3).get_suptitle()
    'loss; mean over seed; 25% of the runs diverged'
    """
    if not isinstance(data, xr.DataArray):
        raise ValueError(f"data must be one output of a sweep, got {type(data).__name__}; pass e.g. dataset.loss")
    log10 = str(data.name).startswith("log10_")
    titles = [str(data.name)]
    share = (
        xr.zeros_like(data, float)
        if diverged is None
        else diverged.astype(float).broadcast_like(data).transpose(*data.dims)
    )
    total = float(share.mean())
    if over in data.dims:
        mean = log10_mean(data, over) if log10 else data.astype(float).mean(over)  # float32 could overflow
        data, share = mean.rename(data.name), share.mean(over)
        titles.append(f"mean over {over}")
    if diverged is not None:
        titles.append(f"{100 * total:.3g}% of the runs diverged")
    low, high = _range(data.where(share == 0))
    if not log10 and 0 < low < high / 1000:  # linear colours would show the largest values alone
        data, log10 = cast(xr.DataArray, np.log10(data)), True
    shown = [str(dim) for dim in data.dims if data.sizes[dim] > 1][:3] or [str(data.dims[0])]
    dropped = [str(dim) for dim in data.dims if dim not in shown]
    data, share = (one.isel(dict.fromkeys(dropped, 0)) for one in (data, share))
    titles += [f"{name} = {data[name].item():g}" for name in dropped if name in data.coords]

    parts = [(data, share)]
    if len(shown) == 3:
        many = data.sizes[shown[0]]
        chosen = [{shown[0]: int(i)} for i in np.linspace(0, many - 1, min(many, PANELS))]
        parts = [(data.isel(one), share.isel(one)) for one in chosen]
    columns = min(3, len(parts))
    rows = -(-len(parts) // columns)
    size = (6.4, 4.8) if len(parts) == 1 else (4.6 * columns, 3.9 * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    limits = _range(data.where(share == 0))
    for ax, (part, diverging) in zip(axes.flat, parts, strict=False):
        if len(shown) == 1:
            (line,) = ax.plot(part[shown[0]], part, ".-")
            if log10:
                _decades(ax, *limits)
            if total > 0:
                curve, colour = part.expand_dims("curve", 1), [line.get_color()]
                _cover(ax, part.where(diverging == 0), part.where(diverging == 0), curve, colour)
                _strip(ax, diverging.expand_dims("curve", 1), colour)
            ax.set_xlabel(LABELS.get(shown[0], shown[0]))
            ax.set_ylabel(LABELS.get(str(data.name), str(data.name)))
            ax.grid(alpha=0.3, lw=0.6)
        else:
            x, y = shown[-2:]
            title = f"{shown[0]} = {part[shown[0]].item():g}" if len(shown) == 3 else None
            heatmap(part, x=x, y=y, limits=limits, powers_of_ten=log10, diverged=diverging, title=title, ax=ax)
    for ax in axes.flat[len(parts) :]:
        ax.set_visible(False)
    figure.suptitle("; ".join(titles), fontsize=11)
    return figure


def _range(data: xr.DataArray) -> tuple[float, float]:
    """Smallest and largest finite value; 0 and 1 if there is none."""
    finite = data.values[np.isfinite(data.values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def _cover(ax: Axes, low: xr.DataArray, high: xr.DataArray, curves: xr.DataArray, colours: Any) -> None:
    """Limit the vertical axis to a range; a triangle at its top stands for a point above. `curves` as in `_strip`."""
    bottom, top = _range(low)[0], _range(high)[1]
    margin = 0.05 * (top - bottom) or 0.05 * abs(top) or 0.05
    ax.set_ylim(bottom - margin, top + margin)
    for values, colour in zip(curves.values.T, colours, strict=True):
        above = curves[curves.dims[0]].values[values > top + margin]
        ax.plot(above, np.full(above.size, 0.985), "^", color=colour, ms=5, transform=ax.get_xaxis_transform())


def _strip(ax: Axes, share: xr.DataArray, colours: Any) -> None:
    """Shares of diverged runs above the axes; dimensions: the horizontal axis, the curves."""
    strip = ax.inset_axes((0, 1.03, 1, 0.14), sharex=ax)
    for values, colour in zip(share.values.T, colours, strict=True):
        strip.plot(share[share.dims[0]], 100 * values, ".-", color=colour, lw=1, ms=3)
    strip.set_ylim(-8, 108)
    strip.set_yticks([0, 50, 100])
    strip.tick_params(labelbottom=False, labelsize=7)
    strip.set_ylabel("diverged\n(% of runs)", fontsize=7)
    strip.grid(alpha=0.3, lw=0.6)


def _shares(share: xr.DataArray, ax: Axes) -> None:
    """Shares of diverged runs as red cells, hatched to stand out in grey too; dimensions: vertical, horizontal axis."""
    y, x = share.dims
    cells = np.ma.masked_where(~(share.values > 0), share.values)
    mesh = ax.pcolor(
        share[x],
        share[y],
        cells,
        norm=Normalize(0, 1),
        cmap=SHARES,
        hatch="////",
        edgecolors="black",
        antialiased=False,
        lw=0,
        shading="nearest",
    )
    figure: Any = ax.figure
    figure.colorbar(mesh, ax=ax, label="share of diverged runs", format=lambda value, _: f"{value:.0%}")


def _decades(ax: Axes, low: float, high: float) -> None:
    """Label an axis of log10 values: by powers of ten, or by plain numbers where it spans few decades."""
    if high - low > 3:
        ax.yaxis.set_major_locator(MaxNLocator(8, integer=True))
        ax.yaxis.set_major_formatter(FuncFormatter(_power_of_ten))
        return
    steps = (1, 2, 3, 5, 7) if high - low < 1.5 else (1, 2, 5)
    values = [step * 10.0**power for power in range(int(np.floor(low)), int(np.ceil(high)) + 1) for step in steps]
    shown = [value for value in values if low <= np.log10(value) <= high]
    ax.set_yticks(np.log10(shown), [f"{value:.3g}" for value in shown])


def _power_of_ten(value: float, position: int | None = None) -> str:
    return f"$10^{{{value:.4g}}}$"


def _colorbar(
    mesh: Any, ax: Axes, data: xr.DataArray, limits: tuple[float, float], powers_of_ten: bool, label: str
) -> None:
    below, above = float(data.min()) < limits[0], float(data.max()) > limits[1]
    extend = {(True, True): "both", (True, False): "min", (False, True): "max"}.get((below, above), "neither")
    bar = ax.figure.colorbar(mesh, ax=ax, label=label, extend=extend)
    if powers_of_ten:
        bar.ax.yaxis.set_major_locator(MaxNLocator(8, integer=limits[1] - limits[0] > 3))
        bar.ax.yaxis.set_major_formatter(FuncFormatter(_power_of_ten))


def _period_axis(ax: Axes) -> None:
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
    top.set_xlabel(LABELS["T"])
