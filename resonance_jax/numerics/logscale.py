"""Numbers of unlimited range: a mantissa and an integer power of two.

A resonant run overflows float32 within a few hundred steps, a convergent one underflows. Every now and then a power of
two is moved from the floats into an integer. This is exact: multiplying by a power of two changes no bit of a mantissa.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

ZERO_EXPONENT = -(2**30)  # used as the exponent of 0; far below any exponent that a run can reach


class Scaled(NamedTuple):
    """The numbers `mantissa * 2**exponent`; one exponent is shared by the whole tree.

    >>> huge = Scaled(jnp.array(1.5), jnp.int32(2000))  # far above the range of float64
    >>> round(float(log(huge)), 1)
    1386.7
    """

    mantissa: Any  # array, or a tree of arrays of one dtype
    exponent: Array  # (), int32


def exponent_of(x: Array) -> Array:
    """floor(log2 |x|) as int32, and `ZERO_EXPONENT` where x is 0; read off the bits of a normal number.

    >>> exponent_of(jnp.array([1.0, 3.0, 0.25])).tolist()
    [0, 1, -2]
    """
    info = jnp.finfo(x.dtype)
    bits = jax.lax.bitcast_convert_type(jnp.abs(x), f"int{info.bits}")
    exponent = (bits >> info.nmant).astype(jnp.int32) - (info.maxexp - 1)
    return jnp.where(x == 0, ZERO_EXPONENT, exponent)


def power_of_two(exponent: Array, dtype: Any) -> Array:
    """2**exponent exactly, clipped to the normal numbers of the dtype.

    >>> float(power_of_two(jnp.int32(-3), jnp.float32))
    0.125
    """
    info = jnp.finfo(dtype)
    biased = jnp.clip(exponent, info.minexp, info.maxexp - 1) + (info.maxexp - 1)
    return jax.lax.bitcast_convert_type(biased.astype(f"int{info.bits}") << info.nmant, dtype)


def shift_by(tree: Any, exponent: Array) -> Any:
    """`tree * 2**exponent`, exact unless it leaves the floating range; 0 stays 0 for every exponent.

    >>> shift_by(jnp.array([1.5, 0.0]), jnp.int32(3)).tolist()
    [12.0, 0.0]
    """
    dtype = jax.tree.leaves(tree)[0].dtype
    half = exponent >> 1  # in two factors: one power of two cannot take the smallest number to the largest
    first, second = power_of_two(half, dtype), power_of_two(exponent - half, dtype)
    return jax.tree.map(lambda x: x * first * second, tree)


def peak(tree: Any) -> Array:
    """Largest absolute value in a tree, as a scalar.

    >>> float(peak({"weight": jnp.array([1.0, -3.0]), "bias": jnp.array(2.0)}))
    3.0
    """
    largest = [jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(tree)]
    return jax.tree.reduce(jnp.maximum, largest)


def room(tree: Any, headroom: int) -> Array:
    """Exponent that lifts a tree until its largest number lies in [1, 2) * 2**headroom; 0 where all is 0.

    >>> int(room(jnp.array([6.0, 1.0]), 0))  # 6 / 4 lies in [1, 2)
    -2
    """
    largest = peak(tree)
    return jnp.where(largest == 0, 0, headroom - exponent_of(largest))


def normalize(value: Scaled) -> Scaled:
    """The same numbers with the largest mantissa in [1, 2).

    >>> found = normalize(Scaled(jnp.array([6.0, 1.0]), jnp.int32(0)))
    >>> found.mantissa.tolist(), int(found.exponent)
    ([1.5, 0.25], 2)
    """
    lift = room(value.mantissa, 0)
    return Scaled(shift_by(value.mantissa, lift), value.exponent - lift)


def add(a: Scaled, b: Scaled) -> Scaled:
    """Sum of two scaled trees, in the scale of the larger one.

    >>> total = add(Scaled(jnp.array(1.0), jnp.int32(1001)), Scaled(jnp.array(1.0), jnp.int32(1000)))
    >>> float(total.mantissa), int(total.exponent)
    (1.5, 1001)
    """
    exponent = jnp.maximum(
        jnp.where(peak(a.mantissa) > 0, a.exponent, ZERO_EXPONENT),
        jnp.where(peak(b.mantissa) > 0, b.exponent, ZERO_EXPONENT),
    )
    exponent = jnp.where(exponent == ZERO_EXPONENT, a.exponent, exponent)
    total = jax.tree.map(
        jnp.add, shift_by(a.mantissa, a.exponent - exponent), shift_by(b.mantissa, b.exponent - exponent)
    )
    return Scaled(total, exponent)


def norm(tree: Any) -> Array:
    """Euclidean norm over all entries of a tree, safe from overflow and underflow of the squares.

    >>> f"{norm(jnp.array([3e30, 4e30])):.3g}"
    '5e+30'
    """
    lift = room(tree, 0)  # an integer: a scale of floats would be differentiated too, and its square may overflow
    square = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(shift_by(tree, lift)))
    return shift_by(root(square, 0.0), -lift)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def root(square: Array, least: float) -> Array:
    """Square root of a number >= 0; 0 for numbers up to `least`, with derivative 0 instead of infinity.

    >>> float(root(jnp.array(4.0), 0.0)), float(jax.grad(root)(jnp.array(0.0), 0.0))
    (2.0, 0.0)
    """
    return jnp.sqrt(jnp.where(square > least, square, 0))


@root.defjvp
def _(least: float, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    value = root(primals[0], least)
    slope = jnp.where(value > 0, 0.5 / jnp.where(value > 0, value, 1), 0)
    return value, slope * tangents[0]


def log(value: Scaled) -> Array:
    """Natural logarithm of a scaled number >= 0. An exact 0 reads as the smallest normal mantissa: finite, tiny.

    >>> round(float(log(Scaled(jnp.array(1.0), jnp.int32(10)))), 3)
    6.931
    """
    mantissa = jnp.maximum(value.mantissa, jnp.finfo(value.mantissa.dtype).tiny)
    return value.exponent.astype(mantissa.dtype) * np.log(2) + jnp.log(mantissa)


def log_norm(value: Scaled) -> Array:
    """Natural logarithm of the Euclidean norm over all entries of a scaled tree.

    >>> round(float(log_norm(Scaled(jnp.array([3.0, 4.0]), jnp.int32(0)))), 3)
    1.609
    """
    return log(Scaled(norm(value.mantissa), value.exponent))


def log10_mean(log10_values: Any, dim: Any) -> Any:
    """log10 of the mean of 10**x over a dimension of an `xarray.DataArray`, without overflow or underflow.

    This averages distances over seeds: it is the mean that the paper plots, even where distances are 1e100 or 1e-100.

    >>> import xarray as xr
    >>> float(log10_mean(xr.DataArray([300.0, 300.0, -500.0, -500.0], dims="seed"), "seed").round(4))
    299.699
    """
    top = log10_values.max(dim, skipna=False)
    return top + np.log10((10.0 ** (log10_values - top)).mean(dim, skipna=False))
