"""Random settings over every shift, problem, notion and precision, at scales from 1e-6 to 1e6, against plain NumPy.

`python -m tests.attack [settings per form]` prints a table: what was tried, how many settings, the worst deviation. The
references are written from the definitions alone: products of expected steps (Isserlis' theorem) and loops over the
drawn samples with mantissa and exponent apart.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax

import resonance_jax as rj
from resonance_jax.shifts import Inputs, periodic
from tests import reference

regression = rj.problems.linear_regression


def covariances(rng, kind, dim, scale):
    if kind == "number":
        value = scale * rng.uniform(0.3, 3)
        return value, value * np.eye(dim)
    if kind == "vector":
        values = scale * 10 ** rng.uniform(-1, 1, dim)
        return values, np.diag(values)
    root = rng.normal(size=(dim, dim)) * np.sqrt(scale)
    matrix = root @ root.T + 0.05 * scale * np.eye(dim)
    return matrix, matrix


def wave(phase):
    return jnp.sin(2 * jnp.pi * phase)


# name -> dim -> (function of f and parameters -> shift, the same in NumPy: step, T, parameters -> mean, added variance)
SHIFTS = {
    "sinusoid": (
        lambda f, p, dim: rj.shifts.sinusoid(f, amplitude=p[0]),
        lambda k, T, p, dim: (p[0] * np.sin(2 * np.pi * k / T) * np.ones(dim), 0.0),
    ),
    "sinusoid per input": (
        lambda f, p, dim: rj.shifts.sinusoid(f, amplitude=p[:dim]),
        lambda k, T, p, dim: (p[:dim] * np.sin(2 * np.pi * k / T), 0.0),
    ),
    "breathing": (
        lambda f, p, dim: rj.shifts.breathing(f, variance=p[0] ** 2),
        lambda k, T, p, dim: (np.zeros(dim), p[0] ** 2 * (1 + np.sin(2 * np.pi * k / T))),
    ),
    "two lines and variance": (
        lambda f, p, dim: periodic(
            f,
            lambda phase: Inputs(
                jnp.stack([wave(phase), wave(phase + 0.1)])[: min(2, dim)], p[3] ** 2 * wave(phase) ** 2
            ),
            directions=p[: dim * min(2, dim)].reshape(min(2, dim), dim),
        ),
        lambda k, T, p, dim: (
            np.array([np.sin(2 * np.pi * k / T), np.sin(2 * np.pi * (k / T + 0.1))])[: min(2, dim)]
            @ p[: dim * min(2, dim)].reshape(min(2, dim), dim),
            p[3] ** 2 * np.sin(2 * np.pi * k / T) ** 2,
        ),
    ),
    "resting": (
        lambda f, p, dim: rj.shifts.resting(p[0] ** 2),
        lambda k, T, p, dim: (np.zeros(dim), p[0] ** 2),
    ),
}


def log_rates(sequence, **settings):
    """Rates of mean and mean square over (mean, covariance) of a period, with exponents apart."""
    totals, logs = [None, None], [0.0, 0.0]
    for mean, C in sequence:
        for i, step in enumerate(reference.expected_step(mean, C, **settings)[::-1]):
            totals[i] = step if totals[i] is None else step @ totals[i]
            size = np.abs(totals[i]).max()
            totals[i], logs[i] = totals[i] / size, logs[i] + np.log(size)
    n = len(sequence)
    return np.array([(logs[i] + reference.log_radius(totals[i])) / (n * (i + 1)) for i in range(2)])


def attack_rates(number, rng, tolerance):
    """Mean and mean square of periodic shifts: deviations relative to the size of the rate, at least 1."""
    worst, count, bad = 0.0, 0, []
    for name, (make, plain) in SHIFTS.items():
        for dim, kind, bias, reduction in (
            (1, "number", True, "mean"),
            (2, "number", False, "sum"),
            (3, "number", True, "mean"),
            (2, "vector", True, "mean"),
            (2, "matrix", False, "mean"),
            (3, "matrix", True, "sum"),
        ):

            @jax.jit
            def ours(f, p, variance, factor, mu, eta, make=make, dim=dim, bias=bias, reduction=reduction):
                shift = make(f, p, dim)
                problem = regression(
                    dim=dim, samples=3, input_variance=variance, loss_factor=factor, bias=bias, reduction=reduction
                )
                settings = dict(mu=mu, eta=eta)
                rates = rj.theory.mean_growth, rj.theory.mean_square_growth
                return jnp.stack([rate(shift, problem, **settings).rate for rate in rates])

            for _ in range(number):
                scale = 10 ** rng.uniform(-6, 6) if not bias else 10 ** rng.uniform(-2, 2)
                variance, C = covariances(rng, kind, dim, scale)
                p, T = np.sqrt(scale) * rng.normal(size=12), int(rng.integers(2, 12))
                factor, mu = 10 ** rng.uniform(-6, 6), rng.choice([0.0, rng.uniform(), 1 - 10 ** rng.uniform(-4, -1)])
                whole = factor * (3 if reduction == "sum" else 1)
                sequence = [plain(k, T, p, dim) for k in range(T)]
                sequence = [(mean, C + added * np.eye(dim)) for mean, added in sequence]
                trace = max(np.trace(C_k) + m @ m + bias for m, C_k in sequence) * whole
                eta = 10 ** rng.uniform(-3, 0.5) / trace
                theirs = log_rates(sequence, mu=mu, eta=eta, samples=3, factor=whole, bias=bias)
                arguments = [np.asarray(x, jnp.result_type(float)) for x in (1 / T, p, variance, factor, mu, eta)]
                found = np.asarray(ours(*arguments), float)
                off = np.abs(found - theirs) / np.maximum(1, np.abs(theirs))
                off = np.where(np.isneginf(found) & (theirs < -20), 0, off)
                worst, count = max(worst, float(off.max())), count + 2
                if not off.max() < tolerance:
                    bad.append(
                        (name, dim, kind, bias, T, float(mu), float(eta * trace), found.tolist(), theirs.tolist())
                    )
    return count, worst, bad


def attack_runs(number, rng, tolerance):
    """Distance (decades) and growth of runs, on the same draws."""
    worst, count, bad = 0.0, 0, []
    makes = {name: make for name, (make, _) in SHIFTS.items()} | {
        "ar2": lambda f, p, dim: rj.shifts.ar2(f, variance=p[0] ** 2, noise_variance=p[0] ** 2 * 1e-3),
        "square wave": lambda f, p, dim: rj.shifts.square_wave(1 / f, dim=dim, norm=jnp.abs(p[0])),
        "switching": lambda f, p, dim: rj.shifts.switching(1 / f, dim=dim, variance=p[0] ** 2),
    }
    for name, make in makes.items():
        for dim, kind, noise in ((1, "number", 0.0), (3, "matrix", 1.0), (8, "vector", 1.0)):

            @jax.jit
            def ours(key, f, p, variance, noise, mu, eta, make=make, dim=dim):
                parts = dict(
                    shift=make(f, p, dim),
                    problem=regression(dim=dim, samples=2, input_variance=variance, noise_variance=noise),
                )
                run = rj.oscillate(key, num_steps=120, tail=30, mu=mu, eta=eta, **parts)
                return run, reference.traced_draws(key, num_steps=120, **parts)

            for _ in range(number):
                scale, f = 10 ** rng.uniform(-6, 6), rng.uniform(0.01, 0.5)
                variance, _ = covariances(rng, kind, dim, scale)
                p = np.sqrt(scale) * rng.normal(size=12 if dim < 4 else 2 * dim)
                mu, eta = rng.uniform(), 10 ** rng.uniform(-3, 1) / (dim * scale * 4 + 1)
                numbers = [np.asarray(x, jnp.result_type(float)) for x in (f, p, variance, noise * scale, mu, eta)]
                run, drawn = ours(jax.random.key(int(rng.integers(2**31))), *numbers)
                drawn = [np.asarray(each, float) for each in drawn]
                mu, eta = float(numbers[4]), float(numbers[5])
                theirs = reference.unlimited(*drawn, mu=mu, eta=eta, tail=30)
                found = np.array([float(run["log10_distance"]), float(run["growth_rate"])])
                off = np.abs(found - theirs) / np.maximum(1, np.abs(theirs)) * [1, 10]
                worst, count = max(worst, float(off.max())), count + 2
                if not off.max() < tolerance:
                    bad.append((name, dim, kind, f, mu, eta, scale, found.tolist(), list(map(float, theirs))))
    return count, worst, bad


def attack_training(number, rng, tolerance):
    """optax.sgd by `train` against `oscillate` with the same key: relative deviation of the distance."""
    worst, count, bad = 0.0, 0, []
    for dim, kind in ((1, "number"), (2, "vector"), (3, "matrix")):

        @jax.jit
        def both(key, f, p, variance, mu, eta, dim=dim):
            parts = dict(
                shift=SHIFTS["two lines and variance"][0](f, p, dim),
                problem=regression(dim=dim, samples=3, input_variance=variance, noise_variance=0.1),
            )
            run = rj.oscillate(key, num_steps=150, tail=20, mu=mu, eta=eta, **parts)
            sgd = optax.sgd(eta, momentum=mu)
            return 10 ** run["log10_distance"], rj.train(key, num_steps=150, tail=20, optimizer=sgd, **parts)[
                "distance"
            ]

        for _ in range(number):
            variance, _ = covariances(rng, kind, dim, 1.0)
            numbers = (rng.uniform(0.01, 0.5), rng.normal(size=12), variance, rng.uniform(), 0.02 * rng.uniform())
            numbers = [np.asarray(x, jnp.result_type(float)) for x in numbers]
            theirs, found = (float(x) for x in both(jax.random.key(int(rng.integers(2**31))), *numbers))
            off = abs(found / theirs - 1) if theirs < 1e3 else 0.0
            worst, count = max(worst, off), count + 1
            if not off < tolerance:
                bad.append((dim, kind, found, theirs))
    return count, worst, bad


def attack_redrawn(number, rng, tolerance):
    """A mean drawn anew, against Gauss-Hermite quadrature in every entry."""
    worst, count, bad = 0.0, 0, []
    for dim, T in ((1, 1), (1, 4), (2, 1), (2, 3)):

        @jax.jit
        def ours(v, variance, mu, eta, dim=dim, T=T):
            shift, problem = (
                rj.shifts.switching(T, dim=dim, variance=v),
                regression(dim=dim, samples=2, input_variance=variance),
            )
            rates = rj.theory.mean_growth, rj.theory.mean_square_growth
            return jnp.stack([rate(shift, problem, mu=mu, eta=eta, nodes=8).rate for rate in rates])

        nodes, weights = np.polynomial.hermite_e.hermegauss(2 * T + 1)
        for _ in range(number):
            scale = 10 ** rng.uniform(-3, 3)
            v, variance, mu = scale * rng.uniform(), scale * rng.uniform(0.1, 1), rng.uniform()
            eta = 10 ** rng.uniform(-3, 0) / (2 * (dim * (v + variance) + 1))
            square, first = 0, 0
            for choice in np.ndindex(*(2 * T + 1,) * dim):
                mean = np.sqrt(v) * nodes[list(choice)]
                step, expected = reference.expected_step(mean, variance * np.eye(dim), mu=mu, eta=eta, samples=2)
                weight = np.prod(weights[list(choice)]) / np.sqrt(2 * np.pi) ** dim
                square = square + weight * np.linalg.matrix_power(step, T)
                first = first + weight * np.linalg.matrix_power(expected, T)
            theirs = np.array([reference.log_radius(first) / T, reference.log_radius(square) / (2 * T)])
            found = np.asarray(ours(*(np.asarray(x, jnp.result_type(float)) for x in (v, variance, mu, eta))), float)
            off = np.abs(found - theirs) / np.maximum(1, np.abs(theirs))
            worst, count = max(worst, float(off.max())), count + 2
            if not off.max() < tolerance:
                bad.append((dim, T, v, variance, mu, eta, found.tolist(), theirs.tolist()))
    return count, worst, bad


def attack_baselines(number, rng, tolerance):
    """f = 0 and T = 0: every rate is that of inputs that rest with the variance of the baseline."""
    worst, count, bad = 0.0, 0, []
    for dim in (1, 3):
        zero = {
            "sinusoid": (lambda v, dim=dim: rj.shifts.sinusoid(0.0, amplitude=v), 0.0),
            "square wave": (lambda v, dim=dim: rj.shifts.square_wave(0, dim=dim, norm=v), 0.0),
            "breathing": (lambda v: rj.shifts.breathing(0.0, variance=v), 1.0),
            "switching": (lambda v, dim=dim: rj.shifts.switching(0, dim=dim, variance=v), 1.0),
        }
        for name, (make, adds) in zero.items():
            for _ in range(number):
                v, c, mu = 10 ** rng.uniform(-3, 3), 10 ** rng.uniform(-3, 3), rng.uniform()
                total = c + adds * v
                eta = 10 ** rng.uniform(-3, 0) / (2 * (dim * total + 1))
                settings, problem = dict(mu=mu, eta=eta), regression(dim=dim, samples=2, input_variance=c)
                theirs = log_rates([(np.zeros(dim), total * np.eye(dim))], samples=2, **settings)
                rates = rj.theory.mean_growth, rj.theory.mean_square_growth
                found = np.array([float(rate(make(v), problem, **settings)) for rate in rates])
                off = np.abs(found - theirs) / np.maximum(1, np.abs(theirs))
                worst, count = max(worst, float(off.max())), count + 2
                if not off.max() < tolerance:
                    bad.append((name, dim, v, c, mu, eta, found.tolist(), theirs.tolist()))
    return count, worst, bad


ATTACKS = {
    "rates of periodic shifts": (attack_rates, 1e-7, 2e-3),
    "a mean drawn anew": (attack_redrawn, 1e-7, 2e-3),
    "f = 0 and T = 0": (attack_baselines, 1e-7, 2e-3),
    "runs": (attack_runs, 1e-7, 2e-2),
    "training by optax.sgd": (attack_training, 1e-6, 1e-2),
}


def main(number):
    print("| what | precision | numbers | worst deviation | beyond the tolerance |\n| --- | --- | --- | --- | --- |")
    failed = []
    for name, (attack, double, single) in ATTACKS.items():
        for wide, tolerance in ((True, double), (False, single)):
            with jax.enable_x64(wide):
                few = max(1, number // 4) if attack is attack_baselines else number
                count, worst, bad = attack(few, np.random.default_rng(17), tolerance)
            print(
                f"| {name} | {'float64' if wide else 'float32'} | {count} | {worst:.1e} | {len(bad)} of {tolerance:g} |"
            )
            sys.stdout.flush()
            failed += [(name, wide, *each) for each in bad]
    for each in failed[:40]:
        print(each)
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20) > 0)
