"""Mean square and typical growth under a covariance matrix, a moving variance, and by other optimizers, against runs.

`python -m tests.moments_of_runs` simulates 10^5 runs at five settings each, by the plain loop below in float64, and
prints a z-score for each. Of a mean square the score is that of log E ||xi||^2 after 200 steps from E xi xi^T = I, xi
in the coordinates of `optimizers.stepping`. Of the almost-sure rate it is that of the mean growth of log ||xi||,
between independent sets of runs.
"""

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax

import resonance_jax as rj
from resonance_jax.optimizers.stepping import stepping
from resonance_jax.shifts import Inputs
from resonance_jax.theory.moments.followed import follow
from resonance_jax.theory.moments.maps import mean_square_map

AMPLITUDE, PERIOD, VARIANCE = np.array([0.5, -0.2, 0.3]), 20, 0.8
# Eigenvalues 0.1 to 10, dim 3; and a variance that breathes in 1 or 3 inputs. In larger steps a handful of runs carries
# the mean square, and its sampling error has no normal law.
COVARIANCES = [(0.9, 0.004, 2), (0.95, 0.004, 5), (0.5, 0.005, 1), (0.97, 0.001, 1), (0.9, 0.01, 20)]
BREATHING = [
    (1, 17, 0.98, 0.01, 5),
    (1, 17, 0.9, 0.01, 1),
    (3, 17, 0.95, 0.005, 2),
    (3, 9, 0.9, 0.005, 1),
    (3, 17, 0.98, 0.01, 20),
]
OPTIMIZERS = [
    ("nesterov", optax.sgd(0.01, momentum=0.97, nesterov=True), 5),
    ("nesterov", optax.sgd(0.005, momentum=0.99, nesterov=True), 1),
    ("averaged momentum", optax.chain(optax.trace(0.95), optax.ema(0.8, debias=False), optax.scale(-0.005)), 2),
    ("average", optax.chain(optax.ema(0.97, debias=False), optax.scale(-0.2)), 5),
    ("decaying weights", optax.chain(optax.trace(0.98), optax.add_decayed_weights(0.1), optax.scale(-0.01)), 20),
]
BURN_IN = 3060  # steps until typical runs have forgotten where they began; 1020 leave a bias of four standard errors


def covariance():
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    return turn * np.array([0.1, 1.0, 10.0]) @ turn.T


def settings():
    """name, shift, problem, mean, root of the covariance and inputs of the law at step k, optimizer, samples."""
    for mu, eta, samples in COVARIANCES:
        shift = rj.shifts.sinusoid(1 / PERIOD, amplitude=AMPLITUDE)
        problem = rj.problems.linear_regression(dim=3, samples=samples, input_variance=covariance())
        root = np.linalg.cholesky(covariance())

        def at(k, root=root):
            wave = jnp.sin(2 * jnp.pi * k / PERIOD)
            return wave * AMPLITUDE, root, Inputs(wave[None] * np.linalg.norm(AMPLITUDE), 0.0 * wave)

        name = f"covariance, mu={mu}, eta={eta}, {samples} samples"
        yield name, shift, problem, at, rj.optimizers.heavy_ball(mu, eta), samples
    for dim, T, mu, eta, samples in BREATHING:
        shift = rj.shifts.breathing(1 / T, variance=VARIANCE)
        problem = rj.problems.linear_regression(dim=dim, samples=samples)

        def at(k, dim=dim, T=T):
            added = VARIANCE * (1 + jnp.sin(2 * jnp.pi * k / T))
            return jnp.zeros(dim), jnp.sqrt(1 + added) * jnp.eye(dim), Inputs(jnp.zeros(1), added)

        name = f"breathing, dim={dim}, T={T}, mu={mu}, eta={eta}, {samples} samples"
        yield name, shift, problem, at, rj.optimizers.heavy_ball(mu, eta), samples
    for name, optimizer, samples in OPTIMIZERS:
        shift = rj.shifts.sinusoid(1 / PERIOD, amplitude=0.7)
        problem = rj.problems.linear_regression(dim=1, samples=samples)

        def at(k):
            wave = 0.7 * jnp.sin(2 * jnp.pi * k / PERIOD)
            return wave[None], jnp.eye(1), Inputs(wave[None], 0.0 * wave)

        yield f"{name}, {samples} samples", shift, problem, at, rj.optimizers.read(optimizer), samples


