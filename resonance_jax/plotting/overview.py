"""Any output of a sweep at a glance."""

from collections.abc import Mapping
from typing import Any, cast

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resonance_jax.plotting._axes import text_of, texts_of
from resonance_jax.plotting._colours import colour_bar, colours
from resonance_jax.plotting._facets import Roles, assign_roles, first_of, output_of, select
from resonance_jax.plotting._marks import share_bar, spans_decades, value_range
from resonance_jax.plotting.confidence import mean_of
from resonance_jax.plotting.curves import response
from resonance_jax.plotting.heatmap import heatmap

PANELS = 6  # at most, along each of the two dimensions of panels
COLUMNS = 3  # of panels over a single dimension


def overview(
    data: xr.DataArray | xr.Dataset,
    *,
    output: str | None = None,
    x: str | None = None,
    y: str | None = None,
    col: str | None = None,
    row: str | None = None,
    sel: Mapping[str, Any] | None = None,
    over: str = "seed",
    diverged: xr.DataArray | None = None,
) -> Figure:
    """Draw any output of a sweep: a curve over one axis, a heatmap over two, panels over a third and a fourth.

    Nothing is left out silently: the title names each value that was selected, and says how many values are drawn of a
    dimension that has too many for a panel each.

    Args:
        data: the dataset of a sweep, or one of its outputs.
        output: name of an output of the dataset; None: a distance or a loss, or else the first.
        x, y: dimensions on the horizontal and vertical axis; None: the last two that are left, numbers before labels.
        col, row: dimensions of the panels; None: the next two that are left.
        sel: dimension -> value to draw, or a list of them; of numbers the nearest.
        over: dimension to average over, if the data have it; for a log10, the values themselves are averaged. Data that
            span more than three decades are drawn on a logarithmic scale.
        diverged: which runs diverged, over the same axes; None: what the dataset says, in `status` or `diverged_at`.
            Their share is drawn too: in a heatmap instead of the data, and in a strip above a curve.

    Returns:
        The figure.

    Raises:
        ValueError: a name that the data do not have, a dimension with two roles, a value outside its dimension.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> loss = xr.DataArray([[0.1, 0.2], [0.2, 1e30]], {"T": [1.0, 2.0]}, ("seed", "T"), name="loss")
    >>> overview(loss, diverged=loss > 1e3).get_suptitle()
    'loss; mean over seed; 25% of the runs diverged'
    """
    if isinstance(data, xr.Dataset):
        data, found = output_of(data, output)
        diverged = found if diverged is None else diverged
    elif not isinstance(data, xr.DataArray):
        raise ValueError(f"data must be a dataset or one of its outputs, got {type(data).__name__}; pass dataset.loss")
    share = xr.zeros_like(data, float) if diverged is None else diverged.astype(float).broadcast_like(data)
    drawn, chosen = select(xr.Dataset({"values": data, "share": share}), sel or {})
    roles, others = assign_roles(drawn, Roles(x, y, col, row), over)
    drawn, firsts = first_of(drawn, others)
    titles = [str(data.name)]
    if over in drawn.dims:
        titles.append(f"mean over {over}")
    if diverged is not None:
        titles.append(f"{100 * float(drawn.share.mean()):.3g}% of the runs diverged")
    titles += [*chosen, *firsts]
    for dim in (roles.col, roles.row):
        if dim and drawn.sizes[dim] > PANELS:
            titles.append(f"{PANELS} of {drawn.sizes[dim]} values of {dim}")
            drawn = drawn.isel({dim: np.linspace(0, drawn.sizes[dim] - 1, PANELS).astype(int)})
    figure, panels = _panels(drawn, roles)
    values = drawn["values"].rename(data.name)
    if roles.y is None:
        log10 = str(data.name).startswith("log10_")
        for ax, one in panels:
            response(values.isel(one), x=roles.x or "", over=over, diverged=drawn.share.isel(one), log10=log10, ax=ax)
    else:
        _heatmaps(panels, values, drawn.share, roles, over)
    for ax, one in panels:
        if one:
            ax.set_title(", ".join(f"{dim} = {texts_of(drawn[dim])[i]}" for dim, i in one.items()), fontsize=10)
    figure.suptitle("; ".join(titles), fontsize=11, wrap=True)
    return figure


Panels = list[tuple[Axes, dict[str, int]]]  # and the index of each along the dimensions of the panels


def _panels(drawn: xr.Dataset, roles: Roles) -> tuple[Figure, Panels]:
    """Columns and rows, or lines of a few panels if there are only columns or only rows."""
    dims = [dim for dim in (roles.row, roles.col) if dim]
    chosen = [dict(zip(dims, map(int, at), strict=True)) for at in np.ndindex(*(drawn.sizes[dim] for dim in dims))]
    columns = drawn.sizes[dims[1]] if len(dims) == 2 else min(COLUMNS, len(chosen))
    rows = -(-len(chosen) // columns)
    size = (6.4, 4.8) if len(chosen) == 1 else (4.2 * columns + 1, 3.8 * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for ax in axes.flat[len(chosen) :]:
        ax.set_visible(False)
    return figure, list(zip(axes.flat, chosen, strict=False))


def _heatmaps(panels: Panels, values: xr.DataArray, share: xr.DataArray, roles: Roles, over: str) -> None:
    """Panels that share their colours and their colour bars."""
    name = str(values.name)
    log10 = name.startswith("log10_")
    infinite: Any = np.isinf(values)
    share = xr.where(infinite, 1.0, share)
    if over in values.dims:
        mean = mean_of(values, over, log10=log10)
        values, share = mean.rename(name).assign_attrs(values.attrs), share.mean(over)
    low, high = value_range(values.where(share == 0))
    if not log10 and spans_decades(low, high):
        logs = cast(xr.DataArray, np.log10(values.where(values > 0)))
        values, log10 = logs.rename(f"log10_{name}").assign_attrs({}), True
    calm = values.where(share == 0)
    norm = colours(calm).norm
    limits = (float(norm.vmin or 0), float(norm.vmax or 0))
    for ax, one in panels:
        shown = values.isel(one)
        heatmap(shown, x=roles.x or "", y=roles.y or "", limits=limits, diverged=share.isel(one), colorbar=False, ax=ax)
    axes = [ax for ax, _ in panels]
    colour_bar(axes[0].collections[0], axes, calm, log10, text_of(values))
    shares = [mesh for ax in axes for mesh in ax.collections[1:]]
    if shares:
        share_bar(shares[0], axes)
