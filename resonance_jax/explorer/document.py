"""The widgets and figures of a page. They start empty: `page.js` fills them in the browser."""

# bokeh's annotations do not know the conversions of its properties, e.g. of a pair of numbers into a range
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportCallIssue=false

from typing import Any

import numpy as np
from bokeh.document import Document
from bokeh.layouts import column, row
from bokeh.models import (
    Button,
    CheckboxGroup,
    ColorBar,
    ColumnDataSource,
    CustomJS,
    CustomJSTickFormatter,
    Div,
    FixedTicker,
    InlineStyleSheet,
    Legend,
    LegendItem,
    LinearColorMapper,
    RangeSlider,
    Select,
    Slider,
    Spacer,
)
from bokeh.plotting import figure

from resonance_jax.explorer.cells import Axis, Cells

ONE, MEAN, FAINT = "#1f5fbf", "#e07b00", "#9aa7bd"  # line colours: the chosen seed, the mean over seeds, all seeds
WIDTH, HEIGHT, SIDE = 640, 560, 560  # pixels: the heatmap, and the width of the column beside it
RUN_STYLE = """
.run { color: #1c2330; font: 13.5px/1.4 system-ui, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; }
.run h2 { font-size: 15px; margin: 0 0 4px; font-weight: 650; }
.verdict { display: inline-block; margin: 0 0 6px; padding: 2px 10px; border-radius: 10px; color: #fff; }
.v0, .v1, .v5 { background: #6b7280; } .v2 { background: #c2185b; } .v3 { background: #b3202c; }
.v4 { background: #1d5fa8; }
.run table { border-spacing: 0; }
.run td, .run th { padding: 1px 14px 1px 0; text-align: left; font-weight: normal; white-space: nowrap; }
.run td:first-child { white-space: normal; max-width: 235px; }
.run th { color: #5a6475; }
.hint { color: #5a6475; }
"""


def add_models(document: Document, cells: Cells, spec: dict[str, Any]) -> dict[str, Any]:
    """Fill a document, of a file or of a server; the models that the browser and the server talk to, by name."""
    models: dict[str, Any] = {}
    heatmap = _heatmap(cells, spec, models)
    controls = _controls(cells, spec, models)
    run = _run(spec, models)
    if spec["live"]:
        models["ask"] = ColumnDataSource({"x": [], "y": [], "index": []})
        models["answer"] = ColumnDataSource({"run": []})
        models["verdict"].tags = [models["ask"], models["answer"]]  # what no root refers to is not kept in step
    document.add_root(row(column(controls, heatmap), Spacer(width=24), run))
    start = (
        "const found = models instanceof Map ? Object.fromEntries(models) : models\n"
        "return explorer.start(explorer.spec, found)"
    )
    document.js_on_event("document_ready", CustomJS(args={"models": models}, code=start))
    return models


