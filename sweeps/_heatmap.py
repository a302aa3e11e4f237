"""What the heatmaps over (f, mu) share: constants, grid, picture, and the statements made about all of them."""

import jax
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import resonance_jax as rj
from sweeps._claims import Claim, pick

ETA = 0.01  # table of experiment 1
AMPLITUDE = 0.5  # table of experiment 1
SAMPLES = 20  # text of experiment 1: a gradient close to its expectation
NUM_STEPS = 10_000  # table of experiment 1
TAIL = 500  # caption of the heatmap figure


def pixel(seed, f, mu, shift: rj.shifts.Shift) -> dict[str, jax.Array]:
    """One run under the shift, beside the growth that the theory predicts for a sinusoid of the same frequency."""
    run = rj.oscillate(
        jax.random.key(seed),
        shift=shift,
        problem=rj.problems.linear_regression(dim=1, samples=SAMPLES),
        mu=mu,
        eta=ETA,
        num_steps=NUM_STEPS,
        tail=TAIL,
    )
    sinusoid = rj.shifts.sinusoid(f, amplitude=AMPLITUDE)
    return run | {"predicted_rate": rj.theory.growth_rate(sinusoid, mu=mu, eta=ETA)}


def axes(scale: str) -> dict[str, np.ndarray]:
    size = pick(
        scale, tiny=dict(seed=2, f=6, mu=5), quick=dict(seed=10, f=50, mu=50), paper=dict(seed=10, f=100, mu=100)
    )
    return {
        "f": np.linspace(0, 0.05, size["f"]),  # first, so that chunks cut here: only one has long periods to integrate
        "seed": np.arange(size["seed"]),
        "mu": np.linspace(0.95, 0.999, size["mu"]),
    }


def figure(data: xr.Dataset, title: str) -> Figure:
    ax = rj.plotting.heatmap(
        rj.log10_mean(data.log10_distance, "seed").rename("log10_distance"),
        log_rho=data.predicted_rate.isel(seed=0) / data.f,  # log rho = rate * period
        limits=(-20, 20),
        period_axis=True,
        label=rf"mean distance $\Vert\theta_k-\theta^*\Vert$, last {TAIL} steps, {data.seed.size} seeds",
    )
    ax.figure.suptitle(rf"{title}, $\eta$ = {ETA}; contours: $\rho$ of the theory", fontsize=11)
    return ax.figure  # pyright: ignore[reportReturnType]


def claims(data: xr.Dataset, *, where: str, agreement: float) -> list[Claim]:
    """The statements about every heatmap, with the share of pixels on which theory and runs must agree."""
    median = data.log10_distance.median("seed")
    diverged = median > 0  # farther than 1 from theta*
    predicted = data.predicted_rate.isel(seed=0) > 0
    agreeing = float((diverged == predicted).mean())
    lowest = [float(data.mu.where(region.any("f")).min()) for region in (diverged, predicted)]
    share = float(diverged.mean())
    iid = float(median.sel(f=0).max())
    return [
        Claim(
            "rho of the theory predicts which runs diverge",
            where,
            f"rho > 1 agrees with a median distance above 1 on {agreeing:.2%} of {diverged.size} pixels",
            f"at least {agreement:.0%}",
            agreeing >= agreement,
        ),
        Claim(
            "sufficiently low momentum mitigates resonance",
            "Ablating Periodicity",
            f"lowest mu that diverges: {lowest[0]:.4f} measured, {lowest[1]:.4f} predicted",
            f"none at the lowest mu, {float(data.mu[0]):.2f}",
            not bool((diverged | predicted).isel(mu=0).any()),
        ),
        Claim(
            "SGDm converges much more often than it diverges",
            "Practical Implications",
            f"{share:.1%} of the pixels diverge",
            "at most 25%",
            share <= 0.25,
        ),
        Claim(
            "the iid baseline, f = 0, converges",
            "introduction of the experiments",
            f"largest median distance at f = 0: 10^{iid:.1f}",
            "below 1 for every mu",
            iid < 0,
        ),
    ]
