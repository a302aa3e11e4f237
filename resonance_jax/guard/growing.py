"""Do the sizes of gradients grow? A running answer, from a few averages of one number a step.

Two means are compared: of the whole run, and of its last part. Exponential growth at any rate pulls them apart, noise
by no more than its standard error. The last part is an eighth of the run, and later on the memory of momentum,
1 / (1 - momentum) steps; numbers of steps are fixed only where they make a mean.

Sizes are averaged, not their squares: single large gradients weigh less.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

FEWEST = 4  # sizes in the recent mean; no answer comes before there were twice as many
ENOUGH = 32  # sizes in the recent mean, once the run is long, even where momentum forgets faster
SHARE = 8  # the recent mean covers at most 1 / 8 of the run: then it is at most 8 times the mean of the run
HALF_MORE = 1.5  # times the mean of the run: below, the recent mean is not called larger, however little noise there is
ERRORS = 5.0  # of the recent mean, by which it must exceed that: in mean deviations; 4 standard errors of normal noise
SURELY = 2.5  # times the mean of the run: above, it is larger, however much noise there is


class Sizes(NamedTuple):
    """What is kept of the sizes so far."""

    steps: Array  # (), int32
    usual: Array  # mean of the run
    spread: Array  # mean distance from it
    recent: Array  # mean of the last part
    lagged: Array  # mean of `recent` over the same part


def none_yet(dtype: Any) -> Sizes:
    return Sizes(jnp.zeros((), jnp.int32), *(jnp.zeros((), dtype) for _ in range(4)))  # buffers of their own: donatable


def size_of(tree: Any, dtype: Any) -> Array:
    """Euclidean norm of all leaves together."""
    squares = [jnp.sum(jnp.square(jnp.abs(leaf).astype(dtype))) for leaf in jax.tree.leaves(tree)]
    return jnp.sqrt(sum(squares, start=jnp.zeros((), dtype)))


def remembered(sizes: Sizes, horizon: int | None) -> Array:
    """Steps that the mean of the run covers."""
    steps = sizes.steps if horizon is None else jnp.minimum(sizes.steps, horizon)
    return steps.astype(sizes.usual.dtype)


def recent_share(sizes: Sizes, damping: Array, horizon: int | None) -> Array:
    """Weight of the last size in the recent mean: 1 / (the steps that it covers)."""
    steps = jnp.maximum(remembered(sizes, horizon), 1)
    late = jnp.minimum(damping, 1 / ENOUGH)
    return jnp.maximum(jnp.minimum(jnp.maximum(late, SHARE / steps), 1 / FEWEST), 1 / steps)


def add(sizes: Sizes, size: Array, damping: Array, horizon: int | None) -> Sizes:
    """One more size. A size that is not finite is left out: the averages stay finite.

    Args:
        sizes: so far.
        size: of the gradient of this step.
        damping: 1 - the momentum that was asked for; the recent mean covers its inverse, once the run is long.
        horizon: no mean covers more steps.
    """
    counted = sizes._replace(steps=optax.safe_increment(sizes.steps))
    one = 1 / remembered(counted, horizon)
    share = recent_share(counted, damping, horizon)
    usual = sizes.usual + one * (size - sizes.usual)
    recent = sizes.recent + share * (size - sizes.recent)
    more = Sizes(
        counted.steps,
        usual,
        sizes.spread + one * (jnp.abs(size - usual) - sizes.spread),
        recent,
        sizes.lagged + share * (recent - sizes.lagged),
    )
    return jax.tree.map(lambda new, old: jnp.where(jnp.isfinite(size), new, old), more, sizes)


def level(sizes: Sizes, damping: Array, horizon: int | None) -> Array:
    """The recent mean in units of the largest that the run so far explains: above 1, sizes grow."""
    share = recent_share(sizes, damping, horizon)
    noise = ERRORS * jnp.sqrt(share / 2) * sizes.spread
    most = jnp.minimum(HALF_MORE * sizes.usual + noise, SURELY * sizes.usual)
    enough = (sizes.steps > 2 * FEWEST) & (most > 0)
    return jnp.where(enough, sizes.recent / jnp.where(enough, most, 1), 0)


def rate(sizes: Sizes, damping: Array, horizon: int | None) -> Array:
    """Growth of the sizes per step, over the recent part; 0 where they do not grow.

    Sizes that grow as exp(rate * k), for a rate well below 1, have recent / lagged = 1 + rate / share.
    """
    lagged = jnp.where(sizes.lagged > 0, sizes.lagged, 1)
    risen = jnp.where(sizes.lagged > 0, sizes.recent / lagged - 1, 0)
    return recent_share(sizes, damping, horizon) * jnp.maximum(risen, 0)
