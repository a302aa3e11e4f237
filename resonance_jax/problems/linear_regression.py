"""Linear least squares on Gaussian inputs whose mean moves."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks, naming
from resonance_jax.numerics import entrywise, logscale
from resonance_jax.numerics.entrywise import Matrix, Vector
from resonance_jax.problems.base import Batch, Gaussian, LeastSquares, Noise, Problem
from resonance_jax.shifts.inputs import Inputs

dot = functools.partial(jnp.matmul, precision="highest")  # a GPU would round float32 to 10 bits


class NoiseMoments(NamedTuple):
    """Averages over the samples of one step; they depend on the seed alone, so a sweep draws them once per seed."""

    z: Array  # (dim,), mean of z, the standardised inputs: x = m + sqrt(variance) z in the eigenbasis
    zz: Array  # (dim, dim), mean of z z^T
    eps: Array | None  # (), mean of epsilon, the observation noise; None where there is none
    eps_z: Array | None  # (dim,), mean of epsilon z


def expected_gradient_matrix(
    mean: Array, *, input_variance: ArrayLike = 1.0, loss_factor: ArrayLike = 2.0, bias: bool = True
) -> Array:
    """B = 2 (Cov + m m^T) on the augmented input (x, 1): the paper's equation for B_k.

    Args:
        mean: m, shape (dim,).
        input_variance: Cov on the inputs: one number, one for each, or the matrix; it is 0 on the constant 1.
        loss_factor: the 2, the derivative of the square; 1 for half the squared error. A gradient summed over n samples
            has n times the factor.
        bias: whether the constant 1 is an input.

    Returns:
        B, shape (num_weights, num_weights).

    >>> expected_gradient_matrix(jnp.array([0.5])).tolist()
    [[2.5, 1.0], [1.0, 2.0]]
    """
    x = jnp.append(mean, jnp.ones((), mean.dtype)) if bias else mean
    covariance = jnp.asarray(input_variance, mean.dtype)
    if covariance.ndim < 2:
        covariance = jnp.diag(jnp.broadcast_to(covariance, mean.shape))
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
) -> Problem:
    """Regression  y = <theta*, (x, 1)> + epsilon  on `samples` draws a step of  x ~ N(m_k, C).

    Args:
        dim: number of inputs.
        samples: draws per step.
        input_variance: C: one number for all inputs, one for each (dim,), or a covariance matrix (dim, dim). The shift
            may add to the variance of all inputs.
        noise_variance: variance of the observation noise epsilon.
        weight_variance: theta* and theta_0 are normal of this variance; None draws both uniformly from [-1, 1].
        reduction: "mean" or "sum" of the samples' gradients.
        loss_factor: 2 for the squared error, 1 for half of it.
        bias: whether the model has a bias weight, the last one.
        max_dim, max_samples: largest values that `dim` and `samples` take where they are axes of a sweep. Inputs and
            samples beyond the actual number are drawn and count nothing.

    Returns:
        A `Problem` with `least_squares`: `oscillate` and theory use that, `train` differentiates the loss.

    Raises:
        ValueError: `dim` or `samples` below 1, or traced without a maximum; a negative variance, or a matrix that is no
            covariance; an unknown reduction.

    >>> linear_regression(dim=2, samples=5, input_variance=[1.0, 0.1])
    linear_regression(dim=2, samples=5, input_variance=[1. , 0.1])
    """
    num_inputs, input_mask = checks.count("dim", dim, max_dim, "count the inputs without the bias")
    num_samples, sample_mask = checks.count("samples", samples, max_samples, "a step needs at least one sample")
    checks.one_of("reduction", reduction, ("mean", "sum"))
    for name, value in dict(noise_variance=noise_variance, weight_variance=weight_variance).items():
        if value is not None:
            checks.between(name, value, 0, jnp.inf, "give a variance, not a standard deviation with a sign")
    checks.between("loss_factor", loss_factor, 0, jnp.inf, "2 is the squared error, 1 half of it", open_low=True)

    label = naming.call("linear_regression", dim=dim, samples=samples, input_variance=input_variance)
    variances, axes = principal_variances(input_variance, num_inputs, input_mask)
    dtype = jnp.result_type(float)
    noisy = not checks.is_concrete(noise_variance) or bool(np.any(np.asarray(noise_variance) > 0))
    noise_scale = jnp.sqrt(jnp.asarray(noise_variance, dtype))
    number = jnp.asarray(samples, dtype)
    share = 1 / number  # of one sample in a mean
    factor = jnp.asarray(loss_factor, dtype) * (number if reduction == "sum" else 1)
    gaussian = Gaussian(factor, number, variances, axes, jnp.asarray(dim, dtype), input_mask, bias)
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

    def draw(key: Array, k: Any = None) -> Noise:
        """One draw for inputs and noise, row by row: each call of the generator is compiled by itself."""
        normals = jax.random.normal(key, (num_samples, num_inputs + int(noisy)), dtype)
        normals = checks.masked(normals.T, sample_mask).T
        z = checks.masked(normals[:, :num_inputs], input_mask)
        return Noise(z, noise_scale * normals[:, num_inputs] if noisy else None)

    def scale_at(inputs: Inputs) -> Array:
        """Standard deviations in the eigenbasis, () or (dim,)."""
        return jnp.sqrt(variances + inputs.variance)

    def mean_at(inputs: Inputs) -> Array:
        return checks.masked(jnp.broadcast_to(inputs.mean, (num_inputs,)), input_mask)

    def batch(drawn: Noise, inputs: Inputs) -> Batch:
        z, eps = drawn
        scale = scale_at(inputs)
        around = scale * z if scale.ndim == 0 else scale[None, :] * z
        x = mean_at(inputs)[None, :] + (around if axes is None else dot(around, axes.T))
        x = jnp.concatenate([x, jnp.ones((num_samples, 1), dtype)], axis=1) if bias else x
        return Batch(checks.masked(x.T, sample_mask).T, jnp.zeros((num_samples,), dtype) if eps is None else eps)

    def loss(theta: Array, theta_star: Array, batch: Batch) -> Array:
        residual = dot(batch.inputs, theta - theta_star) - batch.noise
        return factor / 2 * share * jnp.sum(residual**2)

    # The same as a sequence (B, b), in the eigenbasis of the covariance

    def turned_weights(key: Array) -> tuple[Array, Array]:
        if axes is None:
            return weights(key)
        turn = jnp.pad(axes, (0, int(bias))) + jnp.diag(jnp.arange(num_weights) == num_inputs).astype(dtype)
        theta_star, theta_0 = (dot(turn.T, each) for each in weights(key))
        return theta_star, theta_0

    def moments(key: Array, k: Any = None) -> NoiseMoments:
        z, eps = draw(key)
        zz = share * jnp.sum(z[:, :, None] * z[:, None, :], axis=0)
        if eps is None:
            return NoiseMoments(share * z.sum(0), zz, None, None)
        return NoiseMoments(share * z.sum(0), zz, share * eps.sum(), share * jnp.sum(eps[:, None] * z, axis=0))

    def scale_and_mean(inputs: Inputs) -> tuple[Vector, Vector]:
        """Entry by entry: as one array, entries of B would be put together only to be taken apart."""
        scale = entrywise.vector(jnp.broadcast_to(scale_at(inputs), (num_inputs,)))
        return scale, entrywise.vector(gaussian.turned(mean_at(inputs)))

    def matrix(moments: NoiseMoments, inputs: Inputs) -> Matrix:
        scale, m = scale_and_mean(inputs)
        z, zz = entrywise.vector(moments.z), entrywise.matrix(moments.zz)
        around = [scale[i] * z[i] for i in range(num_inputs)]

        def x_x(i: int, j: int) -> Array:  # mean of x_i x_j
            return m[i] * m[j] + m[i] * around[j] + around[i] * m[j] + scale[i] * scale[j] * zz[i][j]

        upper = {(i, j): x_x(i, j) for i in range(num_inputs) for j in range(i, num_inputs)}
        if bias:
            upper |= {(i, num_inputs): m[i] + around[i] for i in range(num_inputs)}
            upper[num_inputs, num_inputs] = jnp.ones((), dtype)
        upper = {entry: factor * value for entry, value in upper.items()}
        return tuple(tuple(upper[min(i, j), max(i, j)] for j in range(num_weights)) for i in range(num_weights))

    def kick(moments: NoiseMoments, inputs: Inputs) -> Vector | None:
        if moments.eps is None or moments.eps_z is None:
            return None
        scale, m = scale_and_mean(inputs)
        eps_x = [moments.eps * m[i] + scale[i] * moments.eps_z[i] for i in range(num_inputs)]  # mean of epsilon x
        return tuple(factor * value for value in (*eps_x, *([moments.eps] if bias else [])))

    def trace(moments: NoiseMoments, inputs: Inputs) -> Array:
        scale = jnp.broadcast_to(scale_at(inputs), (num_inputs,))
        m, squares = gaussian.turned(mean_at(inputs)), jnp.diagonal(moments.zz)
        return factor * (jnp.sum(m**2 + 2 * m * scale * moments.z + scale**2 * squares) + int(bias))

    def product(moments: NoiseMoments, inputs: Inputs, error: Array) -> Array:
        m, scale = gaussian.turned(mean_at(inputs)), scale_at(inputs)
        slopes, offset = (error[:-1], error[-1]) if bias else (error, jnp.zeros((), dtype))
        around = scale * moments.z
        m_part = dot(m, slopes) + offset  # <(m, 1), error>
        x_part = m_part + dot(around, slopes)  # mean of <(x, 1), error>
        rows = factor * (m * x_part + around * m_part + scale * dot(moments.zz, scale * slopes))
        return jnp.append(rows, factor * x_part) if bias else rows

    return Problem(
        dim=num_inputs,
        init=init,
        draw=draw,
        batch=batch,
        loss=loss,
        error=lambda theta, theta_star: logscale.norm(theta - theta_star),  # finite where its square is not
        measure="distance",
        least_squares=LeastSquares(num_weights, turned_weights, moments, matrix, product, trace, kick, gaussian),
        label=label,
    )


def principal_variances(input_variance: Any, dim: int, mask: Array | None = None) -> tuple[Array, Array | None]:
    """Eigenvalues of the covariance, () where it is isotropic, and its eigenvectors; None where it is diagonal.

    Raises:
        ValueError: no variance, variances or covariance of `dim` inputs.
    """
    shape, dtype = np.shape(input_variance), jnp.result_type(float)
    if shape == ():
        checks.between("input_variance", input_variance, 0, jnp.inf, "give a variance, not a deviation with a sign")
        return jnp.asarray(input_variance, dtype), None
    if shape not in ((dim,), (dim, dim)) or (len(shape) == 2 and mask is not None):
        raise ValueError(
            f"input_variance must be one number, one for each of {dim} inputs, or their covariance matrix, got shape "
            f"{shape}{' and max_dim' if mask is not None else ''}; give shape (), ({dim},) or, without max_dim, "
            f"({dim}, {dim})"
        )
    concrete = checks.is_concrete(input_variance)
    values = np.asarray(input_variance, float) if concrete else jnp.asarray(input_variance, dtype)
    if len(shape) == 1:
        if concrete and not (np.isfinite(values).all() and (values >= 0).all()):
            raise ValueError(f"input_variance must hold finite numbers >= 0, got {input_variance}; give variances")
        return jnp.asarray(values, dtype), None
    if not concrete:
        variances, axes = jnp.linalg.eigh(values)
        return jnp.maximum(variances, 0), axes
    if not np.isfinite(values).all() or not np.allclose(values, values.T, rtol=1e-6, atol=0):
        raise ValueError("input_variance must be a finite symmetric matrix; give a covariance, e.g. np.cov(x.T)")
    variances, axes = np.linalg.eigh((values + values.T) / 2)
    if variances[0] < -1e-6 * max(variances[-1], 0):
        raise ValueError(
            f"input_variance must have no negative eigenvalue, got {variances[0]:.3g}; give a covariance, e.g. "
            "np.cov(x.T)"
        )
    return jnp.asarray(np.maximum(variances, 0), dtype), jnp.asarray(axes, dtype)
