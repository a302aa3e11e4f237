"""What a shift is: mean and variance of the inputs as a sequence over steps."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jax import Array
from jax.typing import ArrayLike

from resonance_jax.shifts.inputs import Inputs
from resonance_jax.shifts.laws.base import Law
from resonance_jax.shifts.laws.sampled import Sampled


class Shift(NamedTuple):
    """What the inputs do over time, made by one of the factories of `resonance_jax.shifts`.

    A run calls `init` once and `inputs` for consecutive blocks of steps. Theory asks the `law`.

    Fields:
        init: key -> state. A shift without memory carries `()`.
        inputs: key, steps k (block,), state -> `Inputs` of these steps, mean (block, dim) and variance (block,); state.
            A mean of shape (block, 1) moves every input of the problem alike.
        law: how the sequence is distributed: `Periodic`, `Redrawn`, or `Sampled` for everything else.
        stationary: key, state -> `Inputs` of a random step. Test sets are drawn from it; `explain` and
            `largest_safe_momentum` learn from it how far the inputs go.
        iid_variance: what the iid baseline, whose mean is 0, adds to the variance of the inputs.
        label: what `repr` shows.

    >>> import jax.numpy as jnp
    >>> def jumping(T):  # the mean jumps between -1 and 1 every T steps
    ...     def inputs(key, k, state):
    ...         mean = jnp.where(k // T % 2 == 0, -1.0, 1.0)
    ...         return Inputs(mean[:, None], jnp.zeros(k.shape)), state
    ...     return Shift(init=lambda key: (), inputs=inputs, label=f"jumping({T})")
    >>> jumping(2)
    jumping(2)
    >>> jumping(2).inputs(None, jnp.arange(5), ())[0].mean[:, 0].tolist()
    [-1.0, -1.0, 1.0, 1.0, -1.0]
    """

    init: Callable[[Array], Any]
    inputs: Callable[[Array, Array, Any], tuple[Inputs, Any]]
    law: Law = Sampled()
    stationary: Callable[[Array, Any], Inputs] | None = None
    iid_variance: ArrayLike = 0.0
    label: str = ""

    def __repr__(self) -> str:
        return self.label or f"Shift(law={self.law!r})"
