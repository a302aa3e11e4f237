"""One step of a linear optimizer on samples drawn from their law: what it does to the mean of a run and to its square.

A run is the coordinates u = (x, v, other buffers) of `optimizers.stepping`, in which

    u' = A u + gain g  (in v alone),    g = B e,    e = x + reach v,
    B = (c / n) sum of x x^T over the n samples,    C = E x x^T = D + x x^T

where x from here on is the mean of the inputs, m and 1 for a bias, and D the diagonal of their variances.
"""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax.numerics import entrywise
from resonance_jax.numerics.products import Entries, LinearMap
from resonance_jax.optimizers.linear import LinearOptimizer
from resonance_jax.optimizers.numbers import weighted
from resonance_jax.optimizers.stepping import stepping
from resonance_jax.shifts.inputs import Inputs
from resonance_jax.theory.moments.followed import Followed

dot = functools.partial(jnp.matmul, precision="highest")  # a GPU would round float32 to 10 bits
ENTRYWISE = (
    8  # coordinates up to which the mean square is written out entry by entry; 18 would compile for 37 s on a CPU
)
V = 1  # place of v among the coordinates of a weight


def mean_map(followed: Followed, optimizer: LinearOptimizer) -> LinearMap:
    """E u -> E u' = A E u + gain c C E e.

    Entries are x of all weights tracked, then each of their buffers; behind them, where there are others, x and the
    buffers of one of those.
    """
    stepped = stepping(optimizer)
    A, reach, dtype = stepped.matrix(), stepped.reach, jnp.result_type(float)
    kick = jnp.asarray(stepped.gain, dtype) * followed.gaussian.factor
    w, n, rest = followed.num_weights, len(A), followed.rest

    def moved(u: list[Array], pull: Array) -> list[Array]:
        """One weight."""
        free = [weighted(zip(row, u, strict=True)) for row in A]
        return [each + kick * pull if a == V else each for a, each in enumerate(free)]

    def step(entries: Entries, inputs: Inputs) -> Entries:
        x, D = followed.constant(inputs), followed.variances_at(inputs)
        u = [[entries[a * w + i] for a in range(n)] for i in range(w)]
        error = tuple(each[0] + reach * each[V] for each in u)
        x_e = entrywise.dot(x, error)
        new = [moved(u[i], D[i] * error[i] + x[i] * x_e if i < len(D) else x[i] * x_e) for i in range(w)]
        tracked = tuple(new[i][a] for a in range(n) for i in range(w))
        if rest is None:
            return tracked
        other = list(entries[n * w :])
        return (*tracked, *moved(other, D[0] * (other[0] + reach * other[V])))

    size = n * w
    others = () if rest is None else tuple(range(size, size + n))
    return LinearMap(
        step,
        followed.coordinates,
        followed.num_slopes,
        followed.gaussian.dim,
        exists=_exists(size, followed, len(others), dtype),
        start=jnp.ones((size + len(others),), dtype),
        parts=(tuple(range(size)), others) if others else (tuple(range(size)),),
        own=tuple(tuple(a * w + i for a in range(n)) for i in range(w)),
        rest=others,
        apart=True,
        order=1,
    )