def simulated(seed, at, dim, num_runs, num_steps, *, optimizer, samples, burn_in=0):
    """log ||xi|| of each run after all steps, minus that after the burn-in; xi begins as a standard normal vector."""
    mark = burn_in or -1  # without a burn-in nothing is left out, not even the start
    stepped = stepping(optimizer)
    A, gain = np.array([[float(each) for each in row] for row in stepped.matrix()]), float(stepped.gain)

    def sized(xi):
        size = jnp.sqrt(jnp.sum(xi**2, axis=(1, 2)))
        return xi / size[:, None, None], jnp.log(size)

    def step(k, carry):
        key, xi, logs = carry
        key, own = jax.random.split(key)
        mean, root, _ = at(k.astype(float))
        x = mean + jax.random.normal(own, (num_runs, samples, dim)) @ root.T
        x = jnp.concatenate([x, jnp.ones((num_runs, samples, 1))], axis=2)
        residual = jnp.einsum("rsw,rw->rs", x, xi[:, 0] + stepped.reach * xi[:, 1])
        gradient = 2 * jnp.einsum("rs,rsw->rw", residual, x) / samples
        xi, grown = sized(jnp.einsum("ab,rbw->raw", A, xi).at[:, 1].add(gain * gradient))
        return key, xi, jnp.where(k == mark, 0, logs) + grown

    with jax.numpy_rank_promotion("allow"):
        key, start = jax.random.split(jax.random.key(seed))
        start = sized(jax.random.normal(start, (num_runs, len(A), dim + 1)))
        run = jax.jit(functools.partial(jax.lax.fori_loop, 0, num_steps, step))
        return np.asarray(run((key, *start))[2])


def predicted(shift, problem, at, num_steps, optimizer):
    """log E ||xi||^2 after so many steps, by the map that theory multiplies."""
    linear = mean_square_map(follow(shift, problem), optimizer)

    def step(entries, k):
        return linear.step(entries, linear.coordinates(at(k)[2])), None

    end = jax.lax.scan(step, tuple(linear.start), jnp.arange(float(num_steps)))[0]
    tracked = sum(squares(end, own) for own in linear.own)
    others = (problem.dim - linear.num_slopes) * squares(end, linear.rest) if linear.rest else 0.0
    return float(jnp.log(tracked + others))


def squares(entries, own):
    """Sum of the mean squares of the coordinates of one weight, whose moments are an upper triangle, row by row."""
    size = round((np.sqrt(8 * len(own) + 1) - 1) / 2)
    return sum(entries[own[a * size - a * (a - 1) // 2]] for a in range(size))


def mean_square_scores(num_runs, num_steps):
    found = {}
    for seed, (name, shift, problem, at, optimizer, samples) in enumerate(settings()):
        logs = simulated(seed, at, problem.dim, num_runs, num_steps, optimizer=optimizer, samples=samples)
        sizes = np.exp(2 * logs)
        error = sizes.std(ddof=1) / sizes.mean() / np.sqrt(num_runs)
        found[name] = (np.log(sizes.mean()) - predicted(shift, problem, at, num_steps, optimizer)) / error
    return found


def almost_sure_scores(num_runs, num_steps, num_keys=64):
    """Rates of `almost_sure_growth` over whole periods in each batch, against the growth of simulated runs."""
    found = {}
    for seed, (name, shift, problem, at, optimizer, samples) in enumerate(settings()):
        keys = jax.random.split(jax.random.key(1000 + seed), num_keys)
        of_run = dict(optimizer=optimizer, num_steps=61_200)  # tenths of 6120 steps: whole periods of 9, 17 and 20
        one = jax.vmap(
            lambda key, s=shift, p=problem, of_run=of_run: rj.theory.almost_sure_growth(s, p, key=key, **of_run).rate
        )
        ours = np.asarray(jax.jit(one)(keys), float)
        plain = dict(optimizer=optimizer, samples=samples)
        logs = simulated(seed, at, problem.dim, num_runs, BURN_IN + num_steps, burn_in=BURN_IN, **plain)
        theirs = logs / num_steps
        error = np.hypot(theirs.std(ddof=1) / np.sqrt(num_runs), ours.std(ddof=1) / np.sqrt(num_keys))
        found[name] = (theirs.mean() - ours.mean()) / error
    return found


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    for name, score in mean_square_scores(runs, 200).items():
        print(f"mean square: {name}: z = {score:+.2f}", flush=True)
    for name, score in almost_sure_scores(runs, 3060).items():
        print(f"almost sure: {name}: z = {score:+.2f}", flush=True)
