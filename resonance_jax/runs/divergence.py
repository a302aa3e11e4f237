"""When a run counts as diverged: relative to its start, not to the range of floats."""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks

# Above every transient of a stable run, by brute force: of 2,506 runs of SGDm under a sinusoid, a square wave and a
# switching mean that ended closer to theta* than they began (mu from 0.9 to 0.999, eta from 0.001 to 0.1, 1 to 20
# samples, with and without observation noise, 20,000 steps), the farthest at any step was 744 times the start, and 227
# times every 500 steps. AR(2) has no bound on its mean: there a run may pass 1e27, which is divergence to anyone who
# trains, and yet return.
DIVERGED_ABOVE = 1e3


def check(diverged_above: ArrayLike) -> None:
    checks.between("diverged_above", diverged_above, 1, jnp.inf, "a run has diverged where it grew", open_low=True)


def reference(start: Array, zero: Array) -> Array:
    """The error that later ones are held against.

    A run may start close to the optimum, or on it. Observation noise then drives it away, to an error that is many
    times that of the start and harmless. So parameters that are all 0, no model at all, set the scale as well.

    Args:
        start: error at the start.
        zero: error of parameters that are all 0.

    Returns:
        The larger of the two; 1 where neither is a positive number.
    """
    return positive(jnp.maximum(positive(start, 0), positive(zero, 0)), 1)


def positive(error: Array, otherwise: ArrayLike) -> Array:
    """The error; another number where it is 0, infinite or NaN."""
    return jnp.where((error > 0) & jnp.isfinite(error), error, jnp.asarray(otherwise, error.dtype))


def says_diverged(name: str, output: np.ndarray) -> np.ndarray:
    """Where an output of a point says that its run diverged: `diverged` where it is True, `diverged_at` from 0 on.

    `oscillate` returns the one and `train` the other; a point of your own may return either.

    >>> says_diverged("diverged_at", np.array([-1, 0, 7])).tolist()
    [False, True, True]
    """
    if name == "diverged_at":
        return output >= 0
    if name == "diverged":
        return output.astype(bool)
    return np.zeros(output.shape, bool)
