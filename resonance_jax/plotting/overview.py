"""Any output of a sweep at a glance."""

from typing import cast

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from resonance_jax.numerics.logscale import log10_mean
from resonance_jax.plotting._marks import cover, decades, strip_of_shares, text_of, value_range
from resonance_jax.plotting.heatmap import heatmap

PANELS = 6  # at most


def overview(data: xr.DataArray, *, over: str = "seed", diverged: xr.DataArray | None = None) -> Figure:
    """Draw any output of a sweep: a curve over one axis, a heatmap over two, and a panel for each value of a third.

    Args:
        data: over the axes of a sweep. Of a fourth and further dimensions, the first value is drawn.
        over: dimension to average over, if the data have it; for a log10, the values themselves are averaged. Data that
            span more than three decades are drawn on a logarithmic scale.
        diverged: which runs diverged, over the same axes, e.g. `dataset.diverged_at >= 0`. Their share is drawn too:
            in a heatmap instead of the data, and in a strip above a curve.

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
    low, high = value_range(data.where(share == 0))
    if not log10 and 0 < low < high / 1000:  # linear colours would only show the largest values
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
    limits = value_range(data.where(share == 0))
    for ax, (part, diverging) in zip(axes.flat, parts, strict=False):
        if len(shown) == 1:
            (line,) = ax.plot(part[shown[0]], part, ".-")
            if log10:
                decades(ax, *limits)
            if total > 0:
                curve, colour = part.expand_dims("curve", 1), [line.get_color()]
                cover(ax, part.where(diverging == 0), part.where(diverging == 0), curve, colour)
                strip_of_shares(ax, diverging.expand_dims("curve", 1), colour)
            ax.set_xlabel(text_of(part[shown[0]]))
            ax.set_ylabel(text_of(data))
            ax.grid(alpha=0.3, lw=0.6)
        else:
            x, y = shown[-2:]
            title = f"{shown[0]} = {part[shown[0]].item():g}" if len(shown) == 3 else None
            heatmap(part, x=x, y=y, limits=limits, powers_of_ten=log10, diverged=diverging, title=title, ax=ax)
    for ax in axes.flat[len(parts) :]:
        ax.set_visible(False)
    figure.suptitle("; ".join(titles), fontsize=11)
    return figure
