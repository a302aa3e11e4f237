"""An optimizer that is linear in the gradient and treats all weights alike: a few numbers.

    s_j' = sum of the old and new buffers, the gradient g and the weight, each times a number,
    theta' = the same

for one weight theta and its buffers s. SGD with momentum is the case of one buffer.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks
from resonance_jax.optimizers.numbers import ONE, ZERO, Number, number, plus, times


class Form(NamedTuple):
    """A linear combination of what one step knows of a weight.

    >>> form = heavy_ball(mu=0.75, eta=0.25).buffers[0]  # v' = mu v - eta g
    >>> float(form.gradient.value), [float(each.value) for each in form.old]
    (-0.25, [0.75])
    """

    gradient: Number  # of the step
    weight: Number  # before the step
    old: tuple[Number, ...]  # buffers before the step
    new: tuple[Number, ...] = ()  # buffers after the step that are computed before this; as many as there are by then


class LinearOptimizer(NamedTuple):
    """Buffers and weight after a step, in the order in which they are computed; all buffers start at 0.

    >>> len(heavy_ball(mu=0.9, eta=0.1).buffers)  # the velocity
    1
    """

    buffers: tuple[Form, ...]
    weight: Form

    def rows(self) -> list[tuple[Number, Number, tuple[Number, ...]]]:
        """(gradient, weight, old buffers) of the weight and of each buffer after a step, new buffers written out."""
        done: list[tuple[Number, Number, tuple[Number, ...]]] = []
        for form in (*self.buffers, self.weight):
            gradient, weight, old = form.gradient, form.weight, form.old
            for factor, (g, w, o) in zip(form.new, done, strict=False):
                gradient, weight = plus(gradient, times(factor, g)), plus(weight, times(factor, w))
                old = tuple(plus(a, times(factor, b)) for a, b in zip(old, o, strict=True))
            done.append((gradient, weight, old))
        return [done[-1], *done[:-1]]

    def one_step(self, B: Array) -> Array:
        """The matrix of a step on (theta - theta*, s_1, s_2, ...) where the gradient is B (theta - theta*).

        Args:
            B: (n, n).

        Returns:
            (n (1 + buffers), n (1 + buffers)).

        >>> heavy_ball(0.75, 0.25).one_step(jnp.array([[2.0]])).tolist()
        [[0.5, 0.75], [-0.5, 0.75]]
        """
        identity = jnp.eye(len(B), dtype=B.dtype)

        def block(coefficient: Number) -> Array:
            return jnp.asarray(coefficient.value, B.dtype) * identity

        return jnp.block(
            [
                [jnp.asarray(gradient.value, B.dtype) * B + block(weight), *map(block, old)]
                for gradient, weight, old in self.rows()
            ]
        )


def heavy_ball(mu: ArrayLike, eta: ArrayLike) -> LinearOptimizer:
    """SGD with momentum:  v' = mu v - eta g,  theta' = theta + v'.

    Args:
        mu: momentum, in [0, 1].
        eta: step size, > 0.

    >>> heavy_ball(mu=0.75, eta=0.25).one_step(jnp.array([[2.0]])).tolist()  # on (theta - theta*, v)
    [[0.5, 0.75], [-0.5, 0.75]]
    """
    momentum, gradient = _checked(mu, eta)
    return LinearOptimizer((Form(gradient, ZERO, (momentum,)),), Form(ZERO, ONE, (ZERO,), (ONE,)))


def nesterov(mu: ArrayLike, eta: ArrayLike) -> LinearOptimizer:
    """Nesterov's momentum, as optax has it:  v' = mu v - eta g,  theta' = theta + mu v' - eta g.

    Args:
        mu, eta: as of `heavy_ball`.

    >>> nesterov(mu=0.5, eta=0.25).one_step(jnp.array([[2.0]])).tolist()
    [[0.25, 0.25], [-0.5, 0.5]]
    """
    momentum, gradient = _checked(mu, eta)
    return LinearOptimizer((Form(gradient, ZERO, (momentum,)),), Form(gradient, ONE, (ZERO,), (momentum,)))


def _checked(mu: ArrayLike, eta: ArrayLike) -> tuple[Number, Number]:
    """Momentum, and what a gradient adds to a weight."""
    checks.between("mu", mu, 0, 1, "momentum is the share of the velocity that is kept")
    checks.between("eta", eta, 0, jnp.inf, "give a positive step size", open_low=True)
    dtype = jnp.result_type(float)
    return number(jnp.asarray(mu, dtype)), number(-jnp.asarray(eta, dtype))