def _heatmap(cells: Cells, spec: dict[str, Any], models: dict[str, Any]) -> Any:
    x, y = cells.axes[cells.x], cells.axes[cells.y]
    plot = figure(
        width=WIDTH,
        height=HEIGHT,
        x_axis_type="log" if x.log else "linear",
        y_axis_type="log" if y.log else "linear",
        x_range=(x.edges[0], x.edges[-1]),
        y_range=(y.edges[0], y.edges[-1]),
        x_axis_label=x.label,
        y_axis_label=y.label,
        tools="pan,box_zoom,wheel_zoom,reset,save",
        toolbar_location="above",
        name="heatmap",
    )
    plot.toolbar.logo = None
    plot.grid.visible = False
    plot.axis.axis_label_text_font_style = "normal"
    plot.min_border_right = 20
    _label_ticks(plot.xaxis[0], x)
    _label_ticks(plot.yaxis[0], y)
    models["figure"] = plot
    if spec["even"]:
        models["heat"] = source = ColumnDataSource({"image": [np.zeros((y.values.size, x.values.size), np.uint32)]})
        box = dict(x=x.edges[0], y=y.edges[0], dw=x.edges[-1] - x.edges[0], dh=y.edges[-1] - y.edges[0])
        plot.image_rgba("image", source=source, level="image", **box)
    else:
        sides = [
            (left, right, bottom, top)
            for bottom, top in zip(y.edges[:-1], y.edges[1:], strict=True)
            for left, right in zip(x.edges[:-1], x.edges[1:], strict=True)
        ]
        columns = dict(zip(("left", "right", "bottom", "top"), map(list, zip(*sides, strict=True)), strict=True))
        models["heat"] = source = ColumnDataSource(columns | {"color": ["#ffffff"] * len(sides)})
        plot.quad(**{side: side for side in columns}, fill_color="color", line_color="color", source=source)

    models["mapper"] = LinearColorMapper(palette=spec["palettes"]["sequential"], low=0, high=1)
    ticks = (
        "const powers = ['log10', 'log'].includes(explorer.state?.variable.kind)\n"
        "return powers ? explorer.power(tick) : explorer.text(tick)"
    )
    models["bar"] = ColorBar(
        color_mapper=models["mapper"],
        title=" ",
        width=14,
        formatter=CustomJSTickFormatter(code=ticks),
        title_text_font_style="normal",
    )
    plot.add_layout(models["bar"], "right")

    items = []
    for contour in spec["contours"]:
        source = models[f"contour_{contour['name']}"] = ColumnDataSource(
            {name: [] for name in ("x0", "y0", "x1", "y1")}
        )
        ends = dict(x0="x0", y0="y0", x1="x1", y1="y1", source=source, line_cap="round")
        halo = plot.segment(**ends, line_color="white", line_width=4, line_alpha=0.75)
        line = plot.segment(**ends, line_color=contour["colour"], line_width=1.8)
        items.append(LegendItem(label=f"{contour['name']} = 0", renderers=[halo, line]))
        models[f"legend_{contour['name']}"] = items[-1]
    if items:
        legend = Legend(items=items, orientation="horizontal", click_policy="hide", border_line_color=None, padding=0)
        legend.label_text_font_size = "11px"
        plot.add_layout(legend, "below")
    models["mark"] = ColumnDataSource({side: [] for side in ("left", "right", "bottom", "top")})
    sides = {side: side for side in models["mark"].data}
    plot.quad(**sides, source=models["mark"], fill_alpha=0, line_color="white", line_width=5)
    plot.quad(**sides, source=models["mark"], fill_alpha=0, line_color="black", line_width=2)
    return plot


def _label_ticks(ticks: Any, axis: Axis) -> None:
    """Words instead of numbers, where the coordinate is no number."""
    if not axis.numeric:
        ticks.ticker = FixedTicker(ticks=axis.values.tolist())
        ticks.major_label_overrides = {i: text.partition(" = ")[2] or text for i, text in enumerate(axis.texts)}


def _controls(cells: Cells, spec: dict[str, Any], models: dict[str, Any]) -> Any:
    names = [(one["name"], one["name"]) for one in spec["variables"] if not one["is_error"]]
    models["variable"] = Select(title="heatmap of", value=spec["value"], options=names, width=190)
    widgets: list[Any] = [models["variable"]]
    for dim in spec["others"]:
        axis = cells.axes[dim]
        options = [(str(i), text) for i, text in enumerate(axis.texts)]
        if dim == spec["seed"]:
            mean = [("-1", f"mean over {len(options)} seeds")]
            widget = Select(title=dim, value="-1", options=mean + options, width=190)
        elif len(options) == 1:
            widget = Div(text=axis.texts[0])
        elif axis.numeric:
            widget = Slider(
                title=axis.texts[0], start=0, end=len(options) - 1, step=1, value=0, show_value=False, width=190
            )
        else:
            widget = Select(title=dim, value="0", options=options, width=190)
        if len(options) > 1:
            models[f"choose_{dim}"] = widget
        widgets.append(widget)
    shown = next(one for one in spec["variables"] if one["name"] == spec["value"])
    low, high = shown["low"], shown["high"]
    models["limits"] = RangeSlider(
        title="colours from",
        start=low,
        end=high,
        value=(low, high),
        step=(high - low) / 200,
        width=300,
        format="0[.]000",
    )
    models["rescale"] = Button(label="fit to this slice", width=110)
    by_value = shown["kind"] in ("log10", "signed")
    models["marks"] = CheckboxGroup(labels=["mark diverged cells"], active=[] if by_value else [0], width=160)
    models["save_slice"] = Button(label="slice as CSV", width=110)
    rows = [row(*widgets[i : i + 3]) for i in range(0, len(widgets), 3)]
    return column(*rows, row(models["limits"], models["rescale"], models["save_slice"]), models["marks"])


