"""Beyond the paper, linear optimizers: experiment 1 with five of them, at 20 samples and at 1."""

from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np
import optax
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

import resonance_jax as rj
from resonance_jax import Claim
from sweeps import _heatmap, _noise, _optimizers
from sweeps._agreement import base_rates
from sweeps._optimizers import NAMED, TITLES, Optimizer, average, heavy_ball, nesterov, two_buffers, weight_decay
from sweeps._shared import each, pick

SAMPLES = np.array([1, 20])
LEAST = 0.97  # agreement of the almost-sure rate with runs of other seeds
PIXELS = ("f", "mu")
WHERE = "beyond the paper: linear optimizers"


def point(seed, f, mu, samples, optimizer: Optimizer = heavy_ball):
    """The distance that a run ends at, its growth, and the three rates.

    Weight decay pulls the weights towards 0, away from theta*, so that they end at a floor that says nothing of growth.
    Its runs are judged by their growth without that pull. The twin of the average is heavy ball at step (1 - mu) rate.
    """
    shift = _heatmap.PROCESSES["sinusoid"](f)
    problem = rj.problems.linear_regression(dim=1, samples=samples, max_samples=_heatmap.SAMPLES)
    settings: dict[str, Any] = dict(shift=shift, problem=problem, num_steps=_heatmap.NUM_STEPS, tail=_heatmap.TAIL)
    linear, decays = optimizer(mu, _heatmap.ETA), optimizer is weight_decay
    run = rj.oscillate(jax.random.key(seed), optimizer=linear, **settings)
    rates = _noise.rates(seed, shift, problem, optimizer=linear, num_steps=_heatmap.NUM_STEPS, with_run=decays)
    found = {"log10_distance": run["log10_distance"], "growth_rate": run["growth_rate"]} | rates
    twin = {"distance": found["log10_distance"], "square": found["mean_square_rate"]}
    if optimizer is average:
        same = optax.sgd((1 - mu) * _optimizers.AVERAGED * _heatmap.ETA, momentum=mu)
        twin["distance"] = rj.oscillate(jax.random.key(seed), optimizer=same, **settings)["log10_distance"]
        twin["square"] = rj.theory.mean_square_growth(shift, problem, optimizer=same).rate
    return found | {"twin_log10_distance": twin["distance"], "twin_mean_square_rate": twin["square"]}


def axes(scale: str) -> dict[str, Any]:
    size = pick(
        scale, tiny=dict(seed=2, f=4, mu=3), quick=dict(seed=3, f=24, mu=24), paper=dict(seed=10, f=100, mu=100)
    )
    return {
        "f": np.linspace(0, 0.05, size["f"]),  # first, so that chunks are cut here: only one has long periods
        "seed": np.arange(size["seed"]),
        "mu": np.linspace(0.95, 0.999, size["mu"]),
        "samples": SAMPLES,
        "optimizer": [heavy_ball, nesterov] if scale == "tiny" else list(TITLES),  # one program for each
    }


def figure(data: xr.Dataset) -> Figure:
    """A column for each optimizer, a row for each number of samples. Distances are those of the median run."""
    names = list(map(str, data.optimizer.values))
    picture, panels = plt.subplots(
        len(SAMPLES), len(names), figsize=(1.5 + 3.1 * len(names), 7.4), layout="constrained", squeeze=False
    )
    picture.suptitle(
        rf"Linear optimizers under a {_heatmap.TITLES['sinusoid']}, $\eta$ = {_heatmap.ETA}, {data.seed.size} seeds; "
        "lines: where growth changes its sign"
    )
    for row, samples in zip(panels, SAMPLES[::-1], strict=True):
        for ax, name in zip(row, names, strict=True):
            _panel(data.sel(samples=samples, optimizer=name), NAMED[name], int(samples), ax)
    for ax in panels.flat:
        ax.label_outer()
    mesh, first = panels[0, 0].collections[0], panels[0, 0]
    bar = picture.colorbar(mesh, ax=panels, extend="both", label=r"median $\Vert\theta_k-\theta^*\Vert$", pad=0.01)
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: rf"$10^{{{value:g}}}$"))
    picture.legend(
        handles=[*first.get_legend().legend_handles, *first.lines[-1:]],
        loc="outside lower center",
        ncols=4,
        facecolor="0.3",
        labelcolor="white",
        framealpha=0.9,
    )
    for ax in panels.flat:
        ax.get_legend().remove()
    return picture


def _panel(data: xr.Dataset, optimizer: Optimizer, samples: int, ax: Axes) -> None:
    """Without a colour bar; the largest safe momentum as a line, where it lies in the picture, and in the title."""
    safe = _optimizers.SAFE[optimizer][samples]
    title = f"{TITLES[optimizer]}, {samples} sample{'s' if samples > 1 else ''}\nlargest safe momentum: {safe:.4f}"
    rj.plotting.heatmap(data.log10_distance.median("seed"), limits=(-20, 20), colorbar=False, ax=ax)
    ax.set_title(title, fontsize=10)
    rj.plotting.zero_lines({_noise.NOTIONS[notion]: rate for notion, rate in _noise.over_seeds(data).items()}, ax=ax)
    limits = ax.get_ylim()
    ax.axhline(safe, color="white", ls="-.", lw=1.2, label="largest safe momentum, all frequencies")
    ax.set_ylim(limits)
    if safe < limits[0]:
        ax.text(
            0.5, 0.05, f"safe below {safe:.3f}, out of the picture", transform=ax.transAxes, ha="center", fontsize=9
        )


