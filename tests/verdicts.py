"""`explain` on 30 settings whose cause is known by construction, over step sizes from 1e-4 to 1.

Too long for every test run: `python -m tests.verdicts`.
"""

import numpy as np

import resonance_jax as rj

regression, sinusoid = rj.problems.linear_regression, rj.shifts.sinusoid


def settings(rng):
    """Verdict, shift, problem, mu, eta. The comments say why the verdict is the right one."""

    def step(low, high):
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    for mu in (0.0, 0.3, 0.6, 0.9, 0.99):  # eta b is 1.2 times the limit 2 (1 + mu) of iid inputs
        eta = step(1e-4, 1.0)
        problem = regression(dim=1, samples=100, input_variance=1.2 * (1 + mu) / eta)
        yield "step too large", sinusoid(step(0.01, 0.4), amplitude=0.01), problem, mu, eta
    for mu in (0.0, 0.2, 0.4, 0.6):  # eta b is five times the limit at the far end, a tenth of it for iid inputs
        eta = step(1e-4, 0.1)
        far = np.sqrt(5 * (1 + mu) / eta)
        variance = 0.1 * (1 + mu) / eta
        yield (
            "frozen instability",
            sinusoid(1e-3, amplitude=far),
            regression(dim=1, samples=50, input_variance=variance),
            mu,
            eta,
        )
    for _ in range(5):  # hardly any drift, one sample, damping far below eta b
        eta = step(1e-3, 0.1)
        yield "noise", sinusoid(step(0.01, 0.4), amplitude=0.01), regression(dim=1, samples=1), 1 - eta / 4, eta
    for _ in range(5):  # many samples; in the first tongue, whose tip is at a damping of 0.345 sqrt(eta)
        eta = step(1e-4, 0.05)
        yield "resonance", sinusoid(0.463 * eta**0.5), regression(dim=1, samples=100), 1 - 0.15 * eta**0.5, eta
    for _ in range(3):  # the same with one sample, and a damping at which noise alone suffices
        eta = step(0.005, 0.05)
        yield "both", sinusoid(0.463 * eta**0.5), regression(dim=1, samples=1), 1 - min(0.1 * eta**0.5, eta), eta
    for mu in (0.0, 0.5, 0.8, 0.9):  # far more damping than the tongues bear, and eta b at most a tenth of its limit
        eta = min(step(1e-4, 1.0), 0.03 * (1 - mu))
        yield "stable", sinusoid(step(0.01, 0.4)), regression(dim=1, samples=10), mu, eta
    for _ in range(4):  # E (1 - a z^2)^2 = 1 - 2a + 3a^2 > 1 and E log |1 - a z^2| < 0 for a = 0.9
        eta = step(1e-4, 1.0)
        problem = regression(dim=1, samples=1, bias=False, input_variance=0.45 / eta)
        yield "mean-square only", sinusoid(0.1, amplitude=1e-3), problem, 0.0, eta


def main() -> None:
    wrong = 0
    for number, (expected, shift, problem, mu, eta) in enumerate(settings(np.random.default_rng(0)), start=1):
        found = rj.theory.explain(shift, problem, mu, eta)
        wrong += found.verdict != expected
        mark = "" if found.verdict == expected else f"  WRONG: {found.verdict}"
        print(f"{number:2d} {expected:<19} mu {mu:.4f} eta {eta:.2e}{mark}", flush=True)
        if mark:
            print(found)
    print(f"{wrong} of {number} wrong")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
