"""Growth along a simulated path of the mean, for shifts that are neither periodic nor drawn anew."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax import checks
from resonance_jax.fused import fused
from resonance_jax.numerics import entrywise, logscale
from resonance_jax.numerics.logscale import Scaled
from resonance_jax.shifts.base import Shift
from resonance_jax.theory.estimate import Estimate
from resonance_jax.theory.noise.inputs import Inputs
from resonance_jax.theory.noise.products import BLOCK, Step, along

CHUNK = 200  # steps whose means are drawn together
BURN_IN = 10  # the first tenth of a path is left out


def rate_along_paths(
    step: Step, start: Array, inputs: Inputs, shift: Shift, key: Array, *, num_steps: int, num_paths: int
) -> Estimate:
    """Growth of log ||state|| per step, mean over paths of the shift and over their steps but the first tenth.

    The standard error is that of the mean over paths: infinite for a single one.
    """
    checks.at_least_one("num_steps", num_steps, "it is the length of a path")
    checks.at_least_one("num_paths", num_paths, "the rate is a mean over paths")
    num_chunks = -(-num_steps // CHUNK)
    skipped = -(-num_chunks // BURN_IN) if num_chunks > 1 else 0
    live = jnp.ones((CHUNK // BLOCK,), jnp.int32)
    advance = fused(functools.partial(along, step))

    def path(key: Array) -> Array:
        _, start_key, shift_key, _ = jax.random.split(key, 4)  # as a run does: the mean of a run with this key

        def chunk(j: Array, carry: tuple[Scaled, Any, Array]) -> tuple[Scaled, Any, Array]:
            state, shift_state, mark = carry
            mark = jnp.where(j == skipped, logscale.log_norm(state), mark)
            k = j * CHUNK + jnp.arange(CHUNK, dtype=jnp.int32)
            means, shift_state = shift.means(shift_key, k, shift_state)
            m = jax.vmap(inputs.coordinates)(means)
            return advance(state, m.reshape(-1, BLOCK, *m.shape[1:]), live), shift_state, mark

        carry = (Scaled(entrywise.vector(start), jnp.int32(0)), shift.init(start_key), jnp.zeros((), start.dtype))
        state, _, mark = jax.lax.fori_loop(0, num_chunks, chunk, carry)
        return (logscale.log_norm(state) - mark) / ((num_chunks - skipped) * CHUNK)

    keys = key[None] if num_paths == 1 else jax.random.split(key, num_paths)
    rates = jax.vmap(path)(keys)
    if num_paths == 1:
        return Estimate(rates[0], jnp.full_like(rates[0], jnp.inf))
    return Estimate(jnp.mean(rates), jnp.std(rates, ddof=1) / np.sqrt(num_paths))
