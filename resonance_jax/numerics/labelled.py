"""An array whose dimensions have names and coordinates, for outputs of a point such as the curve of a run."""

import dataclasses
import functools
from typing import Any

import jax
import numpy as np

Coordinate = tuple[float, ...]


@functools.partial(jax.tree_util.register_dataclass, data_fields=["values"], meta_fields=["dims", "coords"])
@dataclasses.dataclass(frozen=True)
class Labelled:
    """Values over named dimensions. `rj.sweep` returns them as a variable with these dimensions and coordinates.

    Names and coordinates are static, so that it passes through `jit` and `vmap`. `np.asarray` gives the values.

    Fields:
        values: array with an axis for each name; `vmap` adds axes in front of these.
        dims: name of each dimension.
        coords: numbers along each dimension.

    >>> import resonance_jax as rj
    >>> def point(a):
    ...     return {"line": Labelled(a * jax.numpy.arange(3.0), ("step",), ((10, 20, 30),))}
    >>> rj.sweep(point, {"a": [1.0, 2.0]}).line.sel(a=2.0, step=30).item()
    4.0
    """

    values: Any
    dims: tuple[str, ...]
    coords: tuple[Coordinate, ...]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype, copy=copy)