def mean_square_map(followed: Followed, optimizer: LinearOptimizer) -> LinearMap:
    """E u u^T -> E u' u'^T, exactly.

    With P = E e e^T and Z = E e (A u)^T,

        E u' u'^T = A E u u^T A^T + what v adds: gain c C Z in its row and its column, gain^2 c^2 (C P C + N / n) where
        they meet,    N = C P C + tr(P C) C - 2 (x^T P x) x x^T    by Isserlis' theorem.

    Entries are the upper triangle, row by row, of E u u^T for the weights tracked, ordered as in `mean_map`; behind
    them, where there are others, that of one of those. C is a diagonal and a product x x^T, so that all products of
    matrices are products of vectors.
    """
    stepped = stepping(optimizer)
    A, reach, dtype = stepped.matrix(), stepped.reach, jnp.result_type(float)
    w, n, rest, slopes = followed.num_weights, len(A), followed.rest, followed.num_slopes
    entry, entry_of_rest = entry_numbers(n * w), entry_numbers(n)
    size, size_of_rest = (int(each.max()) + 1 for each in (entry, entry_of_rest))
    share = 1 / followed.gaussian.samples
    kick = jnp.asarray(stepped.gain, dtype) * followed.gaussian.factor
    square, noise = kick**2 * (1 + share), kick**2 * share

    def step_in_arrays(entries: Entries, inputs: Inputs) -> Entries:
        """The equations above as they stand, for many weights."""
        x = jnp.stack([jnp.asarray(each, dtype) for each in followed.constant(inputs)])
        D = followed.variances_at(inputs)
        xx = x[:, None] * x[None, :]
        C = xx + jnp.diag(jnp.stack([*D, *[jnp.zeros_like(D[0])] * (w - slopes)]))
        one = jnp.eye(w, dtype=dtype)
        whole = jnp.kron(jnp.stack([jnp.stack([jnp.asarray(each, dtype) for each in row]) for row in A]), one)
        of_error = [jnp.ones((), dtype), jnp.asarray(reach, dtype), *[jnp.zeros((), dtype)] * (n - 2)]
        to_error = jnp.kron(jnp.stack(of_error)[None, :], one)
        S = jnp.stack(entries[:size])[entry]
        P, Z = dot(to_error, dot(S, to_error.T)), dot(to_error, dot(S, whole.T))
        CPC, trace = dot(C, dot(P, C)), jnp.sum(P * C)
        if rest is not None:
            trace = trace + rest * D[0] * _error_of_rest(entries)
        N = CPC + trace * C - 2 * jnp.sum(P * xx) * xx
        v = slice(V * w, (V + 1) * w)
        new = dot(whole, dot(S, whole.T))
        new = new.at[v].add(kick * dot(C, Z))
        new = new.at[:, v].add(kick * dot(C, Z).T)
        new = new.at[v, v].add(kick**2 * (CPC + share * N))
        return (*entrywise.vector(new[np.triu_indices(n * w)]), *moved_others(entries, D[0], noise * trace))

    def step(entries: Entries, inputs: Inputs) -> Entries:
        """Entry by entry, so that XLA fuses a step into elementwise arithmetic."""
        x, D = followed.constant(inputs), followed.variances_at(inputs)

        @functools.cache
        def S(a: int, i: int, b: int, j: int) -> Array:
            return entries[entry[a * w + i, b * w + j]]

        @functools.cache
        def half_moved(a: int, i: int, b: int, j: int) -> Any:  # E (A u)_ai u_bj
            return weighted((A[a][c], S(c, i, b, j)) for c in range(n))

        @functools.cache
        def free(a: int, i: int, b: int, j: int) -> Any:  # E (A u)_ai (A u)_bj
            return weighted((A[b][c], half_moved(a, i, c, j)) for c in range(n))

        @functools.cache
        def P(i: int, j: int) -> Any:
            i, j = min(i, j), max(i, j)
            across, twice = weighted([(1.0, S(0, i, V, j)), (1.0, S(V, i, 0, j))]), weighted([(reach, reach)])
            return weighted([(1.0, S(0, i, 0, j)), (reach, across), (twice, S(V, i, V, j))])

        @functools.cache
        def Z(b: int, i: int, j: int) -> Any:  # E e_i (A u)_bj
            return weighted([(1.0, half_moved(b, j, 0, i)), (reach, half_moved(b, j, V, i))])

        def times_D(i: int, term: Any) -> Any:
            """D_i times a term; a bias has variance 0."""
            return D[i] * term if i < slopes else 0.0

        z = [[entrywise.dot(x, tuple(Z(b, i, j) for i in range(w))) for j in range(w)] for b in range(n)]
        y = [entrywise.dot(x, tuple(P(i, j) for j in range(w))) for i in range(w)]
        x_P_x = entrywise.dot(x, tuple(y))
        P_D = sum(D[i] * P(i, i) for i in range(slopes))
        if rest is not None:
            P_D = P_D + rest * D[0] * _error_of_rest(entries)
        half = (kick**2 * x_P_x + noise * P_D) / 2  # of what stands before x x^T
        lone = noise * (P_D + x_P_x)  # of what stands before D: tr(P C)
        edge = [times_D(i, square * y[i]) + kick * z[V][i] + half * x[i] for i in range(w)]

        def new(a: int, i: int, b: int, j: int) -> Array:
            found = free(a, i, b, j)
            if a == V and b == V:
                across = times_D(i, kick * Z(V, i, j)) + times_D(j, kick * Z(V, j, i))
                inner = times_D(i, square * times_D(j, P(i, j))) + (times_D(i, lone) if i == j else 0.0)
                return found + edge[i] * x[j] + x[i] * edge[j] + across + inner
            if a == V:
                return found + kick * (times_D(i, Z(b, i, j)) + x[i] * z[b][j])
            if b == V:
                return found + kick * (times_D(j, Z(a, j, i)) + x[j] * z[a][i])
            return found

        places = [(a, i) for a in range(n) for i in range(w)]
        out = [new(*places[first], *places[second]) for first in range(n * w) for second in range(first, n * w)]
        return (*out, *moved_others(entries, D[0], lone))

    def _error_of_rest(entries: Entries) -> Any:
        """E e^2 of one of the others."""
        S = entries[size:]
        twice = weighted([(reach, reach)])
        return weighted(
            [
                (1.0, S[entry_of_rest[0, 0]]),
                (reach, 2 * S[entry_of_rest[0, V]]),
                (twice, S[entry_of_rest[V, V]]),
            ]
        )

    def moved_others(entries: Entries, c: Array, lone: Array) -> Entries:
        """One of the others by itself, where C is the number c."""
        if rest is None:
            return ()
        S = [[entries[size + entry_of_rest[a, b]] for b in range(n)] for a in range(n)]
        half_moved = [[weighted((A[a][k], S[k][b]) for k in range(n)) for b in range(n)] for a in range(n)]
        Z = [weighted([(1.0, each[0]), (reach, each[V])]) for each in half_moved]
        out = []
        for a in range(n):
            for b in range(a, n):
                found = weighted((A[b][k], half_moved[a][k]) for k in range(n))
                for own, other in ((a, b), (b, a)):
                    found = found + kick * c * Z[other] if own == V else found
                if a == b == V:
                    found = found + c * (square * c * _error_of_rest(entries) + lone)
                out.append(found)
        return tuple(out)

    others = () if rest is None else tuple(range(size, size + size_of_rest))
    return LinearMap(
        step if n * w <= ENTRYWISE else step_in_arrays,
        followed.coordinates,
        slopes,
        followed.gaussian.dim,
        exists=_exists(size, followed, len(others), dtype),
        start=jnp.asarray([*_identity(n * w), *(() if rest is None else _identity(n))], dtype),
        parts=(tuple(range(size + len(others))),),
        own=tuple(tuple(int(entry[a * w + i, b * w + i]) for a in range(n) for b in range(a, n)) for i in range(w)),
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


def entry_numbers(size: int) -> np.ndarray:
    """Number of each entry of a symmetric matrix in its upper triangle, row by row."""
    upper = np.triu_indices(size)
    number = np.zeros((size, size), int)
    number[upper] = np.arange(upper[0].size)
    return np.maximum(number, number.T)


def _identity(size: int) -> np.ndarray:
    """Upper triangle of the identity, row by row."""
    return np.eye(size)[np.triu_indices(size)]
