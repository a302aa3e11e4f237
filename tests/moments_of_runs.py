"""Mean square and typical growth under a covariance matrix and under a moving variance, against simulated runs.

`python -m tests.moments_of_runs` simulates 10^5 runs at five settings each in NumPy and prints a z-score for each. For
the mean square it is the score of log E ||xi||^2 after the last step, from E xi xi^T = I. For the almost-sure rate it
is the score of the mean of log ||xi||, between two independent sets of runs.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import resonance_jax as rj
from resonance_jax.shifts import Inputs
from resonance_jax.theory.moments.followed import follow
from resonance_jax.theory.moments.maps import mean_square_map

AMPLITUDE = np.array([0.5, -0.2, 0.3])
# eigenvalues 0.1 to 10, dim 3; and a variance that breathes in 1 or 3 inputs
# (with larger steps a handful of runs dominates the mean square, and its sampling error is not normal)
COVARIANCES = [(0.9, 0.004, 2), (0.95, 0.004, 5), (0.5, 0.005, 1), (0.97, 0.001, 1), (0.9, 0.01, 20)]
BREATHING = [
    (1, 17, 0.98, 0.01, 5),
    (1, 17, 0.9, 0.01, 1),
    (3, 17, 0.95, 0.005, 2),
    (3, 9, 0.9, 0.005, 1),
    (3, 17, 0.98, 0.01, 20),
]


def covariance():
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    return turn * np.array([0.1, 1.0, 10.0]) @ turn.T


def simulated(rng, means, roots, num_runs, *, mu, eta, samples):
    """log of the mean of ||xi||^2 over runs from E xi xi^T = I, and its standard error."""
    dim = means.shape[1]
    error, velocity = rng.normal(size=(2, num_runs, dim + 1))
    for mean, root in zip(means, roots, strict=True):
        x = mean + rng.normal(size=(num_runs, samples, dim)) @ root.T
        x = np.concatenate([x, np.ones((num_runs, samples, 1))], axis=2)
        residual = np.einsum("rsw,rw->rs", x, error)
        velocity = mu * velocity - 2 * eta * np.einsum("rs,rsw->rw", residual, x) / samples
        error = error + velocity
    squares = (error**2).sum(1) + (velocity**2).sum(1)
    return np.log(squares.mean()), squares.std() / squares.mean() / np.sqrt(num_runs)


def predicted(shift, problem, inputs, *, mu, eta):
    """The same in expectation, by the map that theory multiplies."""
    linear = mean_square_map(follow(shift, problem), jnp.asarray(mu), jnp.asarray(eta))
    of_steps = jax.vmap(linear.coordinates)(inputs)
    end = jax.lax.scan(lambda entries, one: (linear.step(entries, one), None), tuple(linear.start), of_steps)[0]
    tracked = sum(end[own[0]] + end[own[2]] for own in linear.own)
    others = (problem.dim - linear.num_slopes) * (end[linear.rest[0]] + end[linear.rest[2]]) if linear.rest else 0.0
    return float(jnp.log(tracked + others))


def scores(num_runs, num_steps):
    found = {}
    for seed, (mu, eta, samples) in enumerate(COVARIANCES):
        shift = rj.shifts.sinusoid(1 / 20, amplitude=AMPLITUDE)
        problem = rj.problems.linear_regression(dim=3, samples=samples, input_variance=covariance())
        means = np.outer(np.sin(2 * np.pi * np.arange(num_steps) / 20), AMPLITUDE)
        roots = np.broadcast_to(np.linalg.cholesky(covariance()), (num_steps, 3, 3))
        inputs = Inputs(jnp.sin(2 * jnp.pi * jnp.arange(float(num_steps)) / 20)[:, None], jnp.zeros(num_steps))
        inputs = inputs._replace(mean=inputs.mean * np.linalg.norm(AMPLITUDE))  # along the line, as the law has it
        settings = dict(mu=mu, eta=eta)
        measured, error = simulated(np.random.default_rng(seed), means, roots, num_runs, samples=samples, **settings)
        found[f"covariance, mu={mu}, eta={eta}, {samples} samples"] = (
            measured - predicted(shift, problem, inputs, **settings)
        ) / error
    for seed, (dim, T, mu, eta, samples) in enumerate(BREATHING):
        shift = rj.shifts.breathing(1 / T, variance=0.8)
        problem = rj.problems.linear_regression(dim=dim, samples=samples)
        added = 0.8 * (1 + np.sin(2 * np.pi * np.arange(num_steps) / T))
        roots = np.sqrt(1 + added)[:, None, None] * np.eye(dim)
        inputs = Inputs(jnp.zeros((num_steps, 1)), jnp.asarray(added))
        settings, rng = dict(mu=mu, eta=eta), np.random.default_rng(100 + seed)
        measured, error = simulated(rng, np.zeros((num_steps, dim)), roots, num_runs, samples=samples, **settings)
        found[f"breathing, dim={dim}, T={T}, mu={mu}, eta={eta}, {samples} samples"] = (
            measured - predicted(shift, problem, inputs, **settings)
        ) / error
    return found


def typical_growth(rng, means, roots, num_runs, *, mu, eta, samples, burn_in):
    """Mean over runs of the growth of log ||xi|| per step after the burn-in, and its standard error."""
    dim = means.shape[1]
    error, velocity = rng.normal(size=(2, num_runs, dim + 1))
    logs = np.zeros(num_runs)
    for k, (mean, root) in enumerate(zip(means, roots, strict=True)):
        x = mean + rng.normal(size=(num_runs, samples, dim)) @ root.T
        x = np.concatenate([x, np.ones((num_runs, samples, 1))], axis=2)
        residual = np.einsum("rsw,rw->rs", x, error)
        velocity = mu * velocity - 2 * eta * np.einsum("rs,rsw->rw", residual, x) / samples
        error = error + velocity
        size = np.sqrt((error**2).sum(1) + (velocity**2).sum(1))
        error, velocity = error / size[:, None], velocity / size[:, None]
        logs = np.log(size) + (logs if k >= burn_in else 0)
    rates = logs / (len(means) - burn_in)
    return rates.mean(), rates.std(ddof=1) / np.sqrt(num_runs)


def almost_sure_scores(num_runs, num_steps, burn_in):
    """Rates of `almost_sure_growth`, 64 keys, against the growth of simulated runs over whole periods."""
    found, keys = {}, jax.random.split(jax.random.key(1), 64)

    def compare(name, shift, problem, means, roots, seed, mu, eta, samples):
        settings = dict(mu=mu, eta=eta, num_steps=20_400)  # whole periods in each tenth
        one = jax.vmap(lambda key: rj.theory.almost_sure_growth(shift, problem, key=key, **settings).rate)
        ours = np.asarray(jax.jit(one)(keys), float)
        rng = np.random.default_rng(seed)
        theirs, error = typical_growth(rng, means, roots, num_runs, mu=mu, eta=eta, samples=samples, burn_in=burn_in)
        own_error = ours.std(ddof=1) / np.sqrt(len(ours))
        found[name] = (theirs - ours.mean()) / np.hypot(error, own_error)

    k = np.arange(num_steps)
    for seed, (mu, eta, samples) in enumerate(COVARIANCES):
        shift = rj.shifts.sinusoid(1 / 20, amplitude=AMPLITUDE)
        problem = rj.problems.linear_regression(dim=3, samples=samples, input_variance=covariance())
        roots = np.broadcast_to(np.linalg.cholesky(covariance()), (num_steps, 3, 3))
        means = np.outer(np.sin(2 * np.pi * k / 20), AMPLITUDE)
        compare(f"covariance, mu={mu}, eta={eta}", shift, problem, means, roots, seed, mu, eta, samples)
    for seed, (dim, T, mu, eta, samples) in enumerate(BREATHING):
        shift = rj.shifts.breathing(1 / T, variance=0.8)
        problem = rj.problems.linear_regression(dim=dim, samples=samples)
        roots = np.sqrt(1 + 0.8 * (1 + np.sin(2 * np.pi * k / T)))[:, None, None] * np.eye(dim)
        name = f"breathing, dim={dim}, T={T}, mu={mu}, eta={eta}"
        compare(name, shift, problem, np.zeros((num_steps, dim)), roots, 100 + seed, mu, eta, samples)
    return found


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    for title, found in {
        "mean square": scores(runs, 200),
        "almost sure": almost_sure_scores(runs // 20, 1020 + 306, 306),
    }.items():
        for name, score in found.items():
            print(f"{title}: {name}: z = {score:+.2f}", flush=True)
