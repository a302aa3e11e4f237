"""A law that repeats: exact products of steps over whole turns."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax.numerics import orthonormal as gram_schmidt
from resonance_jax.numerics.estimate import Estimate, exact
from resonance_jax.numerics.products import LinearMap, largest_rate, over_turns, turns
from resonance_jax.shifts.inputs import Inputs
from resonance_jax.shifts.laws.base import Averaging

NUM_PHASES = 256  # of `visited`


class Periodic(NamedTuple):
    """Inputs that are a function of the phase.

    Fields:
        period: (), in steps; inf where nothing moves.
        profile: phase in [0, 1) -> `Inputs`, the mean as coordinates along the rows of `basis`.
        basis: (r, dim), orthonormal rows; the mean is the sum of its coordinates times these. None: coordinates are
            the entries of the mean.
        random: whether the basis is that of one run, drawn from its key. Theory then holds for isotropic inputs alone.

    >>> import resonance_jax as rj
    >>> law = rj.shifts.sinusoid(0.125).law
    >>> float(law.period), law.inputs(jnp.array(0.25)).mean.tolist()
    (8.0, [0.5])
    """

    period: Array
    profile: Callable[[Array], Inputs]
    basis: Array | None = None
    random: bool = False

    isotropic = False
    longest_cycle = None

    def inputs(self, phase: Array) -> Inputs:
        """With all entries of the mean, (dim,)."""
        return self.whole(self.profile(phase))

    def whole(self, inputs: Inputs) -> Inputs:
        """All entries of the mean, from its coordinates along the basis."""
        if self.basis is None:
            return inputs
        return inputs._replace(mean=jnp.sum(inputs.mean[:, None] * self.basis, axis=0))

    @property
    def num_coordinates(self) -> int | None:
        return None if self.basis is None else self.basis.shape[0]

    def growth(self, shift: Any, linear: LinearMap, averaging: Averaging) -> Estimate:
        """log rho of the product over a period, or over a few where it is not a whole number of steps."""
        matrix = over_turns(linear, self.period, self.profile)
        return exact(largest_rate(matrix, linear, turns(self.period)[1].astype(linear.dim.dtype)))

    def visited(self, shift: Any, *, every_phase: bool = False) -> Inputs:
        """Of a period; at f = 1/2 a sine is always 0 where a step meets it."""
        dtype, period = jnp.result_type(float), float(self.period)
        steps = np.floor(np.linspace(0, max(NUM_PHASES, min(period, 2.0**20)), NUM_PHASES, endpoint=False))
        phases = np.arange(NUM_PHASES) / NUM_PHASES if every_phase else steps / period % 1
        return jax.vmap(self.inputs)(jnp.asarray(phases, dtype))

    @property
    def cycle(self) -> Array:
        return self.period

    def __repr__(self) -> str:
        return f"Periodic(period={self.period})"


def orthonormal(directions: Array) -> tuple[Array, Array]:
    """Orthonormal rows (r, dim) that span what `directions` span, and the matrix that turns coordinates into theirs."""
    basis = gram_schmidt.orthonormal(directions.T)[0].T
    return basis, jnp.matmul(basis, directions.T, precision="highest")
