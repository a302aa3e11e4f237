"""Linear least squares on Gaussian inputs whose mean moves."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks
from resonance_jax.numerics import entrywise, logscale
from resonance_jax.numerics.entrywise import Matrix, Vector
from resonance_jax.problems.base import Batch, Noise

dot = functools.partial(jnp.matmul, precision="highest")  # a GPU would round float32 to 10 bits


class NoiseMoments(NamedTuple):
    """Averages over the samples of one step; they depend on the seed alone, so a sweep draws them once per seed."""

    z: Array  # (dim,), mean of z, the standardised inputs: x = m + sqrt(c) z
    zz: Array  # (dim, dim), mean of z z^T
    eps: Array | None  # (), mean of epsilon, the observation noise; None where there is none
    eps_z: Array | None  # (dim,), mean of epsilon z


class GradientLaw(NamedTuple):
    """What the law of B depends on:  B = (factor / samples) sum of x x^T,  x = (m + sqrt(c) z, 1)  with a bias."""

    factor: Array  # (), loss factor, times the samples for gradients that are summed
    samples: Array  # (), draws per step
    input_variance: Array  # (), c, without the spread of a shift
    dim: Array  # (), inputs that count
    input_mask: Array | None  # (max_dim,), the inputs that count; None where all do
    bias: bool  # whether the constant 1 is an input


class LinearRegression(NamedTuple):
    """Least squares y = <theta*, (x, 1)> + epsilon, made by `linear_regression`; a `Problem` and more.

    The gradient of one step is linear in the error, g = B (theta - theta*) - b, with B and b from the drawn samples:
    `oscillate` uses this. `train` differentiates `loss` instead. The spread of a shift adds to the variance of the
    inputs.
    """

    dim: int  # inputs
    init: Callable[..., tuple[Array, Array]]  # key, shift, its state -> theta_0, theta*
    noise: Callable[[Array], Noise]  # key -> z, epsilon
    batch: Callable[..., Batch]  # noise, mean, spread=0 -> inputs (x, 1) (samples, num_weights), epsilon
    loss: Callable[[Array, Array, Batch], Array]  # theta, theta*, batch -> scalar
    error: Callable[[Array, Array], Array]  # ||theta - theta*||
    measure: str  # distance
    num_weights: int  # dim, plus one with a bias
    weights: Callable[[Array], tuple[Array, Array]]  # key -> theta*, theta_0, each (num_weights,)
    noise_moments: Callable[[Array], NoiseMoments]  # key -> moments of `noise`
    gradient: Callable[..., tuple[Matrix, Vector | None]]  # moments, mean, spread=0 -> B, b, entry by entry
    product: Callable[..., Array]  # moments, mean, spread, error -> B error, without forming B
    law: GradientLaw  # of B, for theory


def expected_gradient_matrix(
    mean: Array, *, input_variance: ArrayLike = 1.0, loss_factor: ArrayLike = 2.0, bias: bool = True
) -> Array:
    """B = 2 (Cov + m m^T) on the augmented input (x, 1): the paper's equation for B_k.

    Args:
        mean: m, shape (dim,).
        input_variance: c, with Cov = c I on the inputs and 0 on the constant 1.
        loss_factor: the 2, the derivative of the square; 1 for half the squared error. A gradient summed over n samples
            has n times the factor.
        bias: whether the constant 1 is an input.

    Returns:
        B, shape (num_weights, num_weights).

    >>> expected_gradient_matrix(jnp.array([0.5])).tolist()
    [[2.5, 1.0], [1.0, 2.0]]
    """
    x = jnp.append(mean, jnp.ones((), mean.dtype)) if bias else mean
    covariance = jnp.asarray(input_variance, mean.dtype) * jnp.eye(mean.size, dtype=mean.dtype)
    covariance = jnp.pad(covariance, (0, int(bias)))
    return jnp.asarray(loss_factor, mean.dtype) * (covariance + jnp.outer(x, x))


def linear_regression(
    *,
    dim: ArrayLike,
    samples: ArrayLike,
    input_variance: ArrayLike = 1.0,
    noise_variance: ArrayLike = 0.0,
    weight_variance: ArrayLike | None = None,
    reduction: str = "mean",
    loss_factor: ArrayLike = 2.0,
    bias: bool = True,
    max_dim: int | None = None,
    max_samples: int | None = None,
) -> LinearRegression:
    """Regression on `samples` draws a step of x ~ N(m_k, c I) with fixed targets.

    Args:
        dim: number of inputs.
        samples: draws per step.
        input_variance: c.
        noise_variance: variance of the observation noise epsilon.
        weight_variance: theta* and theta_0 are normal of this variance; None draws both uniformly from [-1, 1].
        reduction: "mean" or "sum" of the samples' gradients.
        loss_factor: 2 for the squared error, 1 for half of it.
        bias: whether the model has a bias weight, the last one.
        max_dim, max_samples: largest values that `dim` and `samples` take where they are axes of a sweep. Inputs and
            samples beyond the actual number are drawn and count nothing.

    Returns:
        A `LinearRegression`.

    Raises:
        ValueError: `dim` or `samples` below 1, or traced without a maximum; a negative variance; an unknown reduction.
    """
    num_inputs, input_mask = checks.count("dim", dim, max_dim, "count the inputs without the bias")
    num_samples, sample_mask = checks.count("samples", samples, max_samples, "a step needs at least one sample")
    checks.one_of("reduction", reduction, ("mean", "sum"))
    for name, value in dict(
        input_variance=input_variance, noise_variance=noise_variance, weight_variance=weight_variance
    ).items():
        if value is not None:
            checks.between(name, value, 0, jnp.inf, "give a variance, not a standard deviation with a sign")
    checks.between("loss_factor", loss_factor, 0, jnp.inf, "2 is the squared error, 1 half of it", open_low=True)

    dtype = jnp.result_type(float)
    noisy = not checks.is_concrete(noise_variance) or bool(np.any(np.asarray(noise_variance) > 0))
    noise_scale = jnp.sqrt(jnp.asarray(noise_variance, dtype))
    number = jnp.asarray(samples, dtype)
    share = 1 / number  # of one sample in a mean
    factor = jnp.asarray(loss_factor, dtype) * (number if reduction == "sum" else 1)
    input_variance = jnp.asarray(input_variance, dtype)
    law = GradientLaw(factor, number, input_variance, jnp.asarray(dim, dtype), input_mask, bias)
    num_weights = num_inputs + int(bias)
    weight_mask = None if input_mask is None else jnp.append(input_mask, True) if bias else input_mask

    def weights(key: Array) -> tuple[Array, Array]:
        shape = (2, num_weights)
        if weight_variance is None:
            drawn = jax.random.uniform(key, shape, dtype, -1, 1)
        else:
            drawn = jnp.sqrt(jnp.asarray(weight_variance, dtype)) * jax.random.normal(key, shape, dtype)
        drawn = checks.masked(drawn, weight_mask)
        return drawn[0], drawn[1]

    def init(key: Array, shift: object, shift_state: object) -> tuple[Array, Array]:
        theta_star, theta_0 = weights(key)
        return theta_0, theta_star

    def noise(key: Array) -> Noise:
        """One draw for inputs and noise, row by row: each call of the generator is compiled by itself."""
        normals = jax.random.normal(key, (num_samples, num_inputs + int(noisy)), dtype)
        normals = checks.masked(normals.T, sample_mask).T
        z = checks.masked(normals[:, :num_inputs], input_mask)
        return Noise(z, noise_scale * normals[:, num_inputs] if noisy else None)

    def input_scale(spread: ArrayLike) -> Array:
        return jnp.sqrt(input_variance + jnp.asarray(spread, dtype))

    def batch(noise: Noise, mean: Array, spread: ArrayLike = 0.0) -> Batch:
        z, eps = noise
        x = checks.masked(jnp.broadcast_to(mean, (num_inputs,)), input_mask)[None, :] + input_scale(spread) * z
        x = jnp.concatenate([x, jnp.ones((num_samples, 1), dtype)], axis=1) if bias else x
        return Batch(checks.masked(x.T, sample_mask).T, jnp.zeros((num_samples,), dtype) if eps is None else eps)

    def loss(theta: Array, theta_star: Array, batch: Batch) -> Array:
        residual = dot(batch.inputs, theta - theta_star) - batch.noise
        return factor / 2 * share * jnp.sum(residual**2)

    def noise_moments(key: Array) -> NoiseMoments:
        z, eps = noise(key)
        zz = share * jnp.sum(z[:, :, None] * z[:, None, :], axis=0)
        if eps is None:
            return NoiseMoments(share * z.sum(0), zz, None, None)
        return NoiseMoments(share * z.sum(0), zz, share * eps.sum(), share * jnp.sum(eps[:, None] * z, axis=0))

    def gradient(moments: NoiseMoments, mean: Array, spread: ArrayLike = 0.0) -> tuple[Matrix, Vector | None]:
        """Entry by entry, each from scalars: as one array the entries would be put together only to be taken apart."""
        scale = input_scale(spread)
        m = entrywise.vector(checks.masked(jnp.broadcast_to(mean, (num_inputs,)), input_mask))
        z, zz = entrywise.vector(moments.z), entrywise.matrix(moments.zz)

        def x_x(i: int, j: int) -> Array:  # mean of x_i x_j
            return m[i] * m[j] + scale * (m[i] * z[j] + z[i] * m[j]) + scale**2 * zz[i][j]

        upper = {(i, j): x_x(i, j) for i in range(num_inputs) for j in range(i, num_inputs)}
        if bias:
            upper |= {(i, num_inputs): m[i] + scale * z[i] for i in range(num_inputs)}
            upper[num_inputs, num_inputs] = jnp.ones((), dtype)
        upper = {place: factor * value for place, value in upper.items()}
        B = tuple(tuple(upper[min(i, j), max(i, j)] for j in range(num_weights)) for i in range(num_weights))
        if moments.eps is None or moments.eps_z is None:
            return B, None
        eps_x = [moments.eps * m[i] + scale * moments.eps_z[i] for i in range(num_inputs)]  # mean of epsilon x
        return B, tuple(factor * value for value in (*eps_x, *([moments.eps] if bias else [])))

    def product(moments: NoiseMoments, mean: Array, spread: ArrayLike, error: Array) -> Array:
        m = checks.masked(jnp.broadcast_to(mean, (num_inputs,)), input_mask)
        scale = input_scale(spread)
        slopes, offset = (error[:-1], error[-1]) if bias else (error, jnp.zeros((), dtype))
        m_part = dot(m, slopes) + offset  # <(m, 1), error>
        x_part = m_part + scale * dot(moments.z, slopes)  # mean of <(x, 1), error>
        rows = factor * (m * x_part + scale * (moments.z * m_part + scale * dot(moments.zz, slopes)))
        return jnp.append(rows, factor * x_part) if bias else rows

    return LinearRegression(
        dim=num_inputs,
        init=init,
        noise=noise,
        batch=batch,
        loss=loss,
        error=lambda theta, theta_star: logscale.norm(theta - theta_star),  # finite where its square is not
        measure="distance",
        num_weights=num_weights,
        weights=weights,
        noise_moments=noise_moments,
        gradient=gradient,
        product=product,
        law=law,
    )
