"""Experiments 4 to 6: the mean of the inputs is drawn anew every T steps."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks, naming
from resonance_jax.shifts.base import Shift
from resonance_jax.shifts.inputs import Inputs
from resonance_jax.shifts.laws.redrawn import Redrawn


def switching(T: ArrayLike, *, dim: ArrayLike, variance: ArrayLike, max_dim: int | None = None) -> Shift:
    """Mean  m_k = xi_i  with  i = floor(k / T)  and  xi_i ~ N(0, variance I)  independent.

    Args:
        T: steps between two switches, >= 0. 0 is the iid baseline: a new mean for every *sample*, so that inputs have
            mean 0 and the mean's variance adds to their own; 1 is a new mean for every step.
        dim: number of inputs.
        variance: of each entry of a mean.
        max_dim: largest value that `dim` takes where it is an axis of a sweep; means are 0 beyond the actual one.

    Returns:
        A shift without memory: the i-th mean follows from the key and i.

    >>> shift = switching(2, dim=3, variance=0.5)
    >>> inputs, _ = shift.inputs(jax.random.key(0), jnp.arange(4), ())
    >>> (inputs.mean[0] == inputs.mean[1]).tolist(), (inputs.mean[1] == inputs.mean[2]).tolist()
    ([True, True, True], [False, False, False])
    """
    checks.between("T", T, 0, jnp.inf, "give the steps between two switches; 0 is the iid baseline")
    checks.between("variance", variance, 0, jnp.inf, "give a variance")
    num_inputs, mask = checks.count("dim", dim, max_dim, "count the inputs without the bias")
    dtype = jnp.result_type(float)
    interval, variance = jnp.asarray(T, dtype), jnp.asarray(variance, dtype)
    moving = interval > 0
    safe = jnp.where(moving, interval, 1)
    scale = jnp.where(moving, jnp.sqrt(variance), 0)
    added = jnp.where(moving, 0, variance)

    def xi(key: Array) -> Array:
        return scale * checks.masked(jax.random.normal(key, (num_inputs,), dtype), mask)

    def inputs(key: Array, k: Array, state: tuple[()]) -> tuple[Inputs, tuple[()]]:
        switches = jnp.floor(k.astype(dtype) / safe).astype(jnp.int32)
        means = jax.vmap(lambda i: xi(jax.random.fold_in(key, i)))(switches)
        return Inputs(means, jnp.broadcast_to(added, k.shape)), state

    return Shift(
        init=lambda key: (),
        inputs=inputs,
        law=Redrawn(interval, variance),
        stationary=lambda key, state: Inputs(xi(key), added),
        iid_variance=variance,
        label=naming.call("switching", T=T, dim=dim, variance=variance),
    )
