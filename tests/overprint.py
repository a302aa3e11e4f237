"""Which texts of a figure are printed over one another."""

import itertools
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.text import Text

LEAST = 2.0  # pixels by which two boxes overlap in both directions


def overprinted(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts whose boxes overlap, as the figure is drawn."""
    figure.canvas.draw()
    return [
        (one.get_text(), other.get_text())
        for (one, box), (other, another) in itertools.combinations(_drawn(figure), 2)
        if min(box.x1, another.x1) - max(box.x0, another.x0) > LEAST
        and min(box.y1, another.y1) - max(box.y0, another.y0) > LEAST
    ]


def _drawn(figure: Figure) -> list[tuple[Text, Any]]:
    hidden = set()
    for ax in (*figure.axes, *(child for parent in figure.axes for child in parent.child_axes)):
        for axis in (ax.xaxis, ax.yaxis):
            scale = axis.get_transform().transform
            low, high = sorted(scale(np.array(axis.get_view_interval())))
            margin = 1e-6 * (high - low)
            ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            outside = [
                tick for tick in ticks if not low - margin <= scale(np.array([tick.get_loc()]))[0] <= high + margin
            ]
            hidden |= {id(label) for tick in outside for label in (tick.label1, tick.label2)}
        if not ax.axison:
            hidden |= {id(text) for axis in (ax.xaxis, ax.yaxis) for text in axis.findobj(Text)}
        if not ax.get_visible():
            hidden |= {id(text) for text in ax.findobj(Text)}
    texts = {id(text): text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()}
    boxes = [(text, text.get_window_extent()) for key, text in texts.items() if key not in hidden]
    return [(text, box) for text, box in boxes if np.isfinite(box.extents).all() and box.width > 0]
