"""One step of SGDm with samples drawn from their law: what it does to the mean of xi = (e, v), and to its square.

    v' = mu v - eta B e,    e' = e + v',    B = (c / n) sum of x x^T over the n samples,    C = E x x^T = D + x x^T

where x from here on is the mean of the inputs, m and 1 for a bias, and D the diagonal of their variances.
"""

import functools
from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax.numerics import entrywise
from resonance_jax.numerics.products import Entries, LinearMap
from resonance_jax.shifts.inputs import Inputs
from resonance_jax.theory.moments.followed import Followed

dot = functools.partial(jnp.matmul, precision="highest")  # a GPU would round float32 to 10 bits
ENTRYWISE = 4  # weights up to which the mean square is written out entry by entry; 9 would compile for 37 s on a CPU


def mean_map(followed: Followed, mu: Array, eta: Array) -> LinearMap:
    """E xi -> E xi':  v' = mu v - eta c C e,  e' = e + v'.

    Entries are e and v of the weights tracked; behind them, where there are others, e and v of one of those.
    """
    w, rest, kick = followed.num_weights, followed.rest, eta * followed.gaussian.factor

    def step(entries: Entries, inputs: Inputs) -> Entries:
        error, velocity, x, D = (
            entries[:w],
            entries[w : 2 * w],
            followed.constant(inputs),
            followed.variances_at(inputs),
        )
        x_e = entrywise.dot(x, error)
        pull = [D[i] * error[i] + x[i] * x_e if i < len(D) else x[i] * x_e for i in range(w)]
        velocity = tuple(mu * velocity[i] - kick * pull[i] for i in range(w))
        moved = (*(error[i] + velocity[i] for i in range(w)), *velocity)
        if rest is None:
            return moved
        e, v = entries[2 * w :]
        v = mu * v - kick * D[0] * e
        return (*moved, e + v, v)

    others = () if rest is None else (2 * w, 2 * w + 1)
    return LinearMap(
        step,
        followed.coordinates,
        followed.num_slopes,
        followed.gaussian.dim,
        exists=_exists(2 * w, followed, len(others), mu.dtype),
        start=jnp.ones((2 * w + len(others),), mu.dtype),
        parts=(tuple(range(2 * w)), others) if others else (tuple(range(2 * w)),),
        own=tuple((i, w + i) for i in range(w)),
        rest=others,
        apart=True,
        order=1,
    )


