"""Curves over one axis of a sweep, with their confidence bands."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from resonance_jax.plotting._marks import cover, decades, strip_of_shares, text_of
from resonance_jax.plotting.confidence import mean_and_band

STYLES = (("#7f7f7f", "-"), ("#d62728", "--"), ("#1f77b4", "-"), ("#2ca02c", ":"))  # colour and line of each rate


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
            curves shows their share. The mean still includes them. Without `log10`, the vertical axis covers the points
            without a diverged run; points above it are marked by a triangle at the top.
        log10: the data are log10 of the values that are averaged; the vertical axis is logarithmic.
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
        decades(ax, float(low.min()), float(high.max()))
    share = None if diverged is None else diverged.astype(float).mean(over).transpose(x, hue)
    if share is not None and float(share.max()) > 0:
        if not log10:
            cover(ax, low.where(share == 0), high.where(share == 0), mean.transpose(x, hue), colours)
        strip_of_shares(ax, share, colours)
    ax.set_xlabel(text_of(data[x]))
    ax.set_ylabel(label or text_of(data))
    ax.grid(alpha=0.3, lw=0.6)
    ax.legend(title=text_of(data[hue]), fontsize=8, title_fontsize=9)
    if title:
        ax.set_title(title)
    return ax


def growth_curves(
    measured: xr.DataArray, predicted: Mapping[str, xr.DataArray], *, x: str = "T", title: str | None = None, ax: Axes
) -> Axes:
    """Growth per step along an axis of a sweep: dots for the growth of runs, a line for each prediction.

    Args:
        measured: dimensions `x` and `seed`; drawn as their mean with its 95% band.
        predicted: name -> values over `x`, at most four of them.
        x: dimension on the horizontal axis.
        title: above the picture.
        ax: axes to draw on.

    Returns:
        The axes.

    >>> import matplotlib.pyplot as plt
    >>> T = dict(T=[5.0, 10.0, 20.0])
    >>> measured = xr.DataArray([[0.1, 0.2, 0.0], [0.1, 0.3, 0.1]], {"seed": [0, 1], **T})
    >>> ax = growth_curves(measured, {"mean": xr.DataArray([0.1, 0.25, 0.05], T)}, ax=plt.figure().gca())
    >>> sorted(ax.get_legend_handles_labels()[1])
    ['mean', 'runs']
    """
    if len(predicted) > len(STYLES):
        raise ValueError(f"growth_curves draws at most {len(STYLES)} rates, got {len(predicted)}; draw fewer")
    ax.axhline(0, color="0.6", lw=0.8)
    for (name, rate), (color, style) in zip(predicted.items(), STYLES, strict=False):
        ax.plot(rate[x], rate, style, color=color, lw=1.6, label=name)
    mean, low, _ = mean_and_band(measured, "seed")
    ax.errorbar(measured[x], mean, mean - low, fmt=".", color="black", ms=4, lw=1, label="runs")
    ax.set_xlabel(text_of(measured[x]))
    ax.set_ylabel("growth per step")
    if title:
        ax.set_title(title)
    return ax
