"""The diagnosis of a stream in one picture: where runs grow, what is to blame, at which time scale, what to do."""

import functools
import textwrap
from typing import Any

import matplotlib.patheffects as effects
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap, SymLogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, NullLocator

from resonance_jax.plotting._axes import edges, text_of
from resonance_jax.theory.recorded.verdicts import MEANINGS, NAMES

SMALL = 1e-3  # growth per step below which the colours are linear
SPREAD = 95  # percentile of the rates that the colours reach
FEW_TICKS = 5
HALO = [effects.withStroke(linewidth=2.5, foreground="white")]
ROUND_MOMENTA = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)
VERDICTS = {  # of each verdict, and what it means in a few words
    "stable": ("#cfe3f2", "runs converge"),
    "order": ("#d7301f", "diverge in time order, converge shuffled"),
    "noise": ("#fdbb63", "diverge in time order and shuffled"),
    "both": ("#8c2d62", "diverge shuffled, faster in time order"),
    "step too large": ("#5f5f5f", "diverge even if steps saw all rows"),
    "bursts": ("#2a9d8f", "converge, but rise 1000-fold on the way"),
    "undecided": ("#e4e4e4", "too close to no growth to tell"),
}

_log_edges = functools.partial(edges, log=True)

Diagnosis = Any  # a `streams.diagnosis.Diagnosis`, which lives above this room and draws itself with it


def diagnosis_figure(diagnosis: Diagnosis) -> Figure:
    """Draw a diagnosis.

    Growth per step over step size and momentum, in time order and shuffled; a map of the verdicts with the largest safe
    momentum, and what to do; the spectrum of the modulation of B with the periods at which resonance is expected; and,
    where the order is to blame, growth against what is kept of the order. A star marks the setting.

    Args:
        diagnosis: from `rj.diagnose`.

    Returns:
        The figure.

    >>> from resonance_jax.streams.diagnosis import Diagnosis  # made by hand here, to be quick
    >>> rate = xr.DataArray([[-0.1, -0.2], [-0.1, 0.3]], dict(mu=[0.5, 0.9], eta=[0.01, 0.1]))
    >>> safe, frequency = ("eta", [0.9, 0.5]), ("frequency", [0.1, 0.2])
    >>> rates = dict(growth_rate=rate, shuffled_rate=rate - 0.5, verdict=(rate > 0).astype(int))
    >>> data = xr.Dataset(rates | dict(largest_safe_mu=safe, modulation=frequency), dict(frequency=frequency))
    >>> figure = diagnosis_figure(Diagnosis(data, None, None, False, "", None, (), None, "4 rows"))
    >>> [ax.get_title() for ax in figure.axes[:2]]
    ['In time order', 'Shuffled']
    """
    data = diagnosis.data
    figure = plt.figure(figsize=(10.5, 7), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06, wspace=0.02, hspace=0.03)  # pyright: ignore
    grid = figure.add_gridspec(2, 3, width_ratios=(1, 1, 1.05))
    time, shuffled = (figure.add_subplot(grid[0, i]) for i in range(2))
    norm = _norm(data)
    for ax, name, title in ((time, "growth_rate", "In time order"), (shuffled, "shuffled_rate", "Shuffled")):
        mesh = _rates(ax, data[name], norm)
        ax.set_title(title)
    _colour_bar(figure, mesh, [time, shuffled], data, norm)
    shuffled.tick_params(labelleft=False)
    shuffled.set_ylabel("")
    blame, words = figure.add_subplot(grid[1, 0]), figure.add_subplot(grid[1, 1])
    _verdicts(blame, data)
    _legend(words, data)
    for ax in (time, shuffled, blame):
        _star(ax, diagnosis, labelled=ax is time)
    if "block_rate" in data:
        _spectrum(figure.add_subplot(grid[0, 2]), data)
        _kept_order(figure.add_subplot(grid[1, 2]), diagnosis)
    else:
        _spectrum(figure.add_subplot(grid[:, 2]), data)
    figure.suptitle(_sentence(diagnosis), fontsize=12, fontweight="bold")
    if diagnosis.remedies:
        text = "\n".join(["What to do:", *(f"\u2022 {each.text}" for each in diagnosis.remedies)])
        figure.supxlabel(text, x=0.02, ha="left", fontsize=9, linespacing=1.3)
    return figure


def _sentence(diagnosis: Diagnosis) -> str:
    if diagnosis.mu is None or diagnosis.eta is None:
        return "No setting of the plane diverges because of the order"
    meaning = MEANINGS[diagnosis.verdict].rstrip(".")
    chosen = "Momentum" if diagnosis.own else "The order does most harm at momentum"
    text = f"{chosen} {diagnosis.mu:.4g}, step size {diagnosis.eta:.3g}: {meaning}"
    return "\n".join(textwrap.wrap(text, 92))


# The plane: eta on a logarithmic axis, 1 - mu on another that points down.


