"""Shared by the pages on linear optimizers: the five that are compared, and the momentum up to which each is safe."""

from collections.abc import Callable
from typing import Any

import optax

import resonance_jax as rj
from sweeps import _heatmap

AVERAGED = 10  # rate of the average, in step sizes: at mu = 0.9, where (1 - mu) 10 = 1, it is heavy ball at this step
SECOND = 0.9  # share that the second buffer keeps, the usual momentum
DECAY = 0.01  # a usual weight decay

Optimizer = Callable[[Any, Any], optax.GradientTransformation]  # of momentum and step size


def heavy_ball(mu: Any, eta: Any) -> optax.GradientTransformation:
    """SGD with momentum, as in the paper."""
    return optax.sgd(eta, momentum=mu)


def nesterov(mu: Any, eta: Any) -> optax.GradientTransformation:
    """Nesterov's momentum: one step ahead of the buffer."""
    return optax.sgd(eta, momentum=mu, nesterov=True)


def average(mu: Any, eta: Any) -> optax.GradientTransformation:
    """Steps along an average of the gradients, s' = mu s + (1 - mu) g."""
    return optax.chain(optax.ema(mu, debias=False), optax.scale(-AVERAGED * eta))


def two_buffers(mu: Any, eta: Any) -> optax.GradientTransformation:
    """Momentum whose steps are averaged once more."""
    return optax.chain(optax.trace(mu), optax.ema(SECOND, debias=False), optax.scale(-eta))


def weight_decay(mu: Any, eta: Any) -> optax.GradientTransformation:
    """Heavy ball, with weight decay as a part of the gradient."""
    return optax.chain(optax.add_decayed_weights(DECAY), optax.sgd(eta, momentum=mu))


TITLES: dict[Optimizer, str] = {
    heavy_ball: "heavy ball",
    nesterov: "Nesterov's momentum",
    average: "average of gradients",
    two_buffers: "two buffers",
    weight_decay: "heavy ball, weight decay",
}
NAMED: dict[str, Optimizer] = {optimizer.__name__: optimizer for optimizer in TITLES}  # as an axis labels them
# What `safe_momentum` finds at the step size of experiment 1, by the number of samples. A search takes ten seconds,
# so the figure takes them from here; `python -m sweeps._safe_momenta` computes them again, and says if one has changed.
SAFE: dict[Optimizer, dict[int, float]] = {
    heavy_ball: {1: 0.9537, 20: 0.9651},
    nesterov: {1: 0.9746, 20: 0.9859},
    average: {1: 0.9854, 20: 0.9883},
    two_buffers: {1: 0.8600, 20: 0.8691},
    weight_decay: {1: 0.9539, 20: 0.9652},
}


def safe_momentum(optimizer: Optimizer, samples: int, eta: float) -> rj.theory.SafeMomentum:
    """The largest momentum at which the mean square grows at no frequency of the sinusoid of experiment 1."""
    problem = rj.problems.linear_regression(dim=1, samples=samples)
    return rj.theory.largest_safe_momentum(_heatmap.PROCESSES["sinusoid"], problem, eta, optimizer=optimizer)
