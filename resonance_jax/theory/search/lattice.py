"""Values at points of an integer lattice, none evaluated twice. The point (i, j) has the key i * width + j."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Values = Callable[[np.ndarray], np.ndarray]  # lattice points (n, 2) -> rates (n,)


class Known(NamedTuple):
    """Rates that were evaluated, by key."""

    keys: np.ndarray  # (n,), int64, ascending
    values: np.ndarray  # (n,)
    width: int  # lattice points along the second axis

    def at(self, lattice: np.ndarray) -> np.ndarray:
        """Values at lattice points (..., 2)."""
        return self.values[np.searchsorted(self.keys, self.key(lattice))]

    def key(self, lattice: np.ndarray) -> np.ndarray:
        return lattice[..., 0] * self.width + lattice[..., 1]

    def missing(self, lattice: np.ndarray) -> np.ndarray:
        """Keys of the lattice points (..., 2) that were not evaluated."""
        return np.setdiff1d(self.key(lattice), self.keys)

    def place(self, keys: np.ndarray) -> np.ndarray:
        return np.stack(np.divmod(keys, self.width), axis=-1)

    def extended(self, keys: np.ndarray, values_at: Values) -> "Known":
        """Extended by the values at these keys, which must be missing."""
        values = values_at(self.place(keys))
        where = np.searchsorted(self.keys, keys)
        return self._replace(keys=np.insert(self.keys, where, keys), values=np.insert(self.values, where, values))
