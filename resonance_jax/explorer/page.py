"""A sweep as one page of HTML that needs no network: `rj.explore`."""

import html
import json
import os
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from resonance_jax.explorer import packing
from resonance_jax.explorer.cells import OVERFLOW, SEED, Cells, cells_of, is_even
from resonance_jax.explorer.verdicts import HAS_DIVERGED, WORDS, basis, verdicts

if TYPE_CHECKING:
    import xarray as xr

MOST_TEXT = 6_000_000  # characters of values and curves; with bokeh, 1.7 MB, the page then stays below 8 MB
SPECIAL = {"diverged": "#c2185b", "overflow": "#000000", "nan": "#b4bac4"}
KEYS = {"diverged": "diverged", "overflow": "infinite or beyond the range of floats", "nan": "not a number, or missing"}
CONTOURS = ("#111111", "#0b7a3b", "#7b2fa8", "#b26a00")  # line colours of the rates
PROGRAMS = ("data.js", "words.js", "heatmap.js", "run.js", "page.js")
FIRST_RATES = ("predicted_rate", "mean_rate", "mean_square_rate", "almost_sure_rate", "growth_rate")


class Page(NamedTuple):
    """A page of HTML: `save` writes it, a notebook shows it."""

    html: str
    left_out: tuple[str, ...] = ()  # curves, to keep the page small

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, which any browser opens without a network."""
        Path(path).write_text(self.html, encoding="utf-8")
        return Path(path)

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.html)}" style="width: 100%; height: 860px; border: 0"></iframe>'

    def __repr__(self) -> str:
        return f"<Page of {len(self.html) / 1e6:.1f} MB; save('page.html') writes it>"


def explore(
    dataset: "xr.Dataset",
    *,
    value: str | None = None,
    x: str | None = None,
    y: str | None = None,
    title: str | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Page:
    """Make a page on which a sweep can be explored: a heatmap, and the run behind each cell that is clicked.

    Needs bokeh: `pip install "resonance_jax[explore]"`. The page is one file and works without a network. It has
    selectors for the further axes, for single seeds and for their mean; lines where each growth rate is 0; and for a
    clicked cell the recorded curves, their spectrum, all rates, and a verdict. Curves, of runs with `record=`, are kept
    in 8 bits each.

    Args:
        dataset: what `rj.sweep` returned, or any other with a variable over two dimensions.
        value: variable that is drawn first; None: a distance or a loss, if there is one.
        x, y: horizontal and vertical axis; None: the two longest that are not the seed.
        title: of the page; None: says what is drawn.
        path: file to write; None writes none.

    Returns:
        The page, with `save(path)`. A notebook shows it.

    Raises:
        ValueError: a dataset without two axes, or a variable or axis that it does not have.
        ImportError: bokeh is not installed.

    >>> import resonance_jax as rj
    >>> heat = rj.sweep(lambda f, mu: {"growth_rate": mu - f}, {"f": [0.0, 0.1, 0.2], "mu": [0.05, 0.15]})
    >>> page = rj.explore(heat)
    >>> page.html.startswith("<!DOCTYPE html>")
    True
    """
    cells = cells_of(dataset, value, x, y)
    require_bokeh()
    from bokeh.document import Document
    from bokeh.embed import file_html
    from bokeh.resources import INLINE

    from resonance_jax.explorer.document import add_models

    packed, left_out = pack_cells(cells)
    spec = specification(cells, packed)
    document = Document()
    add_models(document, cells, spec)
    variables = template_variables(cells, spec, packed, left_out)
    title = title or default_title(cells)
    page = Page(file_html(document, INLINE, title, template=template(), template_variables=variables), tuple(left_out))
    if path is not None:
        page.save(path)
    return page


def require_bokeh() -> None:
    """ImportError that names the extra, if bokeh is missing."""
    try:
        import bokeh  # noqa: F401
    except ImportError:
        raise ImportError(
            'exploring needs bokeh, which is not installed; run `pip install "resonance_jax[explore]"`'
        ) from None


def default_title(cells: Cells) -> str:
    what = cells.variables[cells.value].label.partition(",")[0].partition(" (")[0]
    return f"{what[:1].upper()}{what[1:]} over {cells.x} and {cells.y}"


class PackedCells(NamedTuple):
    """The numbers of a page."""

    values: packing.Packed
    curves: packing.Packed
    curve_names: list[str]


def pack_cells(cells: Cells) -> tuple[PackedCells, list[str]]:
    """All values, and as many curves as fit; with the names of those that do not."""
    scalars = {name: variable.values for name, variable in cells.variables.items()}
    values = packing.pack(scalars | {"/verdicts": verdicts(cells).values})
    arrays: dict[str, np.ndarray] = {}
    curves, kept, left_out = packing.pack({}), [], []
    for name, curve in cells.curves.items():
        codes, offset, scale = packing.quantise(curve.values)
        more = {name: packing.differences(codes), f"{name}/offset": offset, f"{name}/scale": scale}
        packed = packing.pack(arrays | more)
        if len(values.text) + len(packed.text) > MOST_TEXT:
            left_out.append(name)
            continue
        arrays, curves = arrays | more, packed
        kept.append(name)
    return PackedCells(values, curves, kept), left_out


def seed_of(cells: Cells) -> str | None:
    """The axis that is averaged over; None if it has one value or none, or if the heatmap shows it."""
    absent = SEED not in cells.axes or SEED in (cells.x, cells.y)
    return None if absent or cells.axes[SEED].values.size == 1 else SEED


def specification(cells: Cells, packed: PackedCells, *, live: bool = False) -> dict[str, Any]:
    """What the browser has to know of the cells, beside their numbers."""
    from bokeh.palettes import Cividis256, RdBu11, interp_palette

    rates = sorted(
        (name for name, variable in cells.variables.items() if variable.is_rate),
        key=lambda name: FIRST_RATES.index(name) if name in FIRST_RATES else len(FIRST_RATES),
    )
    errors = {variable.error for variable in cells.variables.values()}
    return {
        "x": cells.x,
        "y": cells.y,
        "seed": seed_of(cells),
        "others": [dim for dim in cells.axes if dim not in (cells.x, cells.y)],
        "sizes": {name: axis.values.size for name, axis in cells.axes.items()},
        "axes": {
            name: {
                "label": axis.label,
                "values": axis.values.tolist(),
                "edges": axis.edges.tolist(),
                "numeric": axis.numeric,
                "texts": axis.texts,
            }
            for name, axis in cells.axes.items()
        },
        "even": is_even(cells.axes[cells.x]) and is_even(cells.axes[cells.y]),
        "value": cells.value,
        "variables": [
            {
                "name": variable.name,
                "label": variable.label,
                "kind": variable.kind,
                "dims": variable.dims,
                "error": variable.error,
                "is_error": variable.name in errors,
                "low": variable.limits[0],
                "high": variable.limits[1],
            }
            for variable in cells.variables.values()
        ],
        "curves": [
            {
                "name": curve.name,
                "label": curve.label,
                "kind": curve.kind,
                "dims": curve.dims,
                "along": curve.along,
                "positions": curve.positions.tolist(),
            }
            for curve in map(cells.curves.__getitem__, packed.curve_names)
        ],
        "contours": [{"name": name, "colour": colour} for name, colour in zip(rates, CONTOURS, strict=False)],
        "verdicts": {"dims": list(cells.axes), "words": WORDS, "diverged": HAS_DIVERGED},
        "palettes": {"diverging": list(interp_palette(RdBu11, 256)), "sequential": list(Cividis256)},
        "special": SPECIAL,
        "overflow": OVERFLOW,
        "packed": {"values": packed.values.entries, "curves": packed.curves.entries},
        "live": live,
    }


def template() -> Any:
    """The frame of the page, around what bokeh draws."""
    from bokeh.core.templates import FILE

    return FILE.environment.from_string(_asset("page.html"))


def template_variables(cells: Cells, spec: dict[str, Any], packed: PackedCells, left_out: list[str]) -> dict[str, Any]:
    """What the frame shows: the numbers, the programs that read them, and notes below the heatmap."""
    live = spec["live"]
    notes = [basis(cells)]
    if spec["curves"] and not live:
        notes.append("Each curve is stored in 255 levels from its smallest to its largest value.")
    if spec["curves"]:
        notes.append("The spectrum ends at one turn in two snapshots; faster motion folds back into it.")
    if left_out:
        notes.append(f"Left out, to keep the page small: {', '.join(left_out)}. Explore a part of the dataset instead.")
    if not cells.curves:
        notes.append("The dataset has no curves; run with record=64 to have them.")
    lead = f"Hover for values. Click {'anywhere to compute the run there' if live else 'a cell to see its run'}."
    return {
        "css": _asset("page.css"),
        "programs": "\n".join(map(_asset, PROGRAMS)),
        "spec": json.dumps(spec).replace("<", r"\u003c"),
        "values": packed.values.text,
        "curves": packed.curves.text,
        "lead": lead,
        "keys": [(KEYS[name], colour) for name, colour in SPECIAL.items()],
        "notes": notes,
    }


def _asset(name: str) -> str:
    return resources.files("resonance_jax.explorer").joinpath(name).read_text(encoding="utf-8")
