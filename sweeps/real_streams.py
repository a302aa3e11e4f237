"""Beyond the paper, real streams: growth in time order and shuffled over momentum and step size, beside training."""

import functools

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
import xarray as xr
from matplotlib.colors import SymLogNorm
from matplotlib.figure import Figure

import resonance_jax as rj
from resonance_jax import Claim
from resonance_jax.plotting._axes import edges
from resonance_jax.problems import LeastSquares, Recorded
from resonance_jax.theory.recorded.growth import Growth, clock_of, growth_of_run
from resonance_jax.theory.recorded.verdicts import HARMLESS
from sweeps import _streams
from sweeps._agreement import base_rates
from sweeps._shared import pick

NEEDS = ("statsmodels", "vega_datasets", "sklearn", "pmdarima")  # of the extra `examples`
WHERE = "beyond the paper, real streams"
PERMUTATIONS = 4
LEAST = 0.97  # share of the cells, of those that grow or shrink by more than a standard error
TUTORIAL = 0.9  # momentum, the default of most tutorials


@functools.cache
def problem_of(stream: str) -> rj.problems.Problem:
    data = _streams.load(stream)
    return rj.problems.recorded(data.inputs, data.targets, samples=1)


def parts_of(stream: str) -> tuple[LeastSquares, Recorded]:
    linear = problem_of(stream).least_squares
    assert linear is not None
    assert linear.recorded is not None
    return linear, linear.recorded


def largest_step(stream: str) -> float:
    """The step size beyond which no quadratic of the mean curvature converges, whatever the momentum."""
    return 4 / float(np.linalg.eigvalsh(parts_of(stream)[1].curvature)[-1])


def point(stream: str, mu, step):
    """Growth in time order and shuffled, and whether training by optax diverges in time order."""
    linear, recorded = parts_of(stream)
    eta = step * largest_step(stream)
    clock = clock_of(recorded.steps)
    num_steps = 2 * clock.passes * clock.steps  # whole passes
    optimizer = optax.sgd(eta, momentum=mu)
    trained = rj.train(jax.random.key(0), problem=problem_of(stream), optimizer=optimizer, num_steps=num_steps, tail=1)
    optimizer = rj.optimizers.heavy_ball(mu, eta)
    in_time = growth_of_run(linear, rj.problems.blocks(len(recorded.rows)), jax.random.key(1), optimizer)
    keys = jax.random.split(jax.random.key(2), PERMUTATIONS)
    rate, error, rise = jax.vmap(lambda key: growth_of_run(linear, rj.problems.blocks(1), key, optimizer))(keys)
    mixed = Growth(rate.mean(), jnp.linalg.norm(error) / PERMUTATIONS, rise.max())
    return {
        "trained_away": trained["growth_rate"] * num_steps
        > np.log(10),  # ten times farther from the solution at the end
        "trained_diverged": trained["diverged_at"] >= 0,  # a thousand times farther at any time
        "growth": in_time,
        "shuffled": mixed,
    }


def axes(scale: str) -> dict[str, object]:
    """Momenta from 0 to 0.99 with 0.9 in the middle; step sizes in units of the largest that a quadratic allows."""
    size = pick(scale, tiny=dict(streams=1, cells=3), quick=dict(streams=7, cells=15), paper=dict(streams=7, cells=31))
    return {
        "stream": list(_streams.names()[: size["streams"]]),
        "mu": 1 - np.geomspace(1, 1e-2, size["cells"]),
        "step": np.geomspace(1e-4, 1, size["cells"]),
    }


