import jax
import jax.numpy as jnp
import numpy as np
import pytest

import resonance_jax as rj
from resonance_jax.problems.linear_regression import expected_gradient_matrix

KEY = jax.random.key(5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("noise_variance", [0.0, 0.3])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize(("dim", "samples"), [(1, 1), (1, 20), (4, 3)])
def test_gradient_from_moments_is_the_gradient_of_the_samples(x64, bias, noise_variance, reduction, dim, samples):
    """The fast form, moments of the noise, against the plain one, autodiff of the loss on the drawn samples."""
    problem = rj.problems.linear_regression(
        dim=dim, samples=samples, input_variance=0.4, noise_variance=noise_variance, reduction=reduction, bias=bias
    )
    mean = jnp.linspace(-1.0, 1.5, dim)
    x, eps = problem.samples(KEY, mean)
    error = jnp.arange(1.0, problem.num_weights + 1)

    def loss(error):
        squares = (x @ error - eps) ** 2
        return squares.mean() if reduction == "mean" else squares.sum()

    B, b = problem.gradient(problem.noise_moments(KEY), mean)
    gradient = B @ error - (0 if b is None else b)
    assert (b is None) == (noise_variance == 0)
    assert np.allclose(gradient, jax.grad(loss)(error), rtol=1e-12, atol=1e-12)


def test_loss_factor_scales_the_gradient():
    one, two = (rj.problems.linear_regression(dim=1, samples=2, loss_factor=c) for c in (1.0, 2.0))
    mean = jnp.array([0.3])
    assert np.allclose(2 * one.gradient(one.noise_moments(KEY), mean)[0], two.gradient(two.noise_moments(KEY), mean)[0])


def test_expected_gradient_matrix_of_the_paper(x64):
    for m in (-0.5, 0.0, 0.7):
        assert np.allclose(expected_gradient_matrix(jnp.array([m])), 2 * np.array([[1 + m * m, m], [m, 1]]), rtol=1e-15)
    assert np.allclose(
        expected_gradient_matrix(jnp.array([1.0, 2.0]), input_variance=0.5, loss_factor=1.0, bias=False),
        [[1.5, 2.0], [2.0, 4.5]],
    )


def test_mean_gradient_of_many_samples_is_the_expected_one(x64):
    """The entries have standard errors below 6e-3; a false alarm at 5 of them has probability below 1e-5."""
    mean = jnp.array([0.5, -0.2])
    problem = rj.problems.linear_regression(dim=2, samples=200_000, input_variance=0.7)
    B, _ = problem.gradient(problem.noise_moments(KEY), mean)
    assert np.allclose(B, expected_gradient_matrix(mean, input_variance=0.7), atol=0.03)


def test_weights_uniform_and_normal():
    """20,000 draws: 5 standard errors of mean and variance, false alarm below 1e-5."""
    keys = jax.random.split(KEY, 5000)
    for variance, expected in ((None, 1 / 3), (0.25, 0.25)):
        problem = rj.problems.linear_regression(dim=1, samples=1, weight_variance=variance)
        drawn = np.stack(jax.vmap(problem.weights)(keys))  # (2, 5000, 2)
        assert abs(drawn.mean()) < 5 * np.sqrt(expected / drawn.size)
        assert abs(drawn.var() - expected) < 5 * expected * np.sqrt(2 / drawn.size)
        assert abs(np.corrcoef(drawn[0].ravel(), drawn[1].ravel())[0, 1]) < 5 / np.sqrt(10_000)
        if variance is None:
            assert np.abs(drawn).max() <= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(dim=0), r"dim must be a whole number of at least 1, got 0; count the inputs"),
        (dict(samples=0), r"samples must be a whole number of at least 1, got 0; a step needs at least one sample"),
        (dict(samples=2.5), r"samples must be a whole number of at least 1, got 2.5"),
        (dict(reduction="max"), r"reduction must be one of 'mean', 'sum', got 'max'; pick one of them"),
        (dict(input_variance=-1.0), r"input_variance must lie in \[0, inf\), got -1.0; give a variance"),
        (dict(noise_variance=-1.0), r"noise_variance must lie in \[0, inf\), got -1.0; give a variance"),
        (dict(weight_variance=-1.0), r"weight_variance must lie in \[0, inf\), got -1.0; give a variance"),
        (dict(loss_factor=0.0), r"loss_factor must lie in \(0, inf\), got 0.0; 2 is the squared error"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        rj.problems.linear_regression(**{"dim": 1, "samples": 1} | arguments)
