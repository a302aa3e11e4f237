"""The first heatmap in PyTorch: batched tensors over the grid, an eager loop over the steps or a CUDA graph of ten."""

from collections.abc import Callable
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from benchmarks import _torch
from benchmarks._heatmap_setting import AMPLITUDE, SAMPLES, TAIL, advance
from benchmarks._measure import Axes

GRAPH_STEPS = 10


class Grid:
    """The axes as tensors that broadcast to (f, seed, mu)."""

    def __init__(self, axes: Axes, device: str) -> None:
        self.device = device
        self.shape = tuple(len(axes[name]) for name in ("f", "seed", "mu"))
        f, self.mu = (torch.tensor(axes[name], dtype=torch.float32, device=device) for name in ("f", "mu"))
        self.f = f[:, None, None]

    def start(self) -> tuple[Any, ...]:
        """Errors of both weights, drawn per seed, and their velocities."""
        weights = torch.rand(2, 2, self.shape[1], 1, device=self.device) * 2 - 1
        slope, offset = (error.expand(self.shape) for error in weights[0] - weights[1])
        zeros = torch.zeros(self.shape, device=self.device)
        return slope, offset, zeros, zeros

    def step(self, state: tuple[Any, ...], k: Any) -> tuple[Any, ...]:
        z = torch.randn(self.shape[1], SAMPLES, device=self.device)
        return advance(state, self.mu, AMPLITUDE * torch.sin(2 * torch.pi * self.f * k), z)


def log10_mean(total: Any) -> Any:
    return torch.log10(total / TAIL).cpu().numpy()


def eager(axes: Axes, num_steps: int) -> Callable[[], Any]:
    grid = Grid(axes, _torch.device())

    def call() -> Any:
        state, total = grid.start(), torch.zeros(grid.shape, device=grid.device)
        for k in range(num_steps):
            state = grid.step(state, k)
            if k >= num_steps - TAIL:
                total = total + torch.hypot(*state[:2])
        return log10_mean(total)

    return call


class Buffers:
    """State at fixed addresses, which a graph reads and writes; the step counter is on the device too."""

    def __init__(self, grid: Grid, num_steps: int) -> None:
        self.grid = grid
        self.first_of_tail = num_steps - TAIL
        self.state = tuple(part.clone() for part in grid.start())
        self.total = torch.zeros(grid.shape, device=grid.device)
        self.k = torch.zeros((), device=grid.device)
        self.zero = torch.zeros((), device=grid.device)  # a plain 0 would be copied from the host, which no graph may

    def restart(self) -> None:
        for buffer, value in zip(self.state, self.grid.start(), strict=True):
            buffer.copy_(value)
        self.total.zero_()
        self.k.zero_()

    def advance(self) -> None:
        """Ten steps, with the distance added where the counter has reached the tail."""
        state = self.state
        for _ in range(GRAPH_STEPS):
            state = self.grid.step(state, self.k)
            distance = torch.hypot(*state[:2])
            self.total += torch.where(self.k >= self.first_of_tail, distance, self.zero)
            self.k += 1
        for buffer, value in zip(self.state, state, strict=True):
            buffer.copy_(value)


def graph(axes: Axes, num_steps: int) -> Callable[[], Any]:
    if num_steps % GRAPH_STEPS:
        raise ValueError(f"num_steps must be a multiple of {GRAPH_STEPS}, got {num_steps}; give whole graphs")
    buffers = Buffers(Grid(axes, _torch.device()), num_steps)
    side = torch.cuda.Stream()  # kernels are loaded on another stream before the capture, as PyTorch asks
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            buffers.advance()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):  # randn draws from the default generator, which moves on with every replay
        buffers.advance()

    def call() -> Any:
        buffers.restart()
        for _ in range(num_steps // GRAPH_STEPS):
            captured.replay()
        return log10_mean(buffers.total)

    return call
