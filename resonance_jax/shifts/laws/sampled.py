"""Any other law: known by its draws alone, so that growth is estimated along simulated paths of the inputs."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax import checks
from resonance_jax.fused import fused
from resonance_jax.numerics import entrywise, logscale
from resonance_jax.numerics.estimate import Estimate
from resonance_jax.numerics.logscale import Scaled
from resonance_jax.numerics.products import BLOCK, LinearMap, along
from resonance_jax.shifts.inputs import Inputs
from resonance_jax.shifts.laws.base import Averaging, drawn

CHUNK = 200  # steps whose inputs are drawn together
BURN_IN = 10  # the first tenth of a path is left out


class Sampled(NamedTuple):
    """No law but the draws of the shift itself.

    >>> import resonance_jax as rj
    >>> rj.shifts.ar2(0.05).law
    Sampled()
    """

    num_coordinates = None
    isotropic = False
    random = False
    cycle = None
    longest_cycle = None

    def growth(self, shift: Any, linear: LinearMap, averaging: Averaging) -> Estimate:
        """Growth of log ||entries||, mean over paths of the shift and over their steps but the first tenth.

        The standard error is that of the mean over paths: infinite for a single one.
        """
        path_steps, num_paths = averaging.path_steps, averaging.num_paths
        checks.at_least_one("path_steps", path_steps, "it is the length of a path")
        checks.at_least_one("num_paths", num_paths, "the rate is a mean over paths")
        num_chunks = -(-path_steps // CHUNK)
        skipped = -(-num_chunks // BURN_IN) if num_chunks > 1 else 0
        live = jnp.ones((CHUNK // BLOCK,), jnp.int32)
        advance = fused(functools.partial(along, linear.step))
        start = Scaled(entrywise.vector(linear.exists * linear.start), jnp.int32(0))

        def path(key: Array) -> Array:
            _, start_key, shift_key, _ = jax.random.split(key, 4)  # as a run does: the inputs of a run with this key

            def chunk(j: Array, carry: tuple[Scaled, Any, Array]) -> tuple[Scaled, Any, Array]:
                state, shift_state, mark = carry
                mark = jnp.where(j == skipped, logscale.log_norm(state), mark)
                k = j * CHUNK + jnp.arange(CHUNK, dtype=jnp.int32)
                inputs, shift_state = shift.inputs(shift_key, k, shift_state)
                inputs = jax.vmap(linear.coordinates)(inputs)
                blocks = jax.tree.map(lambda leaf: leaf.reshape(-1, BLOCK, *leaf.shape[1:]), inputs)
                return advance(state, blocks, live), shift_state, mark

            carry = (start, shift.init(start_key), jnp.zeros((), linear.start.dtype))
            state, _, mark = jax.lax.fori_loop(0, num_chunks, chunk, carry)
            return (logscale.log_norm(state) - mark) / (linear.order * (num_chunks - skipped) * CHUNK)

        key = jax.random.key(0) if averaging.key is None else averaging.key
        keys = key[None] if num_paths == 1 else jax.random.split(key, num_paths)
        rates = jax.vmap(path)(keys)
        if num_paths == 1:
            return Estimate(rates[0], jnp.full_like(rates[0], jnp.inf))
        return Estimate(jnp.mean(rates), jnp.std(rates, ddof=1) / np.sqrt(num_paths))

    def whole(self, inputs: Inputs) -> Inputs:
        return inputs

    def visited(self, shift: Any, *, every_phase: bool = False) -> Inputs:
        return drawn(shift)

    def __repr__(self) -> str:
        return "Sampled()"
