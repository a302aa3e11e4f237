"""What is to blame for growth on recorded rows, cell by cell."""

import numpy as np
import xarray as xr

from resonance_jax.theory.recorded.growth import Growth

SURE = 2.0  # standard errors
MARKEDLY = 2.0  # the order is to blame too if it makes runs grow at least this many times as fast as noise alone
ROUNDING = 1e-6  # expected growth below this is rounding
HARMLESS = 3.0  # decades that a run may rise on its way down, as `diverged_above` of `oscillate`
FLAT = 2e-7  # a step: twice the rounding of float32; a run that goes up by less, and never rises, does not grow
RISEN = 0.01  # decades, above which a run has risen
LEVEL = 1.0  # decades; a run that never rises more and ends lower has shrunk, whatever the spread between its parts

MEANINGS = {
    "stable": "runs converge in time order.",
    "order": "runs diverge in time order and converge when the rows are shuffled: the order is to blame.",
    "noise": "runs diverge in time order and shuffled, about as fast: the noise of few rows a step is to blame.",
    "both": "runs diverge when the rows are shuffled, and at least twice as fast in time order.",
    "step too large": "the step size is too large, even if each step saw all rows.",
    "bursts": "runs converge in the long run, but a part of the stream makes them grow a thousandfold or more.",
    "undecided": "the growth is too small beside its spread over the stream to tell; treat it as unsafe.",
}
NAMES = tuple(MEANINGS)
SAFE = NAMES.index("stable")


def verdicts(time: Growth, shuffled: Growth, expected: xr.DataArray) -> xr.DataArray:
    """Number of the first verdict that fits in `NAMES`.

    Args:
        time: in the order of time.
        shuffled: the same rows.
        expected: rate of steps that see all rows.
    """
    (shrinks, grows), (calm, noisy) = signs(time), signs(shuffled)
    error = np.hypot(time.standard_error, shuffled.standard_error)
    faster = (time.rate > MARKEDLY * shuffled.rate) & (time.rate - shuffled.rate > SURE * error)
    rules = (
        (shrinks & (time.rise < HARMLESS), "stable"),
        (expected > ROUNDING, "step too large"),
        ((time.rate < 0) & (time.rise >= HARMLESS), "bursts"),
        (grows & calm, "order"),
        (grows & noisy & faster, "both"),
        (grows & noisy, "noise"),
    )
    found = xr.full_like(time.rate, NAMES.index("undecided"), dtype=np.int8)
    for fits, name in reversed(rules):
        found = found.where(~fits, np.int8(NAMES.index(name)))
    return found.assign_attrs(
        flag_values=list(range(len(NAMES))), flag_meanings=" ".join(n.replace(" ", "_") for n in NAMES)
    )


def signs(growth: Growth) -> tuple[xr.DataArray, xr.DataArray]:
    """Where runs shrink, and where they grow: by more than two standard errors, or seen from how far they rose."""
    error = SURE * growth.standard_error
    flat = (growth.rate < FLAT) & (growth.rise < RISEN)  # weights that hardly move, at step sizes close to 0
    shrinks = (growth.rate < -error) | ((growth.rate < 0) & (growth.rise < LEVEL)) | flat
    return shrinks, ((growth.rate > error) | ((growth.rate > 0) & (growth.rise >= HARMLESS))) & ~flat


def largest_safe(verdict: xr.DataArray, along: str) -> xr.DataArray:
    """Largest value of an axis up to which every cell is stable; NaN where the first is not."""
    safe = (verdict == SAFE).cumprod(along).astype(bool)
    return verdict[along].where(safe).max(along)
