"""What a page says about each cell, in words. It errs on the safe side, and says when it cannot know."""

from typing import Any

import numpy as np
import xarray as xr

from resonance_jax.explorer.cells import Cells
from resonance_jax.jobs.layout import MISSING, NONFINITE, STATUS

WORDS = ("not computed", "not finite", "diverged", "grows", "shrinks", "cannot say")
NOT_COMPUTED, NOT_FINITE, HAS_DIVERGED, GROWS, SHRINKS, UNDECIDED = range(len(WORDS))
MEASURED = ("growth_rate", "update_growth_rate")  # of the run itself; the other rates are those of theory
ERRORS = 2  # standard errors that a rate must lie from 0


def verdicts(cells: Cells) -> xr.DataArray:
    """The verdict on each cell, a number that counts `WORDS`, over the axes of the cells.

    A run has diverged if the dataset says so. Otherwise it grows if its own growth rate is positive, or if no rate is
    negative and one is positive. It shrinks only if all rates, those of theory too, are negative. A rate within two
    standard errors of 0 has no sign. Nor has a measured rate that changed the run by less than a factor of ten.
    """
    data = cells.data
    everywhere = xr.DataArray(np.zeros([axis.values.size for axis in cells.axes.values()], bool), dims=[*cells.axes])

    def spread(array: xr.DataArray) -> xr.DataArray:
        return (array.drop_vars([*array.coords]) | everywhere).transpose(*cells.axes)

    nonfinite, missing = everywhere, everywhere
    for name in cells.variables:
        nonfinite = nonfinite | spread(np.isfinite(data[name]) == 0)
    if STATUS in data and set(data[STATUS].dims) <= set(cells.axes):
        nonfinite = nonfinite | spread(data[STATUS] == NONFINITE)
        missing = spread(data[STATUS] == MISSING)

    up, down, every_down, own_up = everywhere, everywhere, ~everywhere, everywhere
    rates = [name for name, variable in cells.variables.items() if variable.is_rate]
    for name in rates:
        doubt = doubt_of(cells, name)
        above, below = spread(data[name] > doubt), spread(data[name] < -doubt)
        up, down, every_down = up | above, down | below, every_down & below
        own_up = own_up | above if name == "growth_rate" else own_up
    grows = own_up | (up & ~down)
    shrinks = every_down if rates else everywhere
    found = xr.where(grows, GROWS, xr.where(shrinks, SHRINKS, UNDECIDED))
    for where, verdict in ((nonfinite, NOT_FINITE), (cells.diverged, HAS_DIVERGED), (missing, NOT_COMPUTED)):
        found = xr.where(where, verdict, found)
    return found.astype(np.uint8).transpose(*cells.axes)


def doubt_of(cells: Cells, name: str) -> Any:
    """How far from 0 a rate must lie to have a sign: a number, or an array where the rate has a standard error."""
    error = cells.variables[name].error
    if error is not None:
        return ERRORS * cells.data[error]
    steps = _num_steps(cells)
    return np.log(10) / steps if name in MEASURED and steps else 0.0


def basis(cells: Cells) -> str:
    """What the verdicts are based on, as a sentence for the page."""
    rates = [name for name, variable in cells.variables.items() if variable.is_rate]
    flags = [name for name in ("diverged", "diverged_at", STATUS) if name in cells.data]
    if not rates:
        return "The dataset has no growth rate, so a verdict can only say what " + (
            f"{' and '.join(flags)} says." if flags else "is not finite."
        )
    text = f"Verdicts are based on {', '.join([*flags, *rates])}. A cell shrinks only if all rates are negative."
    steps = _num_steps(cells)
    if steps and any(name in MEASURED for name in rates):
        text += f" A run that changed by less than a factor of ten in its {steps:g} steps cannot be judged."
    elif any(name in MEASURED for name in rates):
        text += " The length of the runs is unknown, so measured rates are judged by their sign alone."
    return text


def _num_steps(cells: Cells) -> float:
    """Length of the runs, from their snapshots; 0 if it is unknown."""
    return float(cells.data["step"].max()) if "step" in cells.data.coords else 0.0