def mean_square_map(followed: Followed, mu: Array, eta: Array) -> LinearMap:
    """E xi xi^T -> E xi' xi'^T, exactly.

    With P, Q, R = E e e^T, E e v^T, E v v^T,

        V = E v' v'^T = mu^2 R - mu eta c (C Q + Q^T C) + eta^2 c^2 (C P C + N / n),
        G = E e v'^T = mu Q - eta c P C,    E e' e'^T = P + G + G^T + V,    E e' v'^T = G + V,
        N = C P C + tr(P C) C - 2 (x^T P x) x x^T    by Isserlis' theorem.

    Entries are the upper triangle of [[P, Q], [Q^T, R]], row by row, for the weights tracked; behind them, where there
    are others, E e^2, E e v, E v^2 of each of those. C is a diagonal and a product x x^T, so that all products of
    matrices are products of y = P x and z = Q^T x.
    """
    w, rest, slopes = followed.num_weights, followed.rest, followed.num_slopes
    entry = entry_numbers(w)
    size = int(entry.max()) + 1
    share = 1 / followed.gaussian.samples
    kick = eta * followed.gaussian.factor
    drag, square, noise = mu * kick, kick**2 * (1 + share), kick**2 * share

    def step_in_arrays(entries: Entries, inputs: Inputs) -> Entries:
        """The equations above as they stand, for many weights."""
        x = jnp.stack([jnp.asarray(each, mu.dtype) for each in followed.constant(inputs)])
        D = followed.variances_at(inputs)
        xx = x[:, None] * x[None, :]
        C = xx + jnp.diag(jnp.stack([*D, *[jnp.zeros_like(D[0])] * (w - slopes)]))
        S = jnp.stack(entries[:size])[entry]
        P, Q, R = S[:w, :w], S[:w, w:], S[w:, w:]
        PC, CQ = dot(P, C), dot(C, Q)
        CPC, trace = dot(C, PC), jnp.sum(P * C)
        if rest is not None:
            trace = trace + rest * D[0] * entries[size]
        N = CPC + trace * C - 2 * jnp.sum(P * xx) * xx
        V = mu**2 * R - drag * (CQ + CQ.T) + kick**2 * (CPC + share * N)
        G = mu * Q - kick * PC
        new = jnp.block([[P + G + G.T + V, G + V], [(G + V).T, V]])[np.triu_indices(2 * w)]
        return (*entrywise.vector(new), *moved_others(entries[size:], D[0], noise * trace))

    def moved_others(others: Entries, c: Array, lone: Array) -> Entries:
        if rest is None:
            return ()
        p, q, r = others
        v = mu**2 * r - 2 * drag * c * q + c * (square * c * p + lone)
        g = mu * q - kick * c * p
        return p + 2 * g + v, g + v, v

    def step(entries: Entries, inputs: Inputs) -> Entries:
        """Entry by entry, so that XLA fuses a step into elementwise arithmetic."""
        x, D = followed.constant(inputs), followed.variances_at(inputs)

        def P(i: int, j: int) -> Array:
            return entries[entry[i, j]]

        def Q(i: int, j: int) -> Array:
            return entries[entry[i, w + j]]

        def R(i: int, j: int) -> Array:
            return entries[entry[w + i, w + j]]

        def times_D(terms: Iterable[tuple[int, Array]]) -> Any:
            """Sum of D[i] times a term each; a bias, of variance 0, adds nothing."""
            return sum(D[i] * term for i, term in terms if i < slopes)

        y = [entrywise.dot(x, tuple(P(i, j) for j in range(w))) for i in range(w)]
        z = [entrywise.dot(x, tuple(Q(i, j) for i in range(w))) for j in range(w)]
        x_P_x = entrywise.dot(x, tuple(y))
        P_D = times_D((i, P(i, i)) for i in range(slopes)) + (rest * D[0] * entries[size] if rest is not None else 0)
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
        return (*out, *moved_others(entries[size:], D[0], lone))

    others = () if rest is None else (size, size + 1, size + 2)
    identity = np.zeros(size)
    identity[np.diag(entry)] = 1
    return LinearMap(
        step if w <= ENTRYWISE else step_in_arrays,
        followed.coordinates,
        slopes,
        followed.gaussian.dim,
        exists=_exists(size, followed, len(others), mu.dtype),
        start=jnp.asarray([*identity, *(() if rest is None else (1, 0, 1))], mu.dtype),
        parts=(tuple(range(size + len(others))),),
        own=tuple((int(entry[i, i]), int(entry[i, w + i]), int(entry[w + i, w + i])) for i in range(w)),
        rest=others,
        apart=False,
        order=2,
    )


def _exists(size: int, followed: Followed, num_others: int, dtype: Any) -> Array:
    """1 for the entries of the weights tracked, and for those of the others if there are any."""
    if followed.rest is None:
        return jnp.ones((size,), dtype)
    there = jnp.where(followed.rest > 0, jnp.ones((num_others,), dtype), 0)
    return jnp.concatenate([jnp.ones((size,), dtype), there])


def entry_numbers(w: int) -> np.ndarray:
    """Number of each entry of the symmetric [[P, Q], [Q^T, R]] in its upper triangle, row by row."""
    upper = np.triu_indices(2 * w)
    number = np.zeros((2 * w, 2 * w), int)
    number[upper] = np.arange(upper[0].size)
    return np.maximum(number, number.T)
