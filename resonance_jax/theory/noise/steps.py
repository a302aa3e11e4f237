"""One step of SGDm with samples drawn from their law: what it does to the mean of xi = (e, v), and to its square.

    v' = mu v - eta B e,    e' = e + v',    B = (c / n) sum of x x^T over the n samples,    C = E x x^T = D + x x^T

where x from here on is the mean of the inputs, m and 1 for a bias, and D the diagonal of their variances.
"""

from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax.numerics import entrywise
from resonance_jax.problems.linear_regression import GradientLaw
from resonance_jax.theory.noise.inputs import Inputs
from resonance_jax.theory.noise.products import Entries, Step


def mean_step(inputs: Inputs, law: GradientLaw, mu: Array, eta: Array) -> tuple[Step, int]:
    """E xi -> E xi':  v' = mu v - eta c C e,  e' = e + v',  for the weights followed; and the number of entries."""
    w, D, kick = inputs.num_weights, inputs.variances, eta * law.factor

    def step(entries: Entries, m: Array) -> Entries:
        error, velocity, x = entries[:w], entries[w:], inputs.constant(m)
        x_e = entrywise.dot(x, error)
        pull = [D[i] * error[i] + x[i] * x_e for i in range(w)]
        velocity = tuple(mu * velocity[i] - kick * pull[i] for i in range(w))
        return (*(error[i] + velocity[i] for i in range(w)), *velocity)

    return step, 2 * w


def mean_square_step(inputs: Inputs, law: GradientLaw, mu: Array, eta: Array) -> tuple[Step, Array]:
    """E xi xi^T -> E xi' xi'^T, exactly, and which of the entries exist.

    With P, Q, R = E e e^T, E e v^T, E v v^T,

        V = E v' v'^T = mu^2 R - mu eta c (C Q + Q^T C) + eta^2 c^2 (C P C + N / n),
        G = E e v'^T = mu Q - eta c P C,    E e' e'^T = P + G + G^T + V,    E e' v'^T = G + V,
        N = C P C + tr(P C) C - 2 (x^T P x) x x^T    by Isserlis' theorem.

    Entries are the upper triangle of [[P, Q], [Q^T, R]], row by row, for the weights followed; behind them, where there
    are others, E e^2, E e v, E v^2 of each of those. C is a diagonal and a product x x^T, so that all products of
    matrices are products of y = P x and z = Q^T x.
    """
    w, D, rest, c = inputs.num_weights, inputs.variances, inputs.rest, inputs.variance
    slopes = w - int(inputs.bias)
    place = places(w)
    size = int(place.max()) + 1
    share = 1 / law.samples
    kick = eta * law.factor
    drag, square, noise = mu * kick, kick**2 * (1 + share), kick**2 * share

    def step(entries: Entries, m: Array) -> Entries:
        x = inputs.constant(m)

        def P(i: int, j: int) -> Array:
            return entries[place[i, j]]

        def Q(i: int, j: int) -> Array:
            return entries[place[i, w + j]]

        def R(i: int, j: int) -> Array:
            return entries[place[w + i, w + j]]

        def times_D(terms: Iterable[tuple[int, Array]]) -> Any:
            """Sum of D[i] times a term each; a bias, of variance 0, adds nothing."""
            return sum(D[i] * term for i, term in terms if i < slopes)

        y = [entrywise.dot(x, tuple(P(i, j) for j in range(w))) for i in range(w)]
        z = [entrywise.dot(x, tuple(Q(i, j) for i in range(w))) for j in range(w)]
        x_P_x = entrywise.dot(x, tuple(y))
        P_D = times_D((i, P(i, i)) for i in range(slopes)) + (rest * c * entries[size] if rest is not None else 0)
        half = (kick**2 * x_P_x + noise * P_D) / 2  # of what stands before x x^T
        lone = noise * (P_D + x_P_x)  # of what stands before D: tr(P C)
        edge = [times_D([(i, square * y[i])]) - drag * z[i] + half * x[i] for i in range(w)]

        def V(i: int, j: int) -> Array:
            outer = mu**2 * R(i, j) + edge[i] * x[j] + x[i] * edge[j]
            inner = times_D([(i, square * times_D([(j, P(i, j))]))])  # D P D
            own = times_D([(i, lone)]) if i == j else 0
            return outer - times_D([(i, drag * Q(i, j)), (j, drag * Q(j, i))]) + inner + own

        def G(i: int, j: int) -> Array:
            return mu * Q(i, j) - kick * (times_D([(j, P(i, j))]) + y[i] * x[j])

        V_of = {(i, j): V(min(i, j), max(i, j)) for i in range(w) for j in range(w)}
        G_of = {(i, j): G(i, j) for i in range(w) for j in range(w)}
        out = []
        for i in range(w):
            out += [P(i, j) + G_of[i, j] + G_of[j, i] + V_of[i, j] for j in range(i, w)]
            out += [G_of[i, j] + V_of[i, j] for j in range(w)]
        out += [V_of[i, j] for i in range(w) for j in range(i, w)]
        if rest is not None:
            p, q, r = entries[size:]
            v = mu**2 * r - 2 * drag * c * q + c * (square * c * p + lone)
            g = mu * q - kick * c * p
            out += [p + 2 * g + v, g + v, v]
        return tuple(out)

    ones = jnp.ones((size,), mu.dtype)
    if rest is None:
        return step, ones
    return step, jnp.concatenate([ones, jnp.where(rest > 0, jnp.ones((3,), mu.dtype), 0)])


def places(w: int) -> np.ndarray:
    """Number of each entry of the symmetric [[P, Q], [Q^T, R]] in its upper triangle, row by row."""
    upper = np.triu_indices(2 * w)
    place = np.zeros((2 * w, 2 * w), int)
    place[upper] = np.arange(upper[0].size)
    return np.maximum(place, place.T)
