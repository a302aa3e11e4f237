import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import resonance_jax as rj
from resonance_jax.numerics import entrywise
from resonance_jax.problems.linear_regression import expected_gradient_matrix
from resonance_jax.shifts import Inputs
from tests import reference

KEY = jax.random.key(5)


@pytest.mark.parametrize(("dim", "samples"), [(1, 1), (1, 20), (4, 3)])
def test_gradient_from_moments_is_the_gradient_of_the_samples(x64, dim, samples):
    """The fast form, moments of the noise, against the plain one, autodiff of the loss on the drawn samples."""
    mean = jnp.linspace(-1.0, 1.5, dim)
    kinds = list(itertools.product([True, False], [0.0, 0.3], ["mean", "sum"]))

    def forms(key, bias, noise_variance, reduction):
        problem = rj.problems.linear_regression(
            dim=dim, samples=samples, input_variance=0.4, noise_variance=noise_variance, reduction=reduction, bias=bias
        )
        inputs, linear = Inputs(mean, jnp.array(0.2)), problem.least_squares
        x, eps = problem.batch(problem.draw(key, 0), inputs)
        error = jnp.arange(1.0, linear.num_weights + 1)

        def loss(error):
            squares = (x @ error - eps) ** 2
            return squares.mean() if reduction == "mean" else squares.sum()

        step = linear.draw(key, 0), inputs
        B, b = entrywise.to_array(linear.matrix(*step)), linear.kick(*step)
        traces = linear.trace(*step), jnp.trace(B)
        return (
            B @ error,
            None if b is None else jnp.stack(b),
            linear.product(*step, error),
            jax.grad(loss)(error),
            traces,
        )

    results = jax.jit(lambda key: [forms(key, *kind) for kind in kinds])(KEY)
    for kind, (linear, b, product, expected, traces) in zip(kinds, results, strict=True):
        assert np.allclose(*traces, rtol=1e-12), kind
        assert (b is None) == (kind[1] == 0), kind
        assert np.allclose(product, linear, rtol=1e-12), kind
        assert np.allclose(linear - (0 if b is None else b), expected, rtol=1e-12, atol=1e-12), kind


def test_loss_factor_scales_the_gradient():
    problems = [rj.problems.linear_regression(dim=1, samples=2, loss_factor=c).least_squares for c in (1.0, 2.0)]
    inputs = Inputs(jnp.array([0.3]), jnp.array(0.0))
    B = jax.jit(lambda key: [each.matrix(each.draw(key, 0), inputs) for each in problems])(KEY)
    assert np.allclose(2 * np.array(B[0]), np.array(B[1]))


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
    linear, inputs = problem.least_squares, Inputs(mean, jnp.array(0.0))
    B = jax.jit(lambda key: linear.matrix(linear.draw(key, 0), inputs))(KEY)
    assert np.allclose(B, expected_gradient_matrix(mean, input_variance=0.7), atol=0.03)


def test_weights_uniform_and_normal():
    """20,000 draws: 5 standard errors of mean and variance, false alarm below 1e-5."""
    keys = jax.random.split(KEY, 5000)
    for variance, expected in ((None, 1 / 3), (0.25, 0.25)):
        problem = rj.problems.linear_regression(dim=1, samples=1, weight_variance=variance)
        drawn = np.stack(jax.jit(jax.vmap(problem.least_squares.weights))(keys))  # (2, 5000, 2)
        assert abs(drawn.mean()) < 5 * np.sqrt(expected / drawn.size)
        assert abs(drawn.var() - expected) < 5 * expected * np.sqrt(2 / drawn.size)
        assert abs(np.corrcoef(drawn[0].ravel(), drawn[1].ravel())[0, 1]) < 5 / np.sqrt(10_000)
        if variance is None:
            assert np.abs(drawn).max() <= 1


def run_of(dim=4, samples=5, **maxima):
    """A short noisy run under a shift of the same dim; sizes may be tracers."""
    of_shift = {name: value for name, value in maxima.items() if name == "max_dim"}
    return rj.oscillate(
        KEY,
        shift=rj.shifts.square_wave(9, dim=dim, **of_shift),
        problem=rj.problems.linear_regression(
            dim=dim, samples=samples, input_variance=0.3, noise_variance=0.1, reduction="sum", **maxima
        ),
        mu=0.9,
        eta=0.01,
        num_steps=20,
        tail=20,
    )


def test_samples_as_an_axis_see_the_draws_of_the_plain_run(x64):
    """A run on n of at most five samples equals the run on n samples: the normals are drawn row by row."""
    data = rj.sweep(lambda samples: run_of(samples=samples, max_samples=5), dict(samples=[1, 3, 5]))
    for samples in (3, 5):
        alone = jax.jit(functools.partial(run_of, samples=samples))()
        assert float(data.log10_distance.sel(samples=samples)) == pytest.approx(float(alone["log10_distance"]))


@pytest.mark.parametrize("train", [False, True])
def test_dim_as_an_axis_is_the_numpy_loop_on_fewer_inputs(x64, train):
    """Inputs beyond dim are cut off before NumPy sees them."""
    common = dict(mu=0.9, eta=0.01) if not train else dict(optimizer=optax.sgd(0.01, momentum=0.9))
    run = rj.train if train else rj.oscillate

    def parts(dim):
        shift = rj.shifts.switching(9, dim=dim, variance=0.5, max_dim=4)
        return shift, rj.problems.linear_regression(dim=dim, samples=2, noise_variance=0.1, max_dim=4)

    def point(dim):
        shift, problem = parts(dim)
        return run(KEY, shift=shift, problem=problem, num_steps=40, tail=40, **common)

    data = rj.sweep(point, dict(dim=[1, 3, 4]))
    distances = np.log10(data.distance) if train else data.log10_distance
    drawn = jax.jit(lambda dim: reference.traced_draws(KEY, *parts(dim), 40))
    for dim in (1, 3, 4):
        x, eps, error = (np.asarray(each) for each in drawn(dim))
        kept = [*range(dim), 4]
        assert not np.any(np.delete(x, kept, axis=2))
        assert not np.any(np.delete(error, kept))
        theirs, _ = reference.sgdm(x[..., kept], eps, error[kept], mu=0.9, eta=0.01, tail=40)
        assert float(distances.sel(dim=dim)) == pytest.approx(theirs, abs=1e-10)


def test_masked_square_wave_keeps_its_norm():
    shift = jax.jit(lambda dim: rj.shifts.square_wave(9, dim=dim, max_dim=6).init(KEY))(3)
    assert np.linalg.norm(shift) == pytest.approx(0.5)
    assert np.count_nonzero(shift) == 3


@pytest.mark.parametrize(
    ("point", "axes", "message"),
    [
        (lambda samples: run_of(samples=samples), dict(samples=[1, 2]), r"samples is traced, .*give max_samples"),
        (lambda dim: run_of(dim=dim, max_dim=4), dict(dim=[1.0]), r"dim must be one whole number, .*put integers"),
        (lambda x: run_of(dim=5, max_dim=4), dict(x=[1.0]), r"dim must be at most max_dim, got dim=5 > 4; raise max_"),
        (lambda x: run_of(max_samples=0), dict(x=[1.0]), r"max_samples must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_sizes(point, axes, message):
    with pytest.raises(ValueError, match=message):
        rj.sweep(point, axes)


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
