"""`python docs/figures/resonance.py`: docs/resonance.webp, two runs of SGD with momentum on inputs that drift.

Both see inputs whose mean swings by the same amount. In one it swings every 30 steps, and the run converges. In the
other it swings every 22 steps, twice as fast as the weights oscillate, and each swing pushes them further out.
"""

import io
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

OUT = Path(__file__).parent.parent / "resonance.webp"
MU, ETA, SAMPLES, STEPS, EVERY = 0.985, 0.01, 20, 301, 4
PERIODS = {30: ("#2a6f97", "converges"), 22: ("#c1121f", "resonates")}


def run(period: int) -> np.ndarray:
    """Error of slope and bias before each step, (STEPS, 2)."""
    rng, error, velocity, errors = np.random.default_rng(0), np.array([0.8, 0.6]), np.zeros(2), []
    for k in range(STEPS):
        errors.append(error)
        x = np.stack([0.5 * np.sin(2 * np.pi * k / period) + rng.normal(size=SAMPLES), np.ones(SAMPLES)], axis=1)
        velocity = MU * velocity - ETA * 2 * x.T @ (x @ error) / SAMPLES
        error = error + velocity
    return np.array(errors)


def frame(runs: dict[int, np.ndarray], k: int) -> Image.Image:
    """The picture after k steps: the drifting inputs, both errors in the plane of the weights, and their length."""
    figure = plt.figure(figsize=(9.6, 4.3), dpi=100)
    grid = figure.add_gridspec(2, 3, height_ratios=(1, 4), width_ratios=(1, 1, 1.25), hspace=0.12, wspace=0.3)
    figure.subplots_adjust(left=0.065, right=0.985, top=0.9, bottom=0.12)
    x = np.linspace(-3.6, 3.6, 160)
    for column, (period, errors) in enumerate(runs.items()):
        colour, verdict = PERIODS[period]
        mean = 0.5 * np.sin(2 * np.pi * k / period)
        top = figure.add_subplot(grid[0, column])
        top.fill_between(x, np.exp(-((x - mean) ** 2) / 2), color=colour, alpha=0.3, linewidth=0)
        top.axvline(mean, color=colour, linewidth=1.5)
        top.set(xlim=(-3.6, 3.6), ylim=(0, 1.05), xticks=[], yticks=[])
        top.set_title(f"inputs swing every {period} steps: {verdict}", fontsize=8.5, color=colour)
        plane = figure.add_subplot(grid[1, column])
        trail = errors[: k + 1]
        plane.plot(*trail.T, color=colour, linewidth=0.8, alpha=0.35)
        plane.plot(*trail[-25:].T, color=colour, linewidth=1.6)
        plane.plot(*trail[-1], "o", color=colour, markersize=6)
        plane.plot(0, 0, "+", color="black", markersize=9)
        reach = 1.05 * np.abs(np.concatenate(list(runs.values()))).max()
        plane.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="error of the slope")
        plane.set_ylabel("error of the bias" if column == 0 else "")
        plane.set(xticks=(-10, -5, 0, 5, 10), yticks=(-10, -5, 0, 5, 10))
        plane.tick_params(labelsize=8)
    lengths = figure.add_subplot(grid[:, 2])
    for period, errors in runs.items():
        lengths.semilogy(np.linalg.norm(errors[: k + 1], axis=1), color=PERIODS[period][0], label=f"{period} steps")
    lengths.set(xlim=(0, STEPS), ylim=(2e-2, 30), xlabel="steps", title="distance from the optimum")
    lengths.title.set_size(9)
    lengths.grid(alpha=0.3)
    lengths.tick_params(labelsize=8)
    lengths.legend(loc="upper left", fontsize=8, frameon=False, title="period", title_fontsize=8)
    buffer = io.BytesIO()
    figure.savefig(buffer)
    plt.close(figure)
    return Image.open(buffer).convert("RGB")


if __name__ == "__main__":
    plt.switch_backend("Agg")
    runs = {period: run(period) for period in PERIODS}
    frames = [frame(runs, k) for k in range(0, STEPS, EVERY)]
    durations = [60] * (len(frames) - 1) + [2500]  # milliseconds
    frames[0].save(OUT, save_all=True, append_images=frames[1:], duration=durations, loop=0, quality=50, method=4)
    print(f"{len(frames)} frames, {OUT.stat().st_size / 1e3:.0f} kB in {OUT}")
