"""How the mean of a run grows: which Floquet multiplier leaves the unit circle, and where."""

from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from resonance_jax.numerics.products import fastest, over_turns, turns
from resonance_jax.numerics.spectral import leading_angle
from resonance_jax.optimizers.choosing import chosen
from resonance_jax.problems.base import Problem
from resonance_jax.shifts.base import Shift
from resonance_jax.theory.floquet.expected import periodic_law
from resonance_jax.theory.moments.followed import follow
from resonance_jax.theory.moments.maps import mean_map

if TYPE_CHECKING:
    import optax

REAL = 0.05  # radians; a multiplier that is closer to +1 or -1 than this is taken for real


class Crossing(NamedTuple):
    """The multiplier of largest modulus: exp(rate * period) in modulus, at an angle.

    >>> Crossing(rate=jnp.array(0.01), angle=jnp.array(1.2)).kind
    'pair'
    """

    rate: Array  # (), growth of the mean per step
    angle: Array  # (), radians in [0, pi]; NaN where nothing grows, or more than one number or pair does

    @property
    def kind(self) -> str:
        """Where the growing multiplier left the unit circle, in words; for plain numbers.

        "+1": each period multiplies the growing mode by a positive number. "-1": each period turns it around. "pair":
        two modes feed each other and grow together, turning by the angle in each period; this is the first tongue of
        the paper, where slope and bias resonate with each other. "none": nothing grows.
        """
        return kind_of(float(self.rate), float(self.angle))


def kind_of(rate: float, angle: float) -> str:
    """As `Crossing.kind`."""
    if not rate > 0:
        return "none"
    if np.isnan(angle):
        return "unclear"
    return "+1" if angle < REAL else "-1" if angle > np.pi - REAL else "pair"


def crossing(
    shift: Shift,
    problem: Problem,
    *,
    mu: ArrayLike | None = None,
    eta: ArrayLike | None = None,
    optimizer: "optax.GradientTransformation | None" = None,
) -> Crossing:
    """The Floquet multiplier that decides whether the mean of a run grows under a periodic shift.

    Args:
        shift: periodic, with a period of a whole number of steps; otherwise the angle is NaN.
        problem, mu, eta, optimizer: as `mean_growth`.

    Returns:
        A `Crossing`, traceable: over a grid, `rj.sweep` makes a variable of the rate and one of the angle. Its `kind`
        names the instability.

    Raises:
        ValueError: as `mean_growth`; a shift that is not periodic.

    >>> import resonance_jax as rj
    >>> problem = rj.problems.linear_regression(dim=1, samples=20)
    >>> crossing(rj.shifts.sinusoid(1 / 22), problem, mu=0.99, eta=0.01).kind
    'pair'
    """
    law = periodic_law(shift)
    linear = mean_map(follow(shift, problem), chosen(mu, eta, optimizer))
    matrix = over_turns(linear, law.period, law.profile)
    number, steps = turns(law.period)
    logs = jnp.stack([fastest(_part(matrix, part), (tuple(range(len(part))),)) for part in linear.parts])
    angles = jnp.stack([leading_angle(_part(matrix, part)) for part in linear.parts])
    rate = jnp.max(logs) / steps.astype(logs.dtype)
    return Crossing(rate, jnp.where((number == 1) & (rate > 0), angles[jnp.argmax(logs)], jnp.nan))


def _part(matrix: Any, part: tuple[int, ...]) -> Any:
    return matrix._replace(mantissa=matrix.mantissa[jnp.array(part)][:, jnp.array(part)])
