"""What to do about growth on a stream, and what each remedy costs."""

from typing import NamedTuple

import numpy as np
import xarray as xr

from resonance_jax.streams import time_scales
from resonance_jax.theory.recorded.growth import Growth


class Remedy(NamedTuple):
    """A change that makes runs converge on this stream."""

    name: str  # momentum, step size or buffer
    value: float  # momentum, step size, or rows in the buffer
    rate: float  # growth per step with it
    text: str


def remedies(
    data: xr.Dataset, mu: float, eta: float, behind_buffer: Growth | None, row_bytes: int
) -> tuple[Remedy, ...]:
    """Those that the diagnosis of a setting knows to work, the momentum first."""
    found = []
    momentum = float(data.largest_safe_mu.sel(eta=eta))
    if np.isfinite(momentum) and momentum < mu:
        rate = float(data.growth_rate.sel(mu=momentum, eta=eta))
        found.append(Remedy("momentum", momentum, rate, f"momentum {momentum:.4g} at this step size: {_pace(rate)}."))
    step = float(data.largest_safe_eta.sel(mu=mu))
    if np.isfinite(step) and step < eta:
        rate = float(data.growth_rate.sel(mu=mu, eta=step))
        found.append(Remedy("step size", step, rate, f"step size {step:.3g} at this momentum: {_pace(rate)}."))
    if behind_buffer is not None:
        size = time_scales.smallest_safe_buffer(behind_buffer)
        if size is not None:
            rate = float(behind_buffer.rate.sel(buffer_size=size))
            held = f"it holds {_bytes(size * row_bytes)}"
            found.append(
                Remedy(
                    "buffer",
                    size,
                    rate,
                    f"a shuffle buffer of {size:,} rows, this setting kept: {_pace(rate)}; {held}.",
                )
            )
    return tuple(found)


def _pace(rate: float) -> str:
    return f"the error falls tenfold in {np.log(10) / -rate:,.0f} steps"


def _bytes(number: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.3g} {unit}"
        number /= 1024
    return f"{number:.3g} GiB"
