"""The guard on settings that were not looked at while it was designed, and where momentum pays.

`python -m tests.guard_held_out held_out ill_conditioned network` prints what docs/guard.md states. The settings of
`held_out` are drawn at random over shift, frequency, amplitude, inputs, samples, momentum, step size and observation
noise, from a seed that was used for nothing else; the guard was designed on 1,000 others, of seed 1. A run goes away if
it ends ten times farther from the solution than it began, or was found a thousand times farther on the way.
"""

import sys

import jax
import numpy as np
import optax
import xarray as xr

import resonance_jax as rj

SEED, SETTINGS, STEPS = 2027, 250, 20_000  # of each of four shifts
MOST_INPUTS, MOST_SAMPLES = 9, 20
SHIFTS = {
    "sinusoid": lambda f, amplitude, dim: rj.shifts.sinusoid(f, amplitude=amplitude),
    "square_wave": lambda f, amplitude, dim: rj.shifts.square_wave(1 / f, dim=MOST_INPUTS, norm=amplitude),
    "switching": lambda f, amplitude, dim: rj.shifts.switching(
        1 / f, dim=dim, variance=amplitude**2, max_dim=MOST_INPUTS
    ),
    "ar2": lambda f, amplitude, dim: rj.shifts.ar2(f),
}


def optimizer(way, mu, eta):
    if way == "no momentum":
        return optax.sgd(eta)
    sgd = optax.inject_hyperparams(optax.sgd)(eta, momentum=mu)
    return rj.resonance_guard(sgd) if way == "guard" else sgd


def drawn(name):
    """Settings of a shift, zipped: one cell each."""
    rng = np.random.default_rng([SEED, list(SHIFTS).index(name)])
    values = dict(
        f=10 ** rng.uniform(-3, np.log10(0.5), SETTINGS),
        amplitude=10 ** rng.uniform(-1, 0.3, SETTINGS),
        dim=rng.integers(1, MOST_INPUTS + 1, SETTINGS),
        samples=np.floor(10 ** rng.uniform(0, np.log10(MOST_SAMPLES + 0.99), SETTINGS)).astype(int),
        mu=1 - 10 ** rng.uniform(-3.3, -0.5, SETTINGS),
        eta=10 ** rng.uniform(-4, -0.5, SETTINGS),
        noise=np.where(rng.random(SETTINGS) < 0.5, 0.0, 0.1),
        seed=np.arange(SETTINGS),
    )
    return {key: xr.DataArray(value, dims="setting") for key, value in values.items()}


def trained(name, way):
    wave = name == "square_wave"  # moves along one line, so it takes all inputs

    def point(seed, f, amplitude, dim, samples, mu, eta, noise):
        inputs = dict(dim=MOST_INPUTS) if wave else dict(dim=dim, max_dim=MOST_INPUTS)
        run = rj.train(
            jax.random.key(seed),
            shift=SHIFTS[name](f, amplitude, dim),
            problem=rj.problems.linear_regression(
                **inputs, samples=samples, max_samples=MOST_SAMPLES, noise_variance=noise
            ),
            optimizer=optimizer(way, mu, eta),
            num_steps=STEPS,
            tail=500,
        )
        return {key: run[key] for key in ("distance", "growth_rate", "diverged_at")}

    return rj.sweep(point, drawn(name), progress=False)


def held_out():
    print(f"{'shift':12s} {'calm without momentum':>22s} {'away unguarded':>15s} {'away guarded':>13s} "
          f"{'0.05 decades higher':>20s} {'lower':>7s}")  # fmt: skip
    for name in SHIFTS:
        data = {way: trained(name, way) for way in ("no momentum", "none", "guard")}
        away = {
            way: ((one.growth_rate * STEPS > np.log(10)) | (one.diverged_at >= 0)).values for way, one in data.items()
        }
        calm = ~away["no momentum"]
        both = ~away["none"]
        error = {way: np.log10(np.maximum(one.distance.values, 1e-12)) for way, one in data.items()}
        change = (error["guard"] - error["none"])[both]
        print(f"{name:12s} {calm.sum():22d} {(away['none'] & calm).sum():15d} {(away['guard'] & calm).sum():13d} "
              f"{(change > 0.05).sum():13d} of {both.sum():3d} {(change < -0.05).sum():7d}")  # fmt: skip
        farther = (data["guard"].growth_rate.values > 0) & calm
        print(f"{'':12s} ends farther than it began: {farther.sum()} guarded, "
              f"{((data['none'].growth_rate.values > 0) & calm).sum()} unguarded")  # fmt: skip
        for i in np.flatnonzero(away["guard"] & calm):
            setting = {key: value.values[i].item() for key, value in drawn(name).items()}
            print("    away:", {key: f"{value:.4g}" for key, value in setting.items()},
                  {way: f"{error[way][i]:.1f}" for way in error}, int(data["guard"].diverged_at.values[i]))  # fmt: skip


def ill_conditioned():
    """Steps until the distance has fallen to a level, on iid inputs of condition 1,000, ten seeds."""
    variances = np.geomspace(1e-3, 1, 10)
    problem = rj.problems.linear_regression(dim=10, samples=20, input_variance=variances, bias=False)
    ways = ("no momentum", "none", "guard", "restart")
    for mu in (0.9, 0.97, 0.99):

        def point(seed, way, mu=mu):
            from sweeps._remedies import REMEDIES

            return rj.train(jax.random.key(seed), problem=problem, optimizer=REMEDIES[way](mu, 0.1, False),
                            num_steps=20_000, tail=1, record=2000)  # fmt: skip

        data = rj.sweep(point, {"way": list(ways), "seed": np.arange(10)}, progress=False)
        curves = data.distance_curve / data.distance_curve.isel(step=0)
        for below in (0.1, 0.01, 1e-4):
            reached = data.step.where(curves < below).min("step")  # NaN: not within the run
            shown = {way: f"{reached.sel(way=way).mean().item():.0f} ({int(reached.sel(way=way).notnull().sum())})"
                     for way in ways}  # fmt: skip
            print(f"momentum {mu}, steps until {below:g} of the start, mean of the seeds that reach it: {shown}")


def network():
    """Experiment 6 in its bad band, against constant momenta."""
    periods = np.array([5, 10, 15, 20, 25, 30, 35, 40.0])

    def losses(way, mu):
        def point(seed, T):
            return rj.train(
                jax.random.key(seed),
                shift=rj.shifts.switching(T, dim=2, variance=0.4),
                problem=rj.problems.mlp_regression(),
                optimizer=optimizer(way, mu, 0.01),
                num_steps=20_000,
                tail=2000,
            )

        data = rj.sweep(point, {"seed": np.arange(20), "T": periods}, progress=False)
        return data.loss.mean().item(), (data.diverged_at >= 0).mean().item()

    for mu in (0.0, 0.5, 0.8, 0.9, 0.95, 0.98):
        loss, diverged = losses("none", mu)
        print(f"constant momentum {mu}: mean loss {loss:.4f}, diverged {diverged:.1%}")
    for mu in (0.95, 0.98):
        loss, diverged = losses("guard", mu)
        print(f"guard from {mu}: mean loss {loss:.4f}, diverged {diverged:.1%}")


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    for part in sys.argv[1:] or ["held_out", "ill_conditioned", "network"]:
        globals()[part]()