def _norm(data: xr.Dataset) -> SymLogNorm:
    """Colours centred at 0, up to a power of ten that most rates do not exceed."""
    sizes = np.abs(np.stack([data.growth_rate, data.shuffled_rate]))
    sizes = sizes[np.isfinite(sizes)]
    most = float(np.percentile(sizes, SPREAD)) if sizes.size else 1.0
    limit = 10.0 ** np.clip(np.ceil(np.log10(max(most, SMALL))), -2, 0)
    return SymLogNorm(SMALL, vmin=-limit, vmax=limit, base=10)


def _rates(ax: Axes, rate: xr.DataArray, norm: SymLogNorm) -> Any:
    values = np.ma.masked_invalid(rate.transpose("mu", "eta").values)
    damping = _damping(rate.mu.values)
    mesh = ax.pcolormesh(
        _log_edges(rate.eta.values), _log_edges(damping), values, norm=norm, cmap="RdBu_r", rasterized=True
    )
    if min(values.shape) > 1 and values.min() < 0 < values.max():
        ax.contour(rate.eta.values, damping, values, levels=[0.0], colors="black", linewidths=1.4)
    _plane_axes(ax, rate)
    return mesh


def _damping(mu: Any) -> np.ndarray:
    """1 - mu; momenta of 1 or more, which have no logarithm, lie a decade beyond one another."""
    damping = 1 - np.asarray(mu, float)
    below = damping > 0
    smallest = damping[below].min() if below.any() else 1.0
    return np.where(below, damping, smallest / 10.0 ** np.cumsum(~below))


def _plane_axes(ax: Axes, over: xr.DataArray) -> None:
    eta, mu = over.eta.values, over.mu.values
    across, up = _log_edges(eta), _log_edges(_damping(mu))
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(across[0], across[-1])
    ax.set_ylim(up[0], up[-1])
    if across[-1] < 50 * across[0]:
        shown = _apart(np.log10(eta))
        ax.xaxis.set_major_locator(FixedLocator(eta[shown]))
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:.3g}")
        ax.xaxis.set_minor_locator(NullLocator())
    ticks = np.array([each for each in ROUND_MOMENTA if up[-1] <= 1 - each <= up[0]])
    if len(ticks) < 3:
        ticks = mu[_apart(np.log10(_damping(mu)))]
    ax.set_yticks(_damping(ticks), [f"{each:.5g}" for each in ticks])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_xlabel(text_of(over.eta))
    ax.set_ylabel(text_of(over.mu))


def _apart(logs: np.ndarray) -> list[int]:
    """Indices of a few values with room between them for their labels."""
    shown = [0]
    for i in range(1, len(logs)):
        if abs(logs[i] - logs[shown[-1]]) > abs(logs[-1] - logs[0]) / FEW_TICKS:
            shown.append(i)
    return shown


def _colour_bar(figure: Figure, mesh: Any, axes: list[Axes], data: xr.Dataset, norm: SymLogNorm) -> None:
    limit = float(norm.vmax or 1)
    rates = np.stack([data.growth_rate, data.shuffled_rate])
    below, above = bool((rates < -limit).any()), bool((rates > limit).any())
    extend = {(True, True): "both", (True, False): "min", (False, True): "max"}.get((below, above), "neither")
    bar = figure.colorbar(mesh, ax=axes, extend=extend, pad=0.02, aspect=25, label="growth per step")
    powers = 10.0 ** np.arange(round(np.log10(SMALL)), round(np.log10(limit)) + 1)
    bar.set_ticks([*(-powers[::-1]), 0, *powers])
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:+g}".replace("-", "\u2212") if value else "0")
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.ax.tick_params(labelsize=8)


def _star(ax: Axes, diagnosis: Diagnosis, *, labelled: bool) -> None:
    if diagnosis.mu is None or diagnosis.eta is None:
        return
    data = diagnosis.data
    height = float(_damping(data.mu.values)[np.abs(data.mu.values - diagnosis.mu).argmin()])
    ax.plot(diagnosis.eta, height, "*", ms=15, mfc="#ffe14d", mec="black", zorder=4)
    if not labelled:
        return
    across, up = ax.transAxes.inverted().transform(ax.transData.transform((diagnosis.eta, height)))
    ax.annotate(
        "your setting" if diagnosis.own else "order harms most",
        (diagnosis.eta, height),
        (-6 if across > 0.5 else 6, -6 if up > 0.2 else 8),
        textcoords="offset points",
        ha="right" if across > 0.5 else "left",
        va="top" if up > 0.2 else "bottom",
        fontweight="bold",
        path_effects=HALO,
        zorder=5,
    )


# The verdicts


def _verdicts(ax: Axes, data: xr.Dataset) -> None:
    across, up = _log_edges(data.eta.values), _log_edges(_damping(data.mu.values))
    colours = ListedColormap([VERDICTS[name][0] for name in NAMES])
    norm = BoundaryNorm(np.arange(len(NAMES) + 1) - 0.5, len(NAMES))
    ax.pcolormesh(across, up, data.verdict.transpose("mu", "eta").values, norm=norm, cmap=colours, rasterized=True)
    safe = data.largest_safe_mu.values
    tops = [up[0] if np.isnan(each) else up[np.abs(data.mu.values - each).argmin() + 1] for each in safe]
    line = ax.stairs(tops, across, baseline=None, color="black", lw=2)
    line.set_clip_on(False)  # it may run along the frame
    _plane_axes(ax, data.verdict)
    ax.set_title("What is to blame")


