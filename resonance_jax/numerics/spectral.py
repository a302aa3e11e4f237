"""Log spectral radius of small matrices by normalised repeated squaring.

Gelfand's formula, rho(M) = lim ||M^k||^(1/k), at k = 2^J. The norm of M^k differs from rho^k by at most a polynomial
factor in k, whatever the eigenvalues (complex pairs and Jordan blocks included), and J squarings divide the logarithm
of that factor by 2^J. `eigvals` has no batched form on a GPU: 53 s for 160,000 4x4 matrices on an H200, 0.9 ms here.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax.fused import fused
from resonance_jax.numerics import entrywise, logscale
from resonance_jax.numerics.logscale import Scaled

dot = functools.partial(jnp.matmul, precision="highest")  # a GPU would round float32 to 10 bits
ENTRYWISE_SIZE = 6  # up to this size a product is written out entry by entry; larger ones take too long to compile


def log_spectral_radius(matrix: Array | Scaled, *, entrywise_size: int = ENTRYWISE_SIZE) -> Array:
    """log rho of a square matrix; -inf for a nilpotent one, NaN for one that is not finite.

        log rho = log 2 (e_0 + e_1/2 + e_2/4 + ...),   M_{j+1} = (2^-e_j M_j)^2,   2^e_j the size of M_j

    Args:
        matrix: array (m, m), or a `Scaled` one (array or nested tuple of entries), for products that do not fit into
            the floating range.
        entrywise_size: largest m whose products are written out entry by entry: faster, but 6 takes 9 s to compile.

    Returns:
        Scalar. Its derivative (see `_slope`) is that of the eigenvalues of largest modulus. It assumes that they keep a
        common modulus, as a single eigenvalue and a complex pair do, and all eigenvalues of SGDm outside its tongues.

    >>> round(float(log_spectral_radius(jnp.array([[0.0, 4.0], [-1.0, 0.0]]))), 6)  # eigenvalues +-2i
    0.693147
    """
    if isinstance(matrix, Scaled):
        mantissa, exponent = matrix
    else:
        mantissa, exponent = jnp.asarray(matrix, jnp.result_type(float)), jnp.int32(0)
        if mantissa.ndim != 2 or mantissa.shape[0] != mantissa.shape[1]:
            raise ValueError(
                f"matrix must be square, got shape {mantissa.shape}; map over a stack of them with jax.vmap"
            )
    return _log_radius(mantissa, exponent, entrywise_size)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def _log_radius(mantissa: Any, exponent: Array, entrywise_size: int) -> Array:
    small = len(mantissa) <= entrywise_size
    if isinstance(mantissa, tuple) and not small:
        mantissa = entrywise.to_array(mantissa)
    elif not isinstance(mantissa, tuple) and small:
        mantissa = entrywise.matrix(mantissa)
    multiply: Any = entrywise.matmul if small else dot
    dtype = jax.tree.leaves(mantissa)[0].dtype
    num_squarings = jnp.finfo(dtype).nmant + 5  # 2^-J log(k^m) falls below one rounding

    start = logscale.normalize(Scaled(mantissa, exponent))

    def square(j: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
        m, fraction = carry
        squared = logscale.normalize(Scaled(multiply(m, m), jnp.int32(0)))
        share = logscale.power_of_two(-(j + 1), dtype)
        return squared.mantissa, fraction + share * squared.exponent.astype(dtype)

    m, fraction = fused(lambda start: jax.lax.fori_loop(0, num_squarings, square, start))(
        (start.mantissa, jnp.zeros((), dtype))
    )
    log_rho = (start.exponent.astype(dtype) + fraction) * np.log(2)
    log_rho = jnp.where(logscale.peak(m) == 0, -jnp.inf, log_rho)
    return jnp.where(jnp.isfinite(logscale.peak(mantissa)), log_rho, jnp.nan)


@_log_radius.defjvp
def _(entrywise_size: int, primals: tuple[Any, Array], tangents: tuple[Any, Any]) -> tuple[Array, Array]:
    def array(matrix: Any) -> Array:
        return entrywise.to_array(matrix) if isinstance(matrix, tuple) else matrix

    log_rho = _log_radius(*primals, entrywise_size)
    slope = jnp.where(jnp.isfinite(log_rho), _slope(array(primals[0])), jnp.nan)
    return log_rho, jnp.sum(slope * array(tangents[0]))


def _slope(matrix: Array) -> Array:
    """d log rho / dM for the matrix M, of its shape.

    With the projector P onto the invariant subspace of the eigenvalues of largest modulus, along the others,

        d log rho = tr(P dM (M P)^-1) / tr P,    the inverse within the span,

    the mean of d log |lambda| over them. Where eigenvectors meet, as on the edge of a tongue, there is no derivative.
    """
    lift = logscale.room(matrix, 0)
    matrix = logscale.shift_by(jax.lax.stop_gradient(matrix), lift)
    P = _projector(matrix)
    within = dot(matrix, P)
    size = logscale.norm(within)
    rest = jnp.eye(len(matrix), dtype=matrix.dtype) - P
    slope = dot(P, _inverse(within / size + rest)).T / (size * jnp.trace(P))
    return logscale.shift_by(slope, lift)


def leading_angle(matrix: Array | Scaled) -> Array:
    """Angle of the eigenvalue of largest modulus, in [0, pi]: 0 for a positive number, pi for a negative one.

        cos(angle) = tr(M P) / (rho tr P)

    with the projector P onto its eigenvector, or onto those of a complex pair. NaN where more than two eigenvalues have
    the largest modulus, as of SGDm outside its tongues, or a positive and a negative one.

    >>> [round(float(leading_angle(jnp.array(m))), 4) for m in ([[-2.0, 1.0], [0.0, 1.0]], [[0.0, 4.0], [-1.0, 0.0]])]
    [3.1416, 1.5708]
    """
    scaled = matrix if isinstance(matrix, Scaled) else Scaled(matrix, jnp.int32(0))
    M = entrywise.to_array(scaled.mantissa) if isinstance(scaled.mantissa, tuple) else scaled.mantissa
    M = logscale.shift_by(M, logscale.room(M, 0))
    P = _projector(M)
    number, rho = jnp.trace(P), jnp.exp(log_spectral_radius(M))
    cosine = jnp.sum(P.T * M) / (rho * number)
    off = jnp.abs(number - jnp.round(number)) + jnp.where(jnp.round(number) == 1, jnp.abs(jnp.abs(cosine) - 1), 0)
    clear = (jnp.round(number) <= 2) & (off < 0.05)
    return jnp.where(clear, jnp.arccos(jnp.clip(cosine, -1, 1)), jnp.nan)


def _projector(matrix: Array) -> Array:
    """Onto the invariant subspace of the eigenvalues of largest modulus, along the others; entries of M near 1.

    From a high power N of M, scaled so that its eigenvalues are large or near 0:  P = 1 - (1 + N)^-1,  then
    P <- 3 P^2 - 2 P^3,  which leaves 1 and 0 as they are and squares the distance from them.
    """
    one, info = jnp.eye(len(matrix), dtype=matrix.dtype), jnp.finfo(matrix.dtype)

    def square(_: Array, power: Array) -> Array:
        return logscale.normalize(Scaled(dot(power, power), jnp.int32(0))).mantissa

    def purify(_: int, P: Array) -> Array:
        return dot(P, dot(P, 3 * one - 2 * P))

    power = jax.lax.fori_loop(0, info.nmant + 5, square, matrix)
    large = 2.0 ** (info.nmant // 2) / logscale.norm(power)
    return jax.lax.fori_loop(0, 2, purify, one - _inverse(one + large * power))


def _inverse(matrix: Array) -> Array:
    """By Gauss-Jordan elimination with pivots; LAPACK has no batched form, not even on a GPU."""
    size = len(matrix)
    rows = jnp.arange(size)

    def eliminate(i: Array, both: Array) -> Array:
        column = both[:, i]
        pivot = jnp.argmax(jnp.where(rows >= i, jnp.abs(column), -1))
        order = jnp.where(rows == i, pivot, jnp.where(rows == pivot, i, rows))
        both = both[order]
        row = both[i] / both[i, i]
        return jnp.where((rows == i)[:, None], row[None, :], both - both[:, i][:, None] * row[None, :])

    both = jnp.concatenate([matrix, jnp.eye(size, dtype=matrix.dtype)], axis=1)
    return jax.lax.fori_loop(0, size, eliminate, both)[:, size:]
