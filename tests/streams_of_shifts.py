"""`python -m tests.streams_of_shifts`: the diagnosis of streams recorded from shifts, against fresh draws of them.

A stream of 12,000 steps is recorded from each shift and diagnosed on a plane. Its growth in time order is held against
`almost_sure_growth` under the shift itself, from other seeds, at every setting. Standard errors of the diagnosis come
from ten parts of the stream, so deviations over their standard error follow Student's t with about nine degrees of
freedom: 7.6% lie beyond 2, 0.3% beyond 4. Also the fitted period.
"""

import jax
import numpy as np

import resonance_jax as rj
from resonance_jax.theory.recorded.plane import plane
from tests.test_diagnose import record

MUS, ETAS = np.array([0.5, 0.9, 0.95, 0.97, 0.98, 0.99]), np.array([0.002, 0.005, 0.01, 0.03])
STEPS, SEEDS = 12_000, 8
SHIFTS = {
    "sinusoid(1/22)": (rj.shifts.sinusoid(1 / 22), 1),
    "sinusoid(1/40, amplitude=1)": (rj.shifts.sinusoid(1 / 40, amplitude=1.0), 1),
    "square_wave(30, dim=2)": (rj.shifts.square_wave(30, dim=2), 2),
    "ar2(0.03)": (rj.shifts.ar2(0.03), 1),
    "switching(6, dim=3, 0.4)": (rj.shifts.switching(6, dim=3, variance=0.4), 3),
    "resting()": (rj.shifts.resting(), 1),
}


def main() -> None:
    everything = []
    for name, (shift, dim) in SHIFTS.items():
        for samples in (1, 20):
            rows = record(shift, STEPS, samples, dim=dim, seed=7)
            data = plane(rj.problems.recorded(rows, samples=samples).least_squares, MUS, ETAS, 4)
            problem = rj.problems.linear_regression(dim=dim, samples=samples)

            def point(seed, mu, eta, shift=shift, problem=problem):
                settings = dict(mu=mu, eta=eta, key=jax.random.key(seed), num_steps=STEPS)
                return {"rate": rj.theory.almost_sure_growth(shift, problem, **settings).rate}

            drawn = rj.sweep(point, dict(seed=np.arange(100, 100 + SEEDS), mu=MUS, eta=ETAS)).rate.astype(float)
            error = np.hypot(data.growth_rate_standard_error, drawn.std("seed", ddof=1) / np.sqrt(SEEDS))
            z = ((data.growth_rate - drawn.mean("seed")) / error).values
            everything.append(z.ravel())
            clear = np.abs(drawn.mean("seed")) > 2 * error
            same = (np.sign(data.growth_rate) == np.sign(drawn.mean("seed"))).where(clear).mean().item()
            found = rj.shifts.fit(rows, samples)
            print(
                f"{name:28} samples {samples:2}: |z| at most {np.abs(z).max():.2f}, "
                f"beyond 2: {(np.abs(z) > 2).mean():.0%}; "
                f"signs agree on {same:.1%} of the clear cells; fitted {found.model}, period {found.period:.5g}",
                flush=True,
            )
    z = np.concatenate(everything)
    far = f"{(np.abs(z) > 2).mean():.1%} beyond 2, {(np.abs(z) > 4).sum()} beyond 4"
    print(f"{z.size} settings: {far}, mean {z.mean():+.2f}")


if __name__ == "__main__":
    main()
