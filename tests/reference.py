"""Plain NumPy and SciPy, loops and float64: the reference for the fast code."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp


def draws(key, shift, problem, num_steps):
    """What a run draws: augmented inputs (steps, samples, weights), noise (steps, samples), theta_0 - theta*."""
    return [np.asarray(each, float) for each in jax.jit(lambda key: traced_draws(key, shift, problem, num_steps))(key)]


def traced_draws(key, shift, problem, num_steps):
    """`draws` as a part of a compiled function."""
    weights_key, start_key, shift_key, noise_key = jax.random.split(key, 4)
    theta_0, theta_star = problem.init(weights_key, shift, None)
    k = np.arange(num_steps, dtype=np.int32)
    inputs, _ = shift.inputs(shift_key, jnp.asarray(k), shift.init(start_key))
    step_keys = jax.vmap(lambda one: jax.random.fold_in(noise_key, one))(k)
    x, eps = jax.vmap(lambda key, k, one: problem.batch(problem.draw(key, k), one))(step_keys, k, inputs)
    return x, eps, theta_0 - theta_star


def sgdm(x, eps, error, *, mu, eta, tail, factor=2.0, reduction="mean"):
    """SGDm on the drawn samples. Returns log10 of the mean distance of the last steps, and the growth rate."""
    velocity = np.zeros_like(error)
    start = np.log(np.linalg.norm(error))
    distances = []
    for x_k, eps_k in zip(x, eps, strict=True):
        residual = x_k @ error - eps_k
        per_sample = factor * residual[:, None] * x_k
        gradient = per_sample.mean(0) if reduction == "mean" else per_sample.sum(0)
        velocity = mu * velocity - eta * gradient
        error = error + velocity
        distances.append(np.linalg.norm(error))
    end = np.log(np.linalg.norm(np.concatenate([error, velocity])))
    return np.log10(np.mean(distances[-tail:])), (end - start) / len(x)


def unlimited(x, eps, error, *, mu, eta, tail, factor=2.0):
    """`sgdm` for runs of any range: mantissas in float64 and exponents as Python integers."""

    def sized(vector, exponent):  # largest entry in [0.5, 1)
        top = math.frexp(np.abs(vector).max())[1]
        return np.ldexp(vector, -top), exponent + top

    def total(*terms):
        terms = [sized(*term) for term in terms if np.any(term[0])]
        top = max(exponent for _, exponent in terms)
        return sum(np.ldexp(vector, max(exponent - top, -3000)) for vector, exponent in terms), top

    def log_norm(*terms):
        vector, exponent = total(*terms)
        return np.log(np.linalg.norm(vector)) + exponent * np.log(2)

    error, velocity, (rate, rate_exponent) = (error, 0), (np.zeros_like(error), 0), math.frexp(eta)
    start, logs = log_norm(error), []
    for x_k, eps_k in zip(x, eps, strict=True):
        unit, size = sized(x_k, 0)
        pull = -rate * factor * unit.T @ (unit @ error[0]) / len(unit)
        kick = rate * factor * unit.T @ eps_k / len(unit)
        velocity = (mu * velocity[0], velocity[1])
        velocity = total(velocity, (pull, rate_exponent + 2 * size + error[1]), (kick, rate_exponent + size))
        error = total(error, velocity)
        logs.append(log_norm(error))
    top, last = max(logs[-tail:]), np.array(logs[-tail:])
    end = np.logaddexp(2 * log_norm(error), 2 * log_norm(velocity)) / 2
    return (top + np.log(np.mean(np.exp(last - top)))) / np.log(10), (end - start) / len(x)


def adam(x, eps, error, *, eta, beta1, beta2=0.999, epsilon=1e-8, tail):
    """Adam (Kingma and Ba, algorithm 1) on the drawn samples, squared error. Returns the mean distance."""
    first, second = np.zeros_like(error), np.zeros_like(error)
    distances = []
    for k, (x_k, eps_k) in enumerate(zip(x, eps, strict=True), start=1):
        gradient = 2 * ((x_k @ error - eps_k)[:, None] * x_k).mean(0)
        first = beta1 * first + (1 - beta1) * gradient
        second = beta2 * second + (1 - beta2) * gradient**2
        error = error - eta * (first / (1 - beta1**k)) / (np.sqrt(second / (1 - beta2**k)) + epsilon)
        distances.append(np.linalg.norm(error))
    return np.mean(distances[-tail:])


def gradient_matrix(m, variance=1.0, factor=2.0):
    """B of one input with a bias weight, entry by entry."""
    return factor * np.array([[variance + m * m, m], [m, 1.0]])


def log_rho_of_ode(f, mu, eta, amplitude=0.5, variance=1.0, factor=2.0):
    """log rho of the monodromy matrix of the sinusoid by DOP853 at rtol 1e-12, rescaled between pieces."""
    alpha, period = (1 - mu) / np.sqrt(eta), np.sqrt(eta) / f

    zero, one = np.zeros((2, 2)), np.eye(2)
    still, linear, square = (  # A = still + m linear + m^2 square
        np.block([[zero, top], [-factor * np.array(B), bottom]])
        for top, B, bottom in (
            (one, [[variance, 0], [0, 1]], -alpha * one),
            (zero, [[0, 1], [1, 0]], zero),
            (zero, [[1, 0], [0, 0]], zero),
        )
    )

    def derivative(t, flat):
        m = amplitude * math.sin(2 * np.pi * t / period)
        return ((still + m * linear + m * m * square) @ flat.reshape(4, 4)).ravel()

    psi, log_scale = np.eye(4), 0.0
    pieces = max(1, int(np.ceil(alpha * period / 30)))
    for i in range(pieces):
        span = (i * period / pieces, (i + 1) * period / pieces)
        solution = solve_ivp(derivative, span, psi.ravel(), method="DOP853", rtol=1e-12, atol=1e-30)
        psi = solution.y[:, -1].reshape(4, 4)
        log_scale += np.log(np.abs(psi).max())
        psi = psi / np.abs(psi).max()
    return log_scale + np.log(np.abs(np.linalg.eigvals(psi)).max())


def discrete_product(T, mu, eta, amplitude=0.5):
    """Product of the one-step matrices over a period of T steps."""
    product = np.eye(4)
    for k in range(T):
        B = gradient_matrix(amplitude * np.sin(2 * np.pi * k / T))
        identity = np.eye(2)
        step = np.block([[identity - eta * B, mu * identity], [-eta * B, mu * identity]])
        product = step @ product
    return product


def one_step_matrix(B, mu, eta):
    """M of one step of SGDm on (e, v)."""
    identity = np.eye(len(B))
    return np.block([[identity - eta * B, mu * identity], [-eta * B, mu * identity]])


def expected_kronecker(mean, *, mu, eta, samples, variance=1.0, factor=2.0, bias=True):
    """E[M (x) M] of one step and E[M], by Gauss-Hermite quadrature over all samples: exact for polynomials."""
    dim = len(mean)
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)  # exact to degree 5; M (x) M has degree 4 in each input
    square, first = 0, 0
    for choice in itertools.product(range(3), repeat=samples * dim):
        z = nodes[list(choice)].reshape(samples, dim)
        x = np.asarray(mean) + np.sqrt(variance) * z
        x = np.column_stack([x, np.ones(samples)]) if bias else x
        M = one_step_matrix(factor * x.T @ x / samples, mu, eta)
        weight = np.prod(weights[list(choice)]) / np.sqrt(2 * np.pi) ** len(choice)
        square, first = square + weight * np.kron(M, M), first + weight * M
    return square, first


def expected_step(mean, C, *, mu, eta, samples, factor=2.0, bias=True):
    """E[M (x) M] and E[M] of one step of SGDm on (e, v), for x ~ N(mean, C)."""
    rows = [(-eta, 1.0, mu), (-eta, 0.0, mu)]
    return expected_step_of(rows, mean, C, samples=samples, factor=factor, bias=bias)


def rows_of(linear):
    """A linear optimizer as plain numbers: (gradient, weight, old buffers) of the weight and of each buffer."""
    return [[float(each.value) for each in (gradient, weight, *old)] for gradient, weight, old in linear.rows()]


def expected_step_of(rows, mean, C, *, samples, factor=2.0, bias=True):
    """The same of any linear optimizer, by Isserlis' theorem entry by entry, in NumPy."""
    w = len(mean) + bias
    x = np.append(mean, 1.0) if bias else np.asarray(mean)
    D = np.zeros((w, w))
    D[: len(mean), : len(mean)] = C
    second = D + np.outer(x, x)
    # E[x_i x_j x_k x_l] of a Gaussian with mean x and covariance D
    fourth, xx = np.einsum("i,j,k,l->ijkl", x, x, x, x), np.outer(x, x)
    for pair in ("ij,kl", "ik,jl", "il,jk"):
        fourth = fourth + sum(np.einsum(f"{pair}->ijkl", a, b) for a, b in ((D, D), (D, xx), (xx, D)))
    BB = factor**2 * (fourth / samples + (1 - 1 / samples) * np.einsum("ij,kl->ijkl", second, second))
    numbers = np.array(rows)
    still = np.kron(numbers[:, 1:], np.eye(w))  # M = still + up B down
    up, down = np.kron(numbers[:, :1], np.eye(w)), np.kron(np.eye(1, len(rows)), np.eye(w))
    cross = factor * up @ second @ down
    square = np.einsum("ai,ijkl,bk,jc,ld->abcd", up, BB, up, down, down).reshape(2 * (len(still) ** 2,))
    return np.kron(still, still) + np.kron(still, cross) + np.kron(cross, still) + square, still + cross


def one_step_of(rows, B):
    """M of one step of a linear optimizer."""
    numbers = np.array(rows)
    return np.kron(numbers[:, 1:], np.eye(len(B))) + np.kron(numbers[:, :1] * np.eye(1, len(rows)), B)


def log_radius(matrix):
    return np.log(np.abs(np.linalg.eigvals(matrix)).max())
