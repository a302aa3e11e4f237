"""Shared by all sweep files: scales, the four parts of a file made by a factory, and numbers in words."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from resonance_jax import Claim

SCALES = ("tiny", "quick", "paper")

Point = Callable[..., dict[str, jax.Array]]
Axes = dict[str, np.ndarray]
Claims = Callable[[xr.Dataset], list[Claim]]


class Sweep(NamedTuple):
    """The four names that a sweep file defines."""

    point: Point
    axes: Callable[[str], Axes]  # of a scale
    figure: Callable[[xr.Dataset], Figure]
    claims: Claims


def pick(scale: str, **sizes: dict[str, int]) -> dict[str, int]:
    """The sizes of one scale."""
    if scale not in sizes:
        raise ValueError(f"scale must be one of {', '.join(sizes)}, got {scale!r}; pick one of them")
    return sizes[scale]


def each(values: Iterable[Any], form: str, name: str, at: Iterable[Any]) -> str:
    """Values and what they belong to: `0.1, 0.2 at eta = 0.01, 0.005`."""
    return f"{', '.join(f'{value:{form}}' for value in values)} at {name} = {', '.join(f'{float(a):g}' for a in at)}"
