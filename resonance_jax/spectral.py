"""Log spectral radius of small matrices by normalised repeated squaring.

Gelfand's formula, rho(M) = lim ||M^k||^(1/k), at k = 2^J. The norm of a power is off by at most a polynomial factor in
k, whatever the eigenvalues (complex pairs and Jordan blocks included), and J squarings divide the logarithm of that
factor by 2^J. `eigvals` has no batched form on a GPU: 53 s for 160,000 4x4 matrices on an H200, against 0.9 ms here.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from resonance_jax import entrywise, logscale
from resonance_jax.fused import fused
from resonance_jax.logscale import Scaled

ENTRYWISE_SIZE = 6  # up to this size a product is written out entry by entry; beyond, its code grows too long


def log_spectral_radius(matrix: Array | Scaled, *, entrywise_size: int = ENTRYWISE_SIZE) -> Array:
    """log rho of a square matrix; -inf for a nilpotent one, NaN for one that is not finite.

        log rho = log 2 (e_0 + e_1/2 + e_2/4 + ...),   M_{j+1} = (2^-e_j M_j)^2,   2^e_j the size of M_j

    Args:
        matrix: array (m, m), or a `Scaled` one (array or nested tuple of entries), for products that do not fit into
            the floating range.
        entrywise_size: largest m whose products are written out entry by entry: faster, but 6 takes 9 s to compile.

    Returns:
        Scalar.

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
    small = len(mantissa) <= entrywise_size
    if isinstance(mantissa, tuple) and not small:
        mantissa = entrywise.to_array(mantissa)
    elif not isinstance(mantissa, tuple) and small:
        mantissa = entrywise.matrix(mantissa)
    multiply: Any = entrywise.matmul if small else functools.partial(jnp.matmul, precision="highest")
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