def figure(data: xr.Dataset) -> Figure:
    """A column for each stream: growth in time order above, shuffled below."""
    rows = {"in time order": data.growth, "shuffled": data.shuffled}
    picture, panels = plt.subplots(
        2, data.stream.size, figsize=(1.4 + 2.1 * data.stream.size, 5.6), layout="constrained", squeeze=False,
        sharex=True, sharey=True,
    )  # fmt: skip
    norm = SymLogNorm(1e-3, vmin=-0.3, vmax=0.3)
    drawn = None
    for row, (name, rate) in zip(panels, rows.items(), strict=True):
        row[0].set_ylabel(f"{name}\nmomentum")
        for ax, stream in zip(row, data.stream.values, strict=True):
            one = rate.sel(stream=stream)
            cells = (edges(data.step.values, log=True), edges(1 - data.mu.values, log=True))
            drawn = ax.pcolormesh(*cells, one, norm=norm, cmap="RdBu_r", rasterized=True)
            ax.contour(data.step, 1 - data.mu, one, levels=[0.0], colors="black", linewidths=1.2)
            if name == "in time order":
                trained = data.trained_diverged.sel(stream=stream).astype(float)
                ax.contour(
                    data.step, 1 - data.mu, trained, levels=[0.5], colors="gold", linewidths=1.0, linestyles="--"
                )
                ax.set_title(str(stream))
            ax.set(xscale="log", yscale="log", xlim=(1e-4, 1), ylim=(1, 1e-2))
            ax.set_yticks([1, 0.5, 0.1, 0.01], labels=["0", "0.5", "0.9", "0.99"])
            ax.set_xticks([1e-4, 1e-2, 1])
            ax.minorticks_off()
    for ax in panels[-1]:
        ax.set_xlabel("step size / largest")
    assert drawn is not None
    picture.colorbar(drawn, ax=panels, label="growth per step", shrink=0.8, extend="both")
    picture.suptitle("SGDm on real streams, one row a step. Black: growth 0. Gold: where training by optax diverges.")
    return picture


def claims(data: xr.Dataset) -> list[Claim]:
    clear = np.abs(data.growth) > data.growth_standard_error
    agrees = ((data.growth > 0) == data.trained_away).where(clear).mean(("mu", "step"))
    unsafe = (data.growth > 0) | (data.growth_rise >= HARMLESS)
    warned = (unsafe == data.trained_diverged).where(clear).mean(("mu", "step"))
    names = [str(stream) for stream in data.stream.values]

    def per_stream(values: xr.DataArray) -> str:
        return _each(names, values, ".1%")

    grows, calm = data.growth > 0, data.shuffled < 0
    order, helped = (grows & calm).sum(("mu", "step")), (~grows & ~calm).sum(("mu", "step"))
    ratio, cells = _last_safe(data.shuffled) / _last_safe(data.growth), data.mu.size * data.step.size
    return [
        Claim(
            "the sign of growth says where real training diverges",
            WHERE,
            f"agrees with where optax.sgd ends on {_each(names, agrees, '.1%')} of the cells that are clear; "
            + base_rates(data.growth > 0, data.trained_away.astype(bool), per_stream, ("mu", "step"), clear),
            f"at least {LEAST:.0%} on each stream",
            bool((agrees >= LEAST).all()),
        ),
        Claim(
            "growth, or a thousandfold rise on the way, says where training diverges at any time",
            WHERE,
            f"agrees with optax.sgd on {_each(names, warned, '.1%')}; "
            + base_rates(unsafe, data.trained_diverged.astype(bool), per_stream, ("mu", "step"), clear),
            f"at least {LEAST:.0%} on each stream",
            bool((warned >= LEAST).all()),
        ),
        Claim(
            "the order alone makes momentum diverge on every stream",
            WHERE,
            f"cells that grow in time order and shrink shuffled, of {cells}: {_each(names, order, 'd')}",
            "some on each stream",
            bool((order > 0).all()),
        ),
        Claim(
            "the order does harm more often than good",
            WHERE,
            f"cells that shrink in time order and grow shuffled: {_each(names, helped, 'd')}",
            "fewer than those of the other kind, on each stream",
            bool((helped < order).all()),
        ),
        Claim(
            "at momentum 0.9 shuffling allows larger steps",
            WHERE,
            f"largest step shuffled over largest step in time order: {_each(names, ratio, '.1f')}",
            "more than 1 on each stream",
            bool((ratio > 1).all()),
            why="On digits in class cycles the order does not limit the step size at this momentum; a difference "
            "smaller than a cell of the grid shows as 1.0.",
        ),
    ]


def _last_safe(rate: xr.DataArray) -> xr.DataArray:
    """Largest step size up to which no smaller one grows, at the momentum of most tutorials."""
    safe = (rate.sel(mu=TUTORIAL, method="nearest") < 0).cumprod("step").astype(bool)
    return rate.step.where(safe).max("step")


def _each(names: list[str], values: xr.DataArray, form: str) -> str:
    return ", ".join(f"{name} {value.item():{form}}" for name, value in zip(names, values.values, strict=True))
