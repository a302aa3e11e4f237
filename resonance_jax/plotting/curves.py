"""Curves over one axis of a sweep, with their confidence bands."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from resonance_jax.plotting._axes import fit_axis, is_number, positions, text_of, texts_of
from resonance_jax.plotting._marks import cover, decades, spans_decades, strip_of_shares, value_range
from resonance_jax.plotting.confidence import mean_and_band

STYLES = (("#7f7f7f", "-"), ("#d62728", "--"), ("#1f77b4", "-"), ("#2ca02c", ":"))  # colour and line of each rate
SHIFTS = ("T", "f")  # at their value 0 the inputs do not shift: the iid baseline
CURVE = "_curve"  # stands in for `hue` where there is none


def response(
    data: xr.DataArray,
    *,
    hue: str | None = None,
    x: str = "T",
    over: str = "seed",
    diverged: xr.DataArray | None = None,
    log10: bool = False,
    cmap: str | None = None,
    title: str | None = None,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw curves over an axis of a sweep: mean over the seeds with its 95% band, one colour per value of `hue`.

    Bands are by bootstrap and never leave the range of the values. The vertical axis is logarithmic where the curves
    span more than three decades, the horizontal one where its values do. An axis of labels has a tick for each.

    Args:
        data: over `x`, `hue` and `over`; without `over` there are no bands.
        hue: dimension with a curve for each of its values, numbers or labels; None: there is one curve.
        x: dimension on the horizontal axis. For T and f, diamonds mark the value 0, the iid baseline.
        over: dimension to average over.
        diverged: which runs diverged, over the same dimensions, e.g. `dataset.diverged_at >= 0`; runs that overflowed
            count in any case. A strip above the curves shows their share. The mean still includes them. Without
            `log10`, the vertical axis covers the points without a diverged run; points above it are marked by a
            triangle at the top.
        log10: the data are log10 of the values that are averaged; the vertical axis is logarithmic.
        cmap: colours of the curves; None: viridis from the smallest `hue` to the largest, or distinct ones for labels.
        title: above the picture.
        label: of the vertical axis; None: from the name of the data.
        ax: axes to draw on; None: new ones.

    Returns:
        The axes.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> curves = xr.DataArray(np.ones((3, 2, 4)), {"T": [0, 1, 2], "v": [0.1, 0.2]}, ("T", "v", "seed"), name="loss")
    >>> [text.get_text() for text in response(curves, hue="v").get_legend().get_texts()]
    ['0.1', '0.2', 'iid baseline']
    """
    wanted = [each for each in (x, hue, over) if each is not None]
    if not set(wanted) - {over} <= set(map(str, data.dims)) <= set(wanted):
        raise ValueError(
            f"response draws the dimensions {', '.join(map(repr, wanted))}, got {tuple(data.dims)}; "
            "name them by x=, hue= and over=, and select one value of the others first"
        )
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
    found = _averaged(data, diverged, over, log10)
    if hue is None:
        found = Averaged(*(each.expand_dims(CURVE) for each in found))
    found = Averaged(*(each.transpose(x, hue or CURVE) for each in found))
    colours = _colours(found.mean[hue or CURVE], cmap)
    texts = texts_of(data[hue]) if hue else [None]
    at = positions(data[x])
    for colour, text, mean, low, high in zip(colours, texts, *(each.values.T for each in found[:3]), strict=True):
        if over in data.dims:
            ax.fill_between(at, low, high, color=colour, alpha=0.2, lw=0)
        ax.plot(at, mean, ".-", color=colour, lw=1, ms=4, label=text)
    if x in SHIFTS and 0 in data[x]:
        still = found.mean.sel({x: 0})
        ax.scatter(np.zeros(still.size), still, marker="D", s=45, c=colours, edgecolors="black", zorder=3)
        ax.scatter([], [], marker="D", s=45, c="white", edgecolors="black", label="iid baseline")
    _fit_vertical(ax, found, log10, colours)
    fit_axis(ax, "x", data[x])
    ax.set_ylabel(label or text_of(data))
    ax.grid(alpha=0.3, lw=0.6)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(title=text_of(data[hue]) if hue else None, fontsize=8, title_fontsize=9)
    if title:
        ax.set_title(title)
    return ax


class Averaged(NamedTuple):
    """Over the seeds: means, the ends of their bands, and the share of runs that diverged or overflowed."""

    mean: xr.DataArray
    low: xr.DataArray
    high: xr.DataArray
    share: xr.DataArray


def _averaged(data: xr.DataArray, diverged: xr.DataArray | None, over: str, log10: bool) -> Averaged:
    share: Any = data == np.inf if log10 else np.isinf(data)  # the log10 of 0 did not overflow
    if diverged is not None:
        share = xr.where(share, 1.0, diverged.astype(float).broadcast_like(data))
    share = share.astype(float)
    if over not in data.dims:
        return Averaged(data, data, data, share)
    return Averaged(*mean_and_band(data, over, log10=log10, bootstrap=True), share.mean(over))


def _fit_vertical(ax: Axes, found: Averaged, log10: bool, colours: Any) -> None:
    """Range and scale of the vertical axis, and the share of diverged runs above it."""
    low, high = (each.where(found.share == 0) for each in (found.low, found.high))
    if log10:
        decades(ax, value_range(found.low)[0], value_range(found.high)[1])
    elif spans_decades(value_range(low)[0], value_range(high)[1]):
        ax.set_yscale("log")
    if float(found.share.max()) > 0:
        if not log10:
            cover(ax, low, high, found.mean, colours)
        strip_of_shares(ax, found.share, colours)


def _colours(hue: xr.DataArray, cmap: str | None) -> Any:
    if cmap is None and (not is_number(hue) or hue.size == 1):
        return plt.get_cmap("tab10" if hue.size <= 10 else "tab20")(np.arange(hue.size))
    return plt.get_cmap(cmap or "viridis")(np.linspace(0, 0.92, hue.size))


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