def diverged(data: xr.Dataset) -> xr.DataArray:
    """Whether the median run ends farther than 1 from theta*; with weight decay, whether it grows without its pull."""
    grows = data.growth_rate.median("seed") > 0
    return xr.where(data.optimizer == weight_decay.__name__, grows, _heatmap.diverged(data.log10_distance))


def claims(data: xr.Dataset) -> list[Claim]:
    found, runs = _noise.over_seeds(data), diverged(data)
    typical, square = found["almost_sure"] > 0, found["mean_square"] > 0
    names = list(map(str, data.optimizer.values))

    def shares(values: xr.DataArray, name: str) -> np.ndarray:
        """Of the pixels, for each number of samples."""
        return values.sel(optimizer=name).mean(PIXELS).values

    def listed(values: xr.DataArray) -> str:
        return "; ".join(
            f"{TITLES[NAMED[name]]} {each(shares(values, name), '.2%', 'samples', SAMPLES)}" for name in names
        )

    def worst(values: xr.DataArray) -> str:
        return f"{float(values.min()):.1%} to {float(values.max()):.1%}"

    agreeing = runs == typical
    outside = typical & ~square
    diverging = {name: shares(runs, name) for name in names}
    growing = {name: shares(typical, name) for name in names}
    heavy, ahead = diverging[heavy_ball.__name__], diverging[nesterov.__name__]
    safe = {name: [_optimizers.SAFE[NAMED[name]][int(samples)] for samples in SAMPLES] for name in names}
    line = xr.DataArray(list(safe.values()), {"optimizer": names, "samples": SAMPLES}, ("optimizer", "samples"))
    below = int((square & (data.mu < line)).sum())
    rows = [
        Claim(
            "the sign of the almost-sure rate says which runs diverge, for every optimizer",
            WHERE,
            f"agrees with the median run on: {listed(agreeing)} (weight decay: with the growth of the median run "
            "without the pull of the decay, since its distance ends at a floor); "
            + base_rates(typical, runs, worst, PIXELS),
            f"at least {LEAST:.0%} each",
            bool(agreeing.mean(PIXELS).min() >= LEAST),
        ),
        Claim(
            "Nesterov's momentum removes most of the resonance",
            WHERE,
            f"share of the pixels whose median run diverges: {listed(runs)}",
            "of heavy ball's share at most a fifth at twenty samples, at most half at one",
            bool(ahead[-1] <= heavy[-1] / 5 and ahead[0] <= heavy[0] / 2),
            why="At twenty samples it removes about three quarters, where four fifths were expected.",
        ),
        Claim(
            "the region of mean-square growth encloses that of typical growth, for every optimizer",
            WHERE,
            f"pixels of typical growth outside: {listed(outside)}",
            "none outside, but for 0.5% at the edge, where the estimate has its error",
            bool(outside.mean(PIXELS).max() <= 0.005),
        ),
        Claim(
            "Nesterov's momentum is safe up to a larger momentum than heavy ball",
            WHERE,
            "largest momentum at which the mean square grows at no frequency: "
            + "; ".join(f"{TITLES[NAMED[name]]} {each(safe[name], '.4f', 'samples', SAMPLES)}" for name in names),
            "larger at one sample and at twenty",
            bool(np.all(np.array(safe[nesterov.__name__]) > np.array(safe[heavy_ball.__name__]))),
        ),
        Claim(
            "below its largest safe momentum, no optimizer grows",
            WHERE,
            f"pixels below the line whose mean square grows: {below}",
            "none",
            below == 0,
        ),
    ]
    if average.__name__ in names:
        one = data.sel(optimizer=average.__name__)
        decades = float(np.abs(one.log10_distance - one.twin_log10_distance).max())
        rates = float(np.abs(one.mean_square_rate - one.twin_mean_square_rate).max())
        rows.append(
            Claim(
                "an average of gradients at rate r is heavy ball at step (1 - mu) r",
                WHERE,
                f"on the same draws the distances differ by at most {decades:.1e} decades after {_heatmap.NUM_STEPS} "
                f"steps, the mean-square rates by at most {rates:.1e}",
                "at most 0.05 decades, which is 1e-5 a step, and 2e-5: rounding",
                decades <= 0.05 and rates <= 2e-5,
                why="A run that passes close to the optimum is decided by rounding.",
            )
        )
    if two_buffers.__name__ in names:
        share = diverging[two_buffers.__name__]
        iid = float(found["mean"].sel(optimizer=two_buffers.__name__, f=0).min())
        rows.append(
            Claim(
                "averaging the steps of a momentum once more does not help: its lag outweighs the damping",
                WHERE,
                f"diverges on {each(share, '.2%', 'samples', SAMPLES)}; at f = 0 the mean grows by {iid:.4f} or more",
                "at least 99% of the pixels, and the mean grows at f = 0 at every momentum: "
                "(1 - mu) (1 - mu + 0.1) < eta b",
                bool(share.min() >= 0.99 and iid > 0),
            )
        )
    if weight_decay.__name__ in names:
        before, after = growing[heavy_ball.__name__], growing[weight_decay.__name__]
        rows.append(
            Claim(
                "a weight decay of 0.01 changes next to nothing",
                WHERE,
                f"share of the pixels with a positive almost-sure rate: without it "
                f"{each(before, '.2%', 'samples', SAMPLES)}, with it {each(after, '.2%', 'samples', SAMPLES)}",
                "less than a tenth of the share without it",
                bool(np.all(np.abs(after - before) < before / 10)),
            )
        )
    return rows
