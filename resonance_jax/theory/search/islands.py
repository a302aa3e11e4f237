"""Islands between the points of a coarse grid: a peak that rises above 0 between them, or a dip that falls below."""

import numpy as np

from resonance_jax.theory.search.lattice import Known, Values

MOST = 64  # peaks and dips that are followed, those nearest to 0 first
AROUND = np.array([(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)])


def find_islands(
    known: Known, values_at: Values, coarse: int, stride: tuple[int, int], max_evaluations: int
) -> tuple[Known, np.ndarray]:
    """Climb every peak of the coarse grid that may reach above 0 between its points, and likewise descend into dips.

    The true peak may be higher than its highest grid point by about as much as that is above its neighbours.

    Returns:
        All values known by then, and points whose sign differs from that of the peak or dip on the coarse grid, (n, 2).
    """
    side = np.arange(coarse + 1)
    points = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1)
    values = known.at(points * stride)
    values = np.where(np.isfinite(values), values, np.nan)
    found = [np.zeros((0, 2), np.int64)]
    for upward in (1, -1):
        known, islands = _climb(known, values_at, upward, _peaks(upward * values), coarse, stride, max_evaluations)
        found.append(islands)
    return known, np.concatenate(found)


def _peaks(values: np.ndarray) -> np.ndarray:
    """Points of a grid that are at most 0, no lower than their neighbours, and near enough to 0; (n, 2)."""
    padded = np.pad(values, 1, constant_values=np.nan)
    neighbours = np.stack([np.roll(padded, tuple(step), (0, 1))[1:-1, 1:-1] for step in AROUND if step.any()])
    higher = np.nan_to_num(neighbours, nan=-np.inf).max(axis=0)
    across = np.stack([np.roll(padded, step, axis)[1:-1, 1:-1] for axis in (0, 1) for step in (-1, 1)])
    drops = (values - across).reshape(2, 2, *values.shape)  # axis, side
    rise = np.nan_to_num(drops, nan=-np.inf).max(axis=1).clip(0).sum(axis=0)
    places = np.argwhere((values <= 0) & (values >= higher) & (values + rise > 0))
    return places[np.argsort(-values[tuple(places.T)])][:MOST]


def _climb(
    known: Known,
    values_at: Values,
    upward: int,
    peaks: np.ndarray,
    coarse: int,
    stride: tuple[int, int],
    max_evaluations: int,
) -> tuple[Known, np.ndarray]:
    """From each peak to the highest point around it, in steps that halve, until one is above 0."""
    ends = np.array(stride) * coarse
    at, steps = peaks * stride, np.array(stride)
    found: list[np.ndarray] = [np.zeros((0, 2), np.int64)]
    while len(at) and steps.max() > 1:
        steps = np.maximum(steps // 2, 1)
        around = np.clip(at[:, None, :] + AROUND * steps, 0, ends)  # (peaks, 9, 2)
        new = known.missing(around)
        if len(known.keys) + len(new) > max_evaluations:
            break
        known = known.extended(new, values_at)
        heights = np.nan_to_num(upward * known.at(around), nan=-np.inf)
        at = around[np.arange(len(at)), heights.argmax(axis=1)]
        above = heights.max(axis=1) > 0
        found.append(at[above])
        at = at[~above]
    return known, np.unique(np.concatenate(found), axis=0)
