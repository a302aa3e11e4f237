"""The paper's growth rate, as a stability chart has it."""

from typing import TYPE_CHECKING, Any

from jax import Array
from jax.typing import ArrayLike

from resonance_jax.problems.linear_regression import linear_regression
from resonance_jax.runs import contracts
from resonance_jax.shifts.base import Shift
from resonance_jax.theory.floquet.expected import periodic_law
from resonance_jax.theory.floquet.mean import mean_growth

if TYPE_CHECKING:
    import optax


def growth_rate(
    shift: Shift,
    *,
    mu: ArrayLike | None = None,
    eta: ArrayLike | None = None,
    optimizer: "optax.GradientTransformation | None" = None,
    input_variance: Any = 1.0,
    loss_factor: ArrayLike = 2.0,
    bias: bool = True,
    discrete: bool | None = None,
    rk4_steps: int | None = None,
) -> Array:
    """log rho / (period in steps): positive where the expected gradient drives the weights away.

    A stability chart is `rj.sweep` of this. It is `mean_growth` of a problem with as many inputs as the shift moves, in
    the paper's time model, and without a standard error, since it has none.

    Args:
        shift, mu, eta, optimizer, input_variance, loss_factor, bias, discrete, rk4_steps: as `monodromy`. With
            `discrete`, periods that are not whole are multiplied out over some turns, as `mean_growth` does.

    Returns:
        Scalar; -inf if one period forgets everything. At f = 0 it is the rate of the iid baseline. Periods above 2^14
        steps are treated as 2^14.
        `jax.jvp` and `jax.jacfwd` differentiate it in mu, eta and the parameters of the shift, but not `discrete` in
        its period; `jax.grad` needs `rk4_steps`. What has no derivative says so with a ValueError.

    >>> import resonance_jax as rj
    >>> rate = rj.theory.growth_rate(rj.shifts.sinusoid(1 / 22), mu=0.99, eta=0.01)
    >>> bool(rate > 0)  # inside the first tongue
    True
    """
    periodic_law(shift)
    problem = linear_regression(
        dim=contracts.num_inputs(shift),
        samples=1,
        input_variance=input_variance,
        loss_factor=loss_factor,
        bias=bias,
    )
    discrete = optimizer is not None if discrete is None else discrete
    found = mean_growth(shift, problem, mu=mu, eta=eta, optimizer=optimizer, discrete=discrete, rk4_steps=rk4_steps)
    return found.rate
