"""Growth of the mean of a run, E xi, under any shift."""

from typing import TYPE_CHECKING

from jax import Array
from jax.typing import ArrayLike

from resonance_jax.numerics.estimate import Estimate, exact
from resonance_jax.optimizers.choosing import chosen
from resonance_jax.problems.base import Problem
from resonance_jax.shifts.base import Shift
from resonance_jax.shifts.laws.base import Averaging
from resonance_jax.shifts.laws.periodic import Periodic
from resonance_jax.theory.floquet.continuous import ode_rate
from resonance_jax.theory.floquet.expected import for_ode
from resonance_jax.theory.moments.followed import follow
from resonance_jax.theory.moments.maps import mean_map

if TYPE_CHECKING:
    import optax


def mean_growth(
    shift: Shift,
    problem: Problem,
    *,
    mu: ArrayLike | None = None,
    eta: ArrayLike | None = None,
    optimizer: "optax.GradientTransformation | None" = None,
    discrete: bool = True,
    rk4_steps: int | None = None,
    nodes: int = 64,
    key: Array | None = None,
    path_steps: int = 20_000,
    num_paths: int = 4,
) -> Estimate:
    """Growth of log ||E xi|| per step, xi = (theta - theta*, v): the paper's theory, for every shift.

    The average is over the samples, and over means that the shift draws anew. Along a simulated path of the mean, as of
    AR(2), it is over the samples alone.

    At f = 0 or T = 0 the rate is that of the iid baseline, as in a run. Periods above 2^14 steps are treated as 2^14:
    their rate is close to the limit of ever slower drifts, which is not that of the baseline.

    Args:
        shift: from `resonance_jax.shifts`, or one of your own.
        problem: from `resonance_jax.problems.linear_regression`.
        mu: momentum, in [0, 1].
        eta: step size, > 0.
        optimizer: instead of mu and eta, any optax optimizer that is linear in the gradient; see `rj.optimizers.read`.
        discrete: the exact product of one-step matrices. False takes the paper's ODE for periodic shifts, which is
            close for small step sizes and blind to step sizes that are too large; other shifts are always discrete. The
            ODE is that of heavy-ball momentum, for mu and eta alone.
        rk4_steps: of the ODE, per period; None chooses them.
        nodes: more than the longest interval T of a mean that is drawn anew; at most 128.
        key: of what is drawn, where the law of the shift leaves something to draw; None takes a fixed one. A single
            path is that of a run with this key.
        path_steps, num_paths: length and number of simulated paths.

    Returns:
        An `Estimate`; its standard error is 0 where nothing is drawn.

    Raises:
        ValueError: a shift that does not fit the problem, an interval that is not whole or too long (NaN where traced).

    >>> import jax.numpy as jnp, resonance_jax as rj
    >>> problem = rj.problems.linear_regression(dim=1, samples=1, bias=False)
    >>> rate = mean_growth(rj.shifts.resting(), problem, mu=0.0, eta=0.1).rate  # E (1 - 0.2 x^2) = 0.8
    >>> round(float(jnp.exp(rate)), 4)
    0.8
    """
    linear = chosen(mu, eta, optimizer)
    followed = follow(shift, problem)
    if not discrete and isinstance(shift.law, Periodic):
        return exact(ode_rate(shift.law, followed, *for_ode(mu, eta), rk4_steps))
    averaging = Averaging(nodes, key, path_steps, num_paths)
    return shift.law.growth(shift, mean_map(followed, linear), averaging)
