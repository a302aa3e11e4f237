"""Beyond the paper, remedies: the guard and nine others on all six experiments and on seven real streams."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

import resonance_jax as rj
from resonance_jax import Claim
from resonance_jax.runs.divergence import DIVERGED_ABOVE
from resonance_jax.theory.recorded.growth import Clock, clock_of
from sweeps import (
    _heatmap,
    _response,
    _streams,
    exp3_square_wave,
    exp4_dimension,
    exp4_variance,
    exp5_adam,
    exp6_mlp,
    real_streams,
)
from sweeps._remedies import REMEDIES
from sweeps._shared import pick

NEEDS = real_streams.NEEDS
WHERE = "beyond the paper: remedies"
AWAY = 10  # times farther at the end than at the start
LOWEST = -6  # decades; float32 weights end here
HIGHER = 0.05  # decades that count as a difference
LEAST = 0.99  # share of the cells on which the guard must cost nothing
WORSE = 1.5  # times the mean loss of the best constant momentum, experiment 6
CONSTANT = ("none", "momentum 0.9", "no momentum")
CELLS = ("seed", "drift", "strength")
QUICK = ["1, 20 samples", "1, 1 sample", "4, variance", "6", "stream electricity"]  # at quick scale
KNOWN = [*CONSTANT, "Nesterov", "restart", "guard"]


class Setting(NamedTuple):
    """One run of an experiment, before a remedy is chosen."""

    problem: rj.problems.Problem
    shift: rj.shifts.Shift | None  # None: recorded rows
    momentum: Any
    eta: Any
    num_steps: int
    tail: int
    adam: bool = False


def _from_range(module: Any, name: str, share: Any, whole: bool = False) -> Any:
    """The value at a share of the range that a sweep file scans, 0 at its lower end."""
    low, *_, high = module.axes("tiny")[name]
    value = float(low) + share * float(high - low)
    return jnp.round(value).astype(jnp.result_type(int)) if whole else value


def _defaults(point: Callable[..., Any]) -> dict[str, Any]:
    """The constants of an experiment that its point has as defaults."""
    return {
        name: each.default for name, each in inspect.signature(point).parameters.items() if each.default != each.empty
    }


def _heatmap_of(process: str, samples: int) -> Callable[[Any, Any], Setting]:
    def setting(drift: Any, strength: Any) -> Setting:
        shift = _heatmap.PROCESSES[process](_from_range(_heatmap, "f", drift))
        momentum = _from_range(_heatmap, "mu", strength)
        problem = rj.problems.linear_regression(dim=1, samples=samples)
        return Setting(problem, shift, momentum, _heatmap.ETA, _heatmap.NUM_STEPS, _heatmap.TAIL)

    return setting


def _linear(shift: rj.shifts.Shift, **problem: Any) -> Setting:
    """What experiments 3 and 4 share."""
    problem = _response.LINEAR | problem
    fitted = rj.problems.linear_regression(**problem)
    return Setting(fitted, shift, _response.MU, _response.ETA, _response.NUM_STEPS, _response.TAIL)


def _square_wave(drift: Any, strength: Any) -> Setting:
    T = _from_range(exp3_square_wave, "T", drift, whole=True)
    samples = _from_range(exp3_square_wave, "samples", strength, whole=True)
    shift = rj.shifts.square_wave(T, dim=_response.DIM)
    return _linear(
        shift, dim=_response.DIM, input_variance=0.25, samples=samples, max_samples=exp3_square_wave.MOST_SAMPLES
    )


def _switching_mean(point: Callable[..., Any], T: Any, v: Any, dim: Any, max_dim: int | None = None) -> Setting:
    given = _defaults(point)
    shift = rj.shifts.switching(T, dim=dim, variance=v, max_dim=max_dim)
    gradient = {name: given[name] for name in ("samples", "input_variance", "loss_factor")}
    return _linear(shift, dim=dim, max_dim=max_dim, **gradient)


def _variance(drift: Any, strength: Any) -> Setting:
    T, v = _from_range(exp4_variance, "T", drift, whole=True), _from_range(exp4_variance, "v", strength)
    return _switching_mean(exp4_variance.point, T, v, _response.DIM)


def _dimension(drift: Any, strength: Any) -> Setting:
    T = _from_range(exp4_dimension, "T", drift, whole=True)
    dim = _from_range(exp4_dimension, "dim", strength, whole=True)
    return _switching_mean(exp4_dimension.point, T, exp4_dimension.VARIANCE, dim, exp4_dimension.MOST)


def _adam(drift: Any, strength: Any) -> Setting:
    T, given = _from_range(exp5_adam, "T", drift, whole=True), _defaults(exp5_adam.point)
    shift = rj.shifts.switching(T, dim=_response.DIM, variance=given.pop("v"))
    beta1 = _from_range(exp5_adam, "beta1", strength)
    return _linear(shift, dim=_response.DIM, **given)._replace(momentum=beta1, tail=exp5_adam.TAIL, adam=True)


def _network(drift: Any, strength: Any) -> Setting:
    T, v = _from_range(exp6_mlp, "T", drift, whole=True), _from_range(exp6_mlp, "v", strength)
    shift = rj.shifts.switching(T, dim=2, variance=v)
    problem = rj.problems.mlp_regression()
    return Setting(problem, shift, _response.MU, _response.ETA, exp6_mlp.NUM_STEPS, exp6_mlp.TAIL)


class _Recorded(NamedTuple):
    problem: rj.problems.Problem
    clock: Clock
    largest_step: float


@functools.cache
def _recorded(name: str) -> _Recorded:
    """Of a stream, as arrays of no trace: several programs share them, and JAX 0.10 fails on those of another trace."""
    with jax.ensure_compile_time_eval():
        problem = real_streams.problem_of.__wrapped__(name)
        clock = clock_of(real_streams.parts_of(name)[1].steps)
        return _Recorded(problem, clock, real_streams.largest_step(name))


def _stream(name: str, drift: Any, strength: Any) -> Setting:
    """As on the page of real streams: whole passes; the mean is that over the last of them."""
    problem, clock, largest_step = _recorded(name)
    grid: dict[str, Any] = real_streams.axes("tiny")
    step, damping = _geometric(grid["step"], drift), _geometric(1 - grid["mu"], strength)
    num_steps = 2 * clock.passes * clock.steps
    return Setting(problem, None, 1 - damping, step * largest_step, num_steps, clock.steps)


def _geometric(values: Any, share: Any) -> Any:
    low, high = float(values[0]), float(values[-1])
    return low * (high / low) ** share


EXPERIMENTS: dict[str, Callable[[Any, Any], Setting]] = {
    "1, 20 samples": _heatmap_of("sinusoid", _heatmap.SAMPLES),
    "1, 5 samples": _heatmap_of("sinusoid", 5),
    "1, 1 sample": _heatmap_of("sinusoid", 1),
    "2": _heatmap_of("ar2", _heatmap.SAMPLES),
    "3": _square_wave,
    "4, variance": _variance,
    "4, dimension": _dimension,
    "5": _adam,
    "6": _network,
} | {f"stream {name}": functools.partial(_stream, name) for name in _streams.names()}


def point(experiment: str, remedy: str, seed, drift, strength):
    """Where a run ends, in decades, and whether it goes away: ten times farther than it began, or it diverged.

    Args:
        experiment: one of `EXPERIMENTS`.
        remedy: one of `REMEDIES`.
        seed: of the run.
        drift: share of the range of f or T; on a stream of the range of step sizes, in decades.
        strength: share of the range of the second parameter; on a stream of that of 1 - mu, in decades.
    """
    setting = EXPERIMENTS[experiment](drift, strength)
    run = rj.train(
        jax.random.key(seed),
        shift=setting.shift,
        problem=setting.problem,
        optimizer=REMEDIES[remedy](setting.momentum, setting.eta, setting.adam),
        num_steps=setting.num_steps,
        tail=setting.tail,
    )
    error = run[setting.problem.measure]
    away = (run["growth_rate"] * setting.num_steps > np.log(AWAY)) | (run["diverged_at"] >= 0)
    return {"log10_error": jnp.log10(jnp.maximum(error, 10.0**LOWEST)), "away": away.astype(error.dtype)}


def axes(scale: str) -> dict[str, Any]:
    size = pick(scale, tiny=dict(seed=1, cells=3), quick=dict(seed=2, cells=8), paper=dict(seed=10, cells=16))
    return {  # one program for each experiment and remedy: 160 at paper scale
        "experiment": {"tiny": ["4, variance"], "quick": QUICK, "paper": list(EXPERIMENTS)}[scale],
        "remedy": {"tiny": ["none", "no momentum", "guard"], "quick": KNOWN, "paper": list(REMEDIES)}[scale],
        "seed": np.arange(size["seed"]),  # before the others, so that the draws of a seed serve all of them
        "drift": np.linspace(0, 1, size["cells"]),
        "strength": np.linspace(0, 1, size["cells"]),
    }


def away_shares(data: xr.Dataset) -> xr.DataArray:
    """Share of the cells that go away, of those where the optimizer without momentum does not."""
    return data.away.where(data.away.sel(remedy="no momentum") == 0).mean(CELLS)


def decades(data: xr.Dataset) -> xr.DataArray:
    """How much higher a run ends than without a remedy, on the cells where that does not go away."""
    plain = data.sel(remedy="none")
    return (data.log10_error - plain.log10_error).where(plain.away == 0)


def figure(data: xr.Dataset) -> Figure:
    """Two tables: what goes away, and what it costs where nothing has to be done."""
    size = (max(9, 3 + 0.8 * data.experiment.size), 2.8 + 0.6 * data.remedy.size)
    picture, (top, bottom) = plt.subplots(2, 1, figsize=size, layout="constrained")
    _table(top, 100 * away_shares(data), "{:.1f}", "Reds", Normalize(0, 100))
    _table(bottom, decades(data).median(CELLS), "{:+.2f}", "RdBu_r", Normalize(-2, 2))
    top.set_title("Runs that go away, in % of those that do not without momentum")
    bottom.set_title("Error at the end, in decades above no remedy: median of the runs that do not go away without one")
    for ax in (top, bottom):
        ax.title.set_fontsize(10)
    bottom.set_xlabel(
        f"experiment of the paper, or real stream; {data.seed.size * data.drift.size**2} runs each\n"
        f"A run goes away: it ends {AWAY} times farther than it began, or was ever {DIVERGED_ABOVE:g} times farther"
    )
    return picture


def _table(ax: Axes, values: xr.DataArray, form: str, colours: str, norm: Normalize) -> None:
    """Coloured cells with their numbers; a dash where no run counts."""
    values = values.transpose("remedy", "experiment")
    drawn = ax.imshow(values, cmap=colours, norm=norm, aspect="auto")
    for (row, column), value in np.ndenumerate(values.values):
        red, green, blue, _ = drawn.to_rgba(value)
        dark = 0.3 * red + 0.6 * green + 0.1 * blue < 0.5
        text = form.format(value + 0.0) if np.isfinite(value) else "\N{EN DASH}"
        ax.text(column, row, text, ha="center", va="center", fontsize=8.5, color="white" if dark else "black")
    names = [
        str(name).removeprefix("stream ").replace("_", "\n").replace(", ", ",\n") for name in values.experiment.values
    ]
    ax.set_xticks(range(len(names)), names, fontsize=8.5)
    ax.set_yticks(range(values.remedy.size), values.remedy.values)
    ax.tick_params(length=0, labelbottom=True)


def claims(data: xr.Dataset) -> list[Claim]:
    """Those about experiments and remedies that the dataset has."""
    away, names = away_shares(data), [str(name) for name in data.experiment.values]
    linear = [name for name in names if name[0] in "1234"]
    kept = [name for name in names if name in linear or name.startswith("stream")]
    guarded = decades(data).sel(remedy="guard")
    counts = guarded.notnull().sum(CELLS)
    costless = (guarded <= HIGHER).sum(CELLS) / counts
    better = (guarded < -HIGHER).sum(CELLS) / counts
    rows = [
        Claim(
            "with the guard, no run goes away that does not without momentum, on experiments 1 to 4 and the streams",
            WHERE,
            f"{_each(away.sel(remedy='guard', experiment=kept), '.2%')} go away; without a remedy "
            f"{_each(away.sel(remedy='none', experiment=kept), '.1%')}",
            "0% on each",
            bool((away.sel(remedy="guard", experiment=kept) == 0).all()),
            why="On some streams noise alone takes runs that start close to the solution ten times farther.",
        ),
        Claim(
            "where the run without a remedy does not go away, the guard costs nothing",
            WHERE,
            f"ends at most {HIGHER} decades higher on {_each(costless, '.1%')} of the runs; more than {HIGHER} decades "
            f"lower on {_each(better, '.1%')}",
            f"at least {LEAST:.0%} of the runs of each experiment",
            bool((costless >= LEAST).all()),
            why="Momentum bears larger steps than SGD without it; at such a step size, letting go loses the run.",
        ),
    ]
    if "6" in names:
        rows.append(_band(data.sel(experiment="6")))
    others = [str(name) for name in data.remedy.values if name not in ("none", "no momentum", "guard")]
    if others:
        most = away.sel(remedy=others, experiment=linear).max("experiment")
        rows += [
            Claim(
                "no other remedy that keeps momentum keeps every run of experiments 1 to 4",
                WHERE,
                f"largest share that goes away on one of these experiments: {_each(most, '.1%')}",
                "above 0% for each",
                bool((most > 0).all()),
                why="Adaptive restart and momentum 0.9 keep the paper's runs, though not those on streams.",
            ),
        ]
    if "restart" in others:
        share = away.sel(remedy="restart")
        rows.append(
            Claim(
                "adaptive restart does not stop resonance",
                WHERE,
                f"{_each(share, '.1%')} go away",
                "above 0% on some experiment",
                bool((share > 0).any()),
            )
        )
    if "apply if finite" in others:
        difference = away.sel(remedy="apply if finite") - away.sel(remedy="none")
        rows.append(
            Claim(
                "to leave out gradients that are not finite comes too late",
                WHERE,
                f"change of the share that goes away: {_each(difference, '+.1%')}",
                "at most one percentage point on each experiment",
                bool((np.abs(difference) <= 0.01).all()),
            )
        )
    return rows


def _band(network: xr.Dataset) -> Claim:
    """The mean loss of all runs, also of those that went away."""
    low, high = exp6_mlp.BAND
    period = _from_range(exp6_mlp, "T", network.drift).round()
    inside = (period >= low) & (period <= high)
    loss = (10**network.log10_error).where(inside).mean(CELLS)
    best = float(loss.sel(remedy=list(CONSTANT)).min())
    guarded = float(loss.sel(remedy="guard"))
    return Claim(
        "on the network, the guard is about as good as the best constant momentum, without a choice",
        WHERE,
        f"mean loss over T from {low} to {high}: {_each(loss, '.3g')}",
        f"with the guard at most {WORSE} times the lowest of {', '.join(CONSTANT)}",
        guarded <= WORSE * best,
        why="The network ends growth by itself, and the guard does not see the steady oscillation that remains.",
    )


def _each(values: xr.DataArray, form: str) -> str:
    """Values along the one dimension, with what they belong to."""
    (dim,) = values.dims
    return ", ".join(
        f"{value.item():{form}} ({name})" for name, value in zip(values[dim].values, values.values, strict=True)
    )
