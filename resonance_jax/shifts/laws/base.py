"""What theory asks of a law."""

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array

from resonance_jax.numerics.estimate import Estimate
from resonance_jax.numerics.products import LinearMap
from resonance_jax.shifts.inputs import Inputs


class Averaging(NamedTuple):
    """How a law averages where no closed form is at hand; each law reads what it needs."""

    nodes: int = 64  # of a quadrature over means; above the longest interval T that it covers
    key: Array | None = None  # of what is drawn; None: a fixed one
    path_steps: int = 20_000  # length of a simulated path of the inputs
    num_paths: int = 4


class Law(Protocol):
    """The law of a shift. A new one is one file with these; no other file knows which laws there are.

    A law may describe means by fewer coordinates than they have entries, so that theory tracks fewer weights.
    """

    @property
    def num_coordinates(self) -> int | None:
        """Coordinates of a mean in isotropic inputs; None: its entries."""
        ...

    def whole(self, inputs: Inputs) -> Inputs:
        """All entries of the mean, from its coordinates."""
        ...

    @property
    def isotropic(self) -> bool:
        """Whether the mean is drawn on the way, with all directions equally likely."""
        ...

    @property
    def random(self) -> bool:
        """Whether each run has a basis of its own."""
        ...

    def growth(self, shift: Any, linear: LinearMap, averaging: Averaging) -> Estimate:
        """Growth per step of log ||entries|| under the map, over all that the law may do."""
        ...

    def visited(self, shift: Any, *, every_phase: bool = False) -> Inputs:
        """Some hundred `Inputs` that steps meet, (n, dim) and (n,); `every_phase`: also those between two steps."""
        ...

    @property
    def cycle(self) -> Array | None:
        """Steps until it repeats or begins anew, inf where nothing moves; None: it has no such time."""
        ...

    @property
    def longest_cycle(self) -> int | None:
        """The longest cycle, of whole steps, that `growth` covers by default; None: it covers every one."""
        ...


def drawn(shift: Any, number: int = 256) -> Inputs:
    """`Inputs` of random steps, for laws that list none."""
    if shift.stationary is None:
        raise ValueError(
            "the shift has neither a period nor a stationary law, so nothing tells how far its inputs go; give the "
            "Shift a stationary(key, state) -> Inputs"
        )
    state_key, *keys = jax.random.split(jax.random.key(0), number + 1)
    state, stationary = shift.init(state_key), shift.stationary
    return jax.vmap(lambda key: stationary(key, state))(jnp.stack(keys))