def _legend(ax: Axes, data: xr.Dataset) -> None:
    """The verdicts that occur, in words."""
    handles: list[Any] = [
        Patch(facecolor=colour, edgecolor="0.4", lw=0.5, label=f"{name}:\n{words}")
        for name, (colour, words) in VERDICTS.items()
        if (data.verdict == NAMES.index(name)).any()
    ]
    handles.append(Line2D([], [], color="black", lw=2, label="largest safe momentum"))
    ax.axis("off")
    legend = ax.legend(handles=handles, loc="center left", frameon=False, fontsize=8, handlelength=1.4)
    legend.set_bbox_to_anchor((-0.08, 0.48), ax.transAxes)
    legend.set_in_layout(False)  # it may be wider than its axes


# The time scale


def _spectrum(ax: Axes, data: xr.Dataset) -> None:
    density = data.modulation
    period = 1 / density.frequency.values
    ax.loglog(period, np.maximum(density.values, np.finfo(float).tiny), color="#2b5c8a", lw=1.2)
    found = density.values[density.values > 0]
    if found.size:
        low, high = max(found.min(), 1e-7 * found.max()) / 2, 2 * found.max()
        ax.set_ylim(low, high * (high / low) ** 0.12)  # with room for the legend
    ax.set_xlim(period.min(), period.max())
    expected = (
        data.tongue_period if "tongue_period" in data else xr.DataArray(np.zeros((0, 0)), dims=("mode", "tongue"))
    )
    for i, tongue in enumerate(expected.tongue.values):
        periods = expected.sel(tongue=tongue).values
        inside = periods[np.isfinite(periods) & (periods >= period.min()) & (periods <= period.max())]
        for value in np.unique(np.round(inside, 2)):
            ax.axvline(value, color="#d7301f", lw=1.6 - 0.4 * i, ls=("-", "--", ":")[i % 3])
    if any(line.get_color() == "#d7301f" for line in ax.lines):
        ax.lines[1].set_label("resonance expected")
        ax.legend(loc="upper right", fontsize=8, framealpha=0.95, edgecolor="none")
    _round_ticks(ax, period.min(), period.max())
    ax.set_title("Periods in the stream")
    ax.set_xlabel("period (steps)")
    ax.set_ylabel("spectral density of B")


def _round_ticks(ax: Axes, low: float, high: float) -> None:
    """Plain numbers on a logarithmic axis, few enough to read."""
    steps = (1, 2, 5) if high < 300 * low else (1, 3) if high < 3000 * low else (1,)
    ax.xaxis.set_major_locator(FixedLocator([step * 10.0**power for power in range(12) for step in steps]))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value < 1e5 else f"$10^{{{np.log10(value):.2g}}}$")
    ax.xaxis.set_minor_locator(NullLocator())


def _kept_order(ax: Axes, diagnosis: Diagnosis) -> None:
    data = diagnosis.data
    ax.axhline(0, color="0.4", lw=0.8)
    curves = (
        ("block", "block_length", "#d7301f", "o-", "blocks of rows keep their order"),
        ("buffer", "buffer_size", "#2b5c8a", "s--", "behind a shuffle buffer"),
    )
    for name, along, colour, style, label in curves:
        rate, error = data[f"{name}_rate"], data[f"{name}_rate_standard_error"]
        ax.errorbar(rate[along].values, rate.values, error.values, fmt=style, color=colour, ms=3.5, lw=1.2, label=label)
    if diagnosis.returns_at is not None:
        label = f"growth from {diagnosis.returns_at:,} rows on"
        ax.axvline(diagnosis.returns_at, color="#d7301f", lw=1.2, ls=":", ymax=0.57, label=label)
    for remedy in diagnosis.remedies:
        if remedy.name == "buffer":
            label = f"smallest safe buffer, {remedy.value:,.0f} rows"
            ax.plot(remedy.value, remedy.rate, "o", ms=10, mfc="none", mec="#2b5c8a", mew=1.6, label=label, ls="none")
    ax.set_xscale("log", base=2)
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + 0.7 * (high - low))  # room for the legend
    apart = np.ceil(np.log2(max(data.block_length.values)) / FEW_TICKS)  # powers of two from tick to tick
    ax.xaxis.set_major_locator(FixedLocator(2.0 ** (apart * np.arange(FEW_TICKS + 1))))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value < 10_000 else f"{value / 1000:,.0f}k")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.legend(loc="upper left", fontsize=8, frameon=False, labelspacing=0.3)
    ax.set_title("How much order it takes")
    ax.set_xlabel("rows of a block, or of the buffer")
    ax.set_ylabel("growth per step")