def _run(spec: dict[str, Any], models: dict[str, Any]) -> Any:
    """The column beside the heatmap: verdict and rates of the clicked run, its curve, its spectrum."""
    hint = "<p class=hint>Click a cell: its curves, its rates and a verdict appear here.</p>"
    style = InlineStyleSheet(css=RUN_STYLE)
    models["verdict"] = Div(text=f"<div class=run>{hint}</div>", width=SIDE, stylesheets=[style])
    models["save_run"] = Button(label="run as CSV", width=110)
    parts: list[Any] = [models["verdict"]]
    if spec["curves"]:
        names = [curve["name"] for curve in spec["curves"]]
        models["curve"] = Select(value=names[0], options=names, width=220)
        parts += [row(models["curve"], models["save_run"]), *_curves(spec, models)]
    else:
        parts.append(models["save_run"])
    return column(*parts)


def _curves(spec: dict[str, Any], models: dict[str, Any]) -> list[Any]:
    for name in ("one", "mean", "spectrum_one", "spectrum_mean"):
        models[name] = ColumnDataSource({"x": [], "y": []})
    models["seeds"] = ColumnDataSource({"xs": [], "ys": []})
    common: dict[str, Any] = dict(width=SIDE, tools="pan,box_zoom,reset,save", visible=False)
    models["curve_figure"] = curve = figure(
        height=250, x_range=(0, 1), y_range=(0, 1), x_axis_label=spec["curves"][0]["along"], y_axis_label=" ", **common
    )
    curve.multi_line("xs", "ys", source=models["seeds"], color=FAINT, alpha=0.5, line_width=1, legend_label="all seeds")
    curve.line("x", "y", source=models["mean"], color=MEAN, line_width=2, legend_label="mean over seeds")
    curve.line("x", "y", source=models["one"], color=ONE, line_width=2, legend_label="this run")
    ticks = "return explorer.state?.curveKind === 'log10' ? explorer.power(tick) : explorer.text(tick)"
    curve.yaxis.formatter = CustomJSTickFormatter(code=ticks)
    models["curve_axis"] = curve.yaxis[0]
    models["spectrum_figure"] = spectrum = figure(
        height=220,
        x_range=(0, 1),
        y_range=(0.1, 1),
        x_axis_label="frequency (1/step)",
        y_axis_label="power",
        y_axis_type="log",
        **common,
    )
    spectrum.line("x", "y", source=models["spectrum_mean"], color=MEAN, line_width=2, legend_label="of the mean")
    spectrum.line("x", "y", source=models["spectrum_one"], color=ONE, line_width=2, legend_label="of this run")
    spectrum.title.text = "Spectrum of the curve about its straight line"
    spectrum.xaxis.formatter = CustomJSTickFormatter(code="return explorer.text(tick)")
    for plot in (curve, spectrum):
        plot.toolbar.logo = None
        plot.toolbar.autohide = True
        plot.title.text_font_style = "normal"
        plot.axis.axis_label_text_font_style = "normal"
        plot.add_layout(plot.legend[0], "above")
        plot.legend.orientation = "horizontal"
        plot.legend.click_policy = "hide"
        plot.legend.label_text_font_size = "11px"
        plot.legend.border_line_color = None
        plot.legend.padding = plot.legend.margin = 0
    return [curve, spectrum]
