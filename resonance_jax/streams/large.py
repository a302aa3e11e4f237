"""Streams that are larger than the memory: growth adds up over time, so parts of the stream are diagnosed in turn."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from resonance_jax.problems.recorded import recorded
from resonance_jax.streams.conclude import conclude, recorded_of
from resonance_jax.streams.diagnose import check_stream, plane_axes
from resonance_jax.streams.diagnosis import Diagnosis
from resonance_jax.theory.recorded.growth import LEAST_PASS, Growth
from resonance_jax.theory.recorded.plane import plane, summary


def diagnose_parts(
    parts: Iterable[Any],
    *,
    samples: int,
    mu: float | None = None,
    eta: float | None = None,
    bias: bool = True,
    loss_factor: float = 2.0,
    mus: Sequence[float] | np.ndarray | None = None,
    etas: Sequence[float] | np.ndarray | None = None,
    permutations: int = 4,
    model: bool = True,
    progress: bool = False,
) -> Diagnosis:
    """`diagnose` for a stream that comes in consecutive parts, each of which fits into the memory.

    Each part is diagnosed by itself on the same plane. Growth is the mean over the parts, weighted by their steps; the
    spread between them gives the standard error where there are three or more. Time scale, shuffle buffer and model are
    those of the first part.

    Args:
        parts: arrays of rows (n, d), in the order of time. A last part of fewer than 40 steps is left out.
        samples, mu, eta, bias, loss_factor, mus, etas, permutations, model, progress: as `diagnose`.
    """
    first, planes, curvatures, steps, axes = None, [], [], [], None
    for part in parts:
        if first is not None and len(part) // samples < LEAST_PASS:
            continue
        problem = recorded(part, samples=samples, bias=bias, loss_factor=loss_factor)
        linear, rows = recorded_of(problem)
        if first is None or axes is None:
            check_stream(rows, bias, mu, eta, permutations)
            first, axes = problem, plane_axes(rows, mu, eta, mus, etas)
        planes.append(plane(linear, *axes, permutations, progress=progress))
        curvatures.append(rows.curvature)
        steps.append(rows.steps)
    if first is None:
        raise ValueError("a diagnosis needs rows, got a stream without any; look at the file")
    weights = np.array(steps) / np.sum(steps)
    data = _mean(planes, weights, np.einsum("p,pij->ij", weights, np.stack(curvatures)))
    found = conclude(first, data, mu=mu, eta=eta, bias=bias, loss_factor=loss_factor, model=model)
    if len(planes) == 1:
        return found
    return found._replace(what=f"{found.what} This is the first of {len(planes)} parts, {sum(steps):,} steps in all.")


def _mean(planes: list[xr.Dataset], weights: np.ndarray, curvature: np.ndarray) -> xr.Dataset:
    if len(planes) == 1:
        return planes[0]
    whole = xr.concat(planes, xr.DataArray(weights, dims="part", name="part"), join="exact")
    share = xr.DataArray(weights, dims="part", coords={"part": whole["part"]})

    def rates(name: str, rise: xr.DataArray) -> Growth:
        rate = (share * whole[name]).sum("part")
        own = ((share * whole[f"{name}_standard_error"]) ** 2).sum("part") ** 0.5
        spread = ((share**2 * (whole[name] - rate) ** 2).sum("part") * len(planes) / (len(planes) - 1)) ** 0.5
        return Growth(rate, own.where(own > spread, spread) if len(planes) > 2 else own, rise)

    time, mixed = rates("growth_rate", whole.rise.max("part")), rates("shuffled_rate", whole.shuffled_rise.max("part"))
    return summary(time, mixed, curvature)
