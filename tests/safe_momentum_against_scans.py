"""Safe momenta at 40 random settings against a dense scan of frequencies, and against simulated runs.

Too long for every test run: `python -m tests.safe_momentum_against_scans`, a few minutes on a GPU.
"""

import argparse
import functools

import numpy as np

import resonance_jax as rj

MOST = 0.001  # an answer may lie this far above the true value
NUM_FREQUENCIES = 2000


NOTIONS = {
    "mean": rj.theory.mean_growth,
    "mean square": rj.theory.mean_square_growth,
    "almost sure": functools.partial(rj.theory.almost_sure_growth, num_steps=100_000),
}


def problem_of(samples, variance):
    return rj.problems.linear_regression(dim=1, samples=samples, input_variance=variance, max_samples=100)


def point_of(rate):
    """Its rate, with the whole setting as arguments: one program serves all settings."""

    def point(f, mu, eta, amplitude, variance, samples):
        shift = rj.shifts.sinusoid(f, amplitude=amplitude)
        return {"rate": rate(shift, problem_of(samples, variance), mu=mu, eta=eta).rate}

    return point


POINTS = {notion: point_of(rate) for notion, rate in NOTIONS.items()}


def dense_scan(notion, setting, low, high):
    """Momenta between which the first of 2,000 frequencies up to 0.5 begins to grow."""
    f = np.arange(1, NUM_FREQUENCIES + 1) / (2 * NUM_FREQUENCIES)
    mu = np.linspace(low, high, 32)
    rates = rj.sweep(POINTS[notion], dict(f=f, mu=mu) | setting).rate
    grows = (rates > 0).any([dim for dim in rates.dims if dim != "mu"]).values
    first = int(grows.argmax()) if grows.any() else len(mu)
    return (mu[first - 1] if first else np.nan), (mu[first] if first < len(mu) else np.nan)


def run(seed, mu, f, eta, amplitude, variance, samples):
    shift = rj.shifts.sinusoid(f, amplitude=amplitude)
    settings = dict(mu=mu, eta=eta, num_steps=50_000, tail=1)
    return rj.oscillate(rj.cell_key(seed, mu), shift=shift, problem=problem_of(samples, variance), **settings)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--settings", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    worst, wrong = -np.inf, []
    print("notion, eta, amplitude, variance, samples: safe momentum; first growth of the scan; runs below and above")
    for number in range(arguments.settings):
        notion = list(NOTIONS)[number % 3]
        eta, amplitude, variance = (float(np.exp(rng.uniform(*np.log(r)))) for r in ((1e-4, 0.3), (0.1, 3), (0.1, 10)))
        samples = int(np.exp(rng.uniform(0, np.log(101))))
        setting = dict(eta=[eta], amplitude=[amplitude], variance=[variance], samples=[samples])

        def shift(f, amplitude=amplitude):
            return rj.shifts.sinusoid(f, amplitude=amplitude)

        safe = rj.theory.largest_safe_momentum(shift, problem_of(samples, variance), eta, rate=NOTIONS[notion])
        top = 0.0 if np.isnan(safe.mu) else safe.mu
        low, high = dense_scan(notion, setting, 0.0, max(top, 1e-3))
        if np.isnan(high):  # nothing below; look closely above it
            low, high = dense_scan(notion, setting, top, min(top + 0.02, 0.9995))
        excess = top - (high if not np.isnan(high) else np.inf)
        runs = ""
        if safe.margin > 0 and notion != "mean square":
            above = safe.mu + safe.margin + 0.1 * (1 - safe.mu) * (1 if notion == "mean" else 0.3)
            axes = dict(seed=np.arange(64), mu=[0.998 * safe.mu, above], f=[safe.frequency]) | setting
            below, beyond = rj.sweep(run, axes).growth_rate.median("seed").values.ravel()
            runs = f"{below:+.2e} {beyond:+.2e}"
            if notion == "almost sure" and not below < 0 < beyond:
                wrong.append((number, "runs"))
        if excess > MOST:
            wrong.append((number, f"above the truth by {excess:.4f}"))
        worst = max(worst, excess)
        words = f"{notion}, {eta:.2e}, {amplitude:.2f}, {variance:.2f}, {samples}"
        print(f"{words}: {safe.mu:.5f} at f = {safe.frequency:.5f}; {low:.5f} to {high:.5f}; {runs}", flush=True)
    print(f"largest excess over the scan {worst:+.5f}; wrong: {wrong}")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
