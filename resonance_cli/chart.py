"""A stability chart of the theory, over a range that shows where growth begins."""

import functools
import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

import resonance_jax as rj
from resonance_cli.printing import say
from resonance_cli.values import parse_values
from resonance_jax.theory import SafeMomentum
from resonance_jax.theory.search.resonances import curvatures_of, turning

matplotlib.use("Agg")  # no window on a cluster

POINTS = 100  # along an axis whose values are not given
RATES = {
    "mean": rj.theory.mean_growth,
    "mean-square": rj.theory.mean_square_growth,
    "almost-sure": functools.partial(rj.theory.almost_sure_growth, num_steps=20_000),
}
NAMES = {"mean": "the mean", "mean-square": "the mean square", "almost-sure": "a typical run"}


def chart(
    out: Path,
    f: str | None,
    mu: str | None,
    eta: float,
    amplitude: float,
    input_variance: float,
    notion: str,
    samples: int,
    nesterov: bool,
) -> None:
    if out.suffix not in (".png", ".pdf", ".svg", ".nc"):
        raise ValueError(f"--out must end in .png, .pdf, .svg or .nc, got {out.name!r}; choose one of them")
    problem = rj.problems.linear_regression(dim=1, samples=samples, input_variance=input_variance)

    def shift(f: Any) -> rj.shifts.Shift:
        return rj.shifts.sinusoid(f, amplitude=amplitude)

    rate = RATES[notion]
    optimizer: Any = rj.optimizers.nesterov if nesterov else rj.optimizers.heavy_ball

    def point(f: Any, mu: Any) -> dict[str, Any]:
        return {"growth_rate": rate(shift(f), problem, optimizer=optimizer(mu, eta)).rate}

    safe = rj.theory.largest_safe_momentum(shift, problem, eta, rate=rate, optimizer=optimizer)
    momenta = _momenta(safe) if mu is None else parse_values(mu, "mu").astype(float)
    if f is None:
        modes = turning(optimizer(float(momenta.min()), eta), curvatures_of(shift(0.25), problem))
        frequencies = np.linspace(0, min(0.5, 1.1 * modes.high / np.pi), POINTS)
    else:
        frequencies = parse_values(f, "f").astype(float)
    found = rj.sweep(point, {"f": frequencies, "mu": momenta}, progress=sys.stdout.isatty()).growth_rate
    if out.suffix == ".nc":
        found.to_netcdf(out, engine="scipy")
    else:
        noise = "" if notion == "mean" else f", {samples} sample{'s' if samples > 1 else ''}"
        kind = ", Nesterov's momentum" if nesterov else ""
        title = rf"Growth of {NAMES[notion]}, $\eta$ = {eta:g}, amplitude {amplitude:g}{noise}{kind}"
        ax: Any = rj.plotting.heatmap(
            found, powers_of_ten=False, period_axis=True, title=title, label="growth per step"
        )
        rj.plotting.zero_lines({"no growth": found}, ax=ax)
        ax.figure.savefig(out, dpi=150)
    say(f"{out}: {float((found > 0).mean()):.1%} of {found.size} cells grow")
    inside = frequencies.min() <= safe.frequency <= frequencies.max() and momenta.max() > safe.mu
    if safe.margin > 0 and not inside:
        say("Growth begins outside this chart.")
    say(str(safe))


def _momenta(safe: SafeMomentum) -> np.ndarray:
    """From 1.5 times the damping at which growth begins, up to the end of the search."""
    damping = 1.0 if np.isnan(safe.mu) else 1 - safe.mu if safe.margin > 0 else 0.05
    return np.linspace(max(0.0, 1 - 1.5 * damping), 0.999, POINTS)
