"""One step of SGDm with samples drawn from their law: what it does to the mean of xi = (e, v), and to its square.

v' = mu v - eta B e,    e' = e + v',    B = (c / n) sum of x x^T over the n samples,    C = E x x^T
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax import entrywise
from resonance_jax.problems.linear_regression import GradientLaw
from resonance_jax.theory.inputs import Inputs
from resonance_jax.theory.products import Entries, Step


def mean_step(inputs: Inputs, law: GradientLaw, mu: Array, eta: Array) -> tuple[Step, int]:
    """E xi -> E xi':  v' = mu v - eta c C e,  e' = e + v',  for the weights followed; and the number of entries."""
    w, variances = inputs.num_weights, inputs.variances()

    def step(entries: Entries, x: Array) -> Entries:
        error, velocity = entries[:w], entries[w:]
        x_e = entrywise.dot(entrywise.vector(x), error)  # C e = variances e + x <x, e>
        pull = (var * e + x[i] * x_e for i, (var, e) in enumerate(zip(variances, error, strict=True)))
        velocity = tuple(mu * v - eta * law.factor * g for v, g in zip(velocity, pull, strict=True))
        return (*(e + v for e, v in zip(error, velocity, strict=True)), *velocity)

    return step, 2 * w


def mean_square_step(inputs: Inputs, law: GradientLaw, mu: Array, eta: Array) -> tuple[Step, Array]:
    """E xi xi^T -> E xi' xi'^T, exactly, and which of the entries exist.

    With P, Q, R = E e e^T, E e v^T, E v v^T, and x the mean of the inputs,

        E v' v'^T = mu^2 R - mu eta c (C Q + Q^T C) + eta^2 c^2 (C P C + N / n),    E e v'^T = mu Q - eta c P C,
        N = C P C + tr(P C) C - 2 (x^T P x) x x^T

    by Isserlis' theorem. Entries are the upper triangle of [[P, Q], [Q^T, R]], row by row, for the weights followed;
    behind them, where there are others, E e^2, E e v, E v^2 of each of those.
    """
    w, variances, rest, c_rest = inputs.num_weights, inputs.variances(), inputs.rest, inputs.variance
    place = places(w)
    kick, share = eta * law.factor, 1 / law.samples

    def step(entries: Entries, x: Array) -> Entries:
        P, Q, R, outer, C = _as_matrices(entries, x, place, variances)
        small = isinstance(P, tuple)
        multiply: Any = entrywise.matmul if small else lambda a, b: jnp.matmul(a, b, precision="highest")
        transpose: Any = (lambda a: tuple(zip(*a, strict=True))) if small else jnp.transpose
        C_P, C_Q = multiply(C, P), multiply(C, Q)
        C_P_C = multiply(C_P, C)
        x_P_x = sum(P[i][j] * outer[i][j] for i in range(w) for j in range(w)) if small else jnp.sum(P * outer)
        trace = sum(C_P[i][i] for i in range(w))
        p, q, r = entries[-3:] if rest is not None else (None, None, None)
        if rest is not None:
            trace = trace + rest * c_rest * p

        def v_v(R, C_Q, Q_C, C_P_C, C, outer):
            noise = C_P_C + trace * C - 2 * x_P_x * outer
            return mu**2 * R - mu * kick * (C_Q + Q_C) + kick**2 * (C_P_C + share * noise)

        V = jax.tree.map(v_v, R, C_Q, transpose(C_Q), C_P_C, C, outer)
        G = jax.tree.map(lambda Q, P_C: mu * Q - kick * P_C, Q, transpose(C_P))
        E = jax.tree.map(lambda P, G, Gt, V: P + G + Gt + V, P, G, transpose(G), V)
        out = _entries(E, jax.tree.map(jnp.add, G, V), V)
        if rest is None:
            return out
        v = mu**2 * r - 2 * mu * kick * c_rest * q + kick**2 * c_rest * (c_rest * p + share * (c_rest * p + trace))
        g = mu * q - kick * c_rest * p
        return (*out, p + 2 * g + v, g + v, v)

    ones = jnp.ones((place.max() + 1,), mu.dtype)
    if rest is None:
        return step, ones
    return step, jnp.concatenate([ones, jnp.where(rest > 0, jnp.ones((3,), mu.dtype), 0)])


def places(w: int) -> np.ndarray:
    """Number of each entry of the symmetric [[P, Q], [Q^T, R]] in its upper triangle, row by row."""
    upper = np.triu_indices(2 * w)
    place = np.zeros((2 * w, 2 * w), int)
    place[upper] = np.arange(upper[0].size)
    return np.maximum(place, place.T)


def _as_matrices(entries: Entries, x: Array, place: np.ndarray, variances: tuple[Array, ...]) -> tuple[Any, ...]:
    """P, Q, R, x x^T and C = E x x^T: tuples of scalars, or arrays where the entries are one."""
    w = len(place) // 2
    if len(entries) == 1:
        S, outer = entries[0][place], jnp.outer(x, x)
        return S[:w, :w], S[:w, w:], S[w:, w:], outer, outer + jnp.diag(jnp.stack(variances))
    P, Q, R = (
        tuple(tuple(entries[n] for n in row) for row in part) for part in (place[:w, :w], place[:w, w:], place[w:, w:])
    )
    coordinates = entrywise.vector(x)
    outer = tuple(tuple(a * b for b in coordinates) for a in coordinates)
    C = tuple(tuple(o + variances[i] if i == j else o for j, o in enumerate(row)) for i, row in enumerate(outer))
    return P, Q, R, outer, C


def _entries(P: Any, Q: Any, R: Any) -> Entries:
    """Upper triangle of [[P, Q], [Q^T, R]], row by row."""
    if not isinstance(P, tuple):
        w = len(P)
        return (jnp.block([[P, Q], [Q.T, R]])[np.triu_indices(2 * w)],)
    rows = [(*p, *q) for p, q in zip(P, Q, strict=True)] + [(None,) * len(P) + r for r in R]
    return tuple(value for i, row in enumerate(rows) for value in row[i:])
