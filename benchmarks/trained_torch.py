"""Experiments 5 and 6 in PyTorch: `vmap(grad(loss))` over all runs, an eager loop over the steps.

Lanes are the cells (seed, T, curve) in this order, flattened. Noise is drawn per seed, the moving mean per seed and
step: the law of `rj.train`, with other numbers.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]
from torch.func import grad, vmap  # pyright: ignore[reportMissingImports]

from benchmarks import _torch
from sweeps import _response

INPUT_VARIANCE = NOISE_VARIANCE = 0.1  # tables of experiments 5 and 6
NETWORK = (2, 20, 20, 1)
NETWORK_SAMPLES, TEST_SAMPLES = 10, 128


class Lanes:
    """The cells of a sweep over seeds, intervals T and the parameter of the curves."""

    def __init__(self, axes: dict[str, np.ndarray]) -> None:
        self.device = _torch.device()
        self.shape = tuple(len(values) for values in axes.values())
        seed, self.T, self.curve = (
            torch.tensor(grid, dtype=torch.float32, device=self.device).flatten()
            for grid in np.meshgrid(*axes.values(), indexing="ij")
        )
        self.seed = seed.long()

    def normal(self, *shape: int) -> Any:
        """Draws per seed, the same in all lanes of one; (lanes, *shape)."""
        return torch.randn(self.shape[0], *shape, device=self.device)[self.seed]

    def column(self, per_lane: Any) -> Any:
        return torch.as_tensor(per_lane, device=self.device).reshape(-1, 1)


class Inputs:
    """Samples whose mean is drawn anew every T steps; at T = 0 its variance adds to that of the samples."""

    def __init__(self, lanes: Lanes, dim: int, samples: int, variance: Any) -> None:
        self.lanes, self.shape = lanes, (samples, dim)
        self.interval = lanes.column(lanes.T.clamp(min=1))
        moving = lanes.column(lanes.T) > 0
        variance = lanes.column(variance)
        self.mean_scale = torch.where(moving, variance.sqrt(), 0.0)
        self.sample_scale = torch.where(moving, INPUT_VARIANCE, INPUT_VARIANCE + variance).sqrt()[..., None]
        self.mean = torch.zeros_like(self.mean_scale)

    def draw(self, k: int) -> Any:
        """Inputs of step k; (lanes, samples, dim)."""
        drawn = self.mean_scale * self.lanes.normal(self.shape[1])
        self.mean = torch.where(k % self.interval == 0, drawn, self.mean)
        return self.mean[:, None, :] + self.sample_scale * self.lanes.normal(*self.shape)


def adam(axes: dict[str, np.ndarray], *, num_steps: int, tail: int) -> Callable[[], Any]:
    """Experiment 5; gives the mean distance of the last steps, as `rj.sweep` does."""
    lanes = Lanes(axes)
    beta1, beta2, epsilon = lanes.column(lanes.curve), 0.999, 1e-8
    dim = _response.DIM

    def loss(theta: Any, truth: Any, x: Any, noise: Any) -> Any:
        return ((x @ (theta - truth) - noise) ** 2).mean()

    def call() -> Any:
        inputs = Inputs(lanes, dim, 1, torch.ones_like(lanes.T))
        theta, truth = (_response.LINEAR["weight_variance"] ** 0.5 * lanes.normal(dim + 1) for _ in range(2))
        first, second = torch.zeros_like(theta), torch.zeros_like(theta)
        total = torch.zeros_like(lanes.T)
        for k in range(num_steps):
            x = inputs.draw(k)
            x = torch.cat([x, torch.ones_like(x[..., :1])], dim=-1)
            gradient = vmap(grad(loss))(theta, truth, x, NOISE_VARIANCE**0.5 * lanes.normal(1))
            first = beta1 * first + (1 - beta1) * gradient
            second = beta2 * second + (1 - beta2) * gradient**2
            unbiased = first / (1 - beta1 ** (k + 1))
            scale = (second / (1 - beta2 ** (k + 1))).sqrt() + epsilon
            theta = theta - _response.ETA * unbiased / scale
            if k >= num_steps - tail:
                total = total + (theta - truth).norm(dim=-1)
        return (total / tail).reshape(lanes.shape).cpu().numpy()

    return call


def network(axes: dict[str, np.ndarray], *, num_steps: int, tail: int) -> Callable[[], Any]:
    """Experiment 6; gives the mean test loss of the last steps, as `rj.sweep` does."""
    lanes = Lanes(axes)

    def target(x: Any) -> Any:
        return torch.cos(torch.pi * x.norm(dim=-1))

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        for kernel, bias in parameters[:-1]:
            x = torch.relu(x @ kernel + bias)
        kernel, bias = parameters[-1]
        return (((x @ kernel + bias)[..., 0] - y) ** 2).mean()

    def call() -> Any:
        inputs = Inputs(lanes, NETWORK[0], NETWORK_SAMPLES, lanes.curve)
        parameters = [
            (
                (2 / fan_in) ** 0.5 * lanes.normal(fan_in, width),
                torch.zeros(len(lanes.seed), width, device=lanes.device),
            )
            for fan_in, width in itertools.pairwise(NETWORK)
        ]
        momentum = [tuple(torch.zeros_like(leaf) for leaf in layer) for layer in parameters]
        test_scale = (INPUT_VARIANCE + lanes.column(lanes.curve)).sqrt()[..., None]  # the stationary law of the inputs
        test = test_scale * lanes.normal(TEST_SAMPLES, NETWORK[0])
        total = torch.zeros_like(lanes.T)
        for k in range(num_steps):
            x = inputs.draw(k)
            y = target(x) + NOISE_VARIANCE**0.5 * lanes.normal(NETWORK_SAMPLES)
            gradient = vmap(grad(loss))(parameters, x, y)
            momentum = update(momentum, gradient, lambda m, g: _response.MU * m + g)
            parameters = update(parameters, momentum, lambda p, m: p - _response.ETA * m)
            if k >= num_steps - tail:
                total = total + vmap(loss)(parameters, test, target(test))
        return (total / tail).reshape(lanes.shape).cpu().numpy()

    return call


def update(left: Any, right: Any, rule: Callable[[Any, Any], Any]) -> Any:
    """The rule on each kernel and bias of two networks."""
    return [tuple(map(rule, *layers)) for layers in zip(left, right, strict=True)]
