import jax
import jax.numpy as jnp
import numpy as np
import pytest

from resonance_jax.numerics import entrywise
from resonance_jax.numerics.logscale import Scaled
from resonance_jax.numerics.spectral import log_spectral_radius

radius = jax.jit(log_spectral_radius)


def reference(matrix):
    return np.log(np.abs(np.linalg.eigvals(matrix)).max())


@pytest.mark.parametrize("size", [1, 2, 4, 6, 7, 12])
def test_random_matrices(x64, size):
    matrices = (
        np.random.default_rng(size).normal(size=(30, size, size)) * 10.0 ** np.linspace(-20, 20, 30)[:, None, None]
    )
    assert np.allclose([radius(m) for m in matrices], [reference(m) for m in matrices], rtol=0, atol=1e-11)


def test_float32():
    matrices = np.random.default_rng(0).normal(size=(100, 4, 4)).astype(np.float32)
    ours = jax.jit(jax.vmap(log_spectral_radius))(matrices)
    assert np.allclose(ours, [reference(m.astype(float)) for m in matrices], rtol=0, atol=2e-5)


def test_complex_pair(x64):
    angle = 0.7
    rotation = 3 * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    assert float(radius(rotation)) == pytest.approx(np.log(3), abs=1e-14)


def test_jordan_block(x64):
    for eigenvalue in (0.5, -2.0, 1e-8):
        jordan = eigenvalue * np.eye(4) + np.eye(4, k=1)
        assert float(radius(jordan)) == pytest.approx(np.log(abs(eigenvalue)), abs=1e-12)


def test_zero_and_nilpotent():
    for matrix in (np.zeros((4, 4)), np.eye(4, k=1), np.eye(8, k=1)):
        assert float(radius(matrix)) == -np.inf


def test_scaled_product(x64):
    matrix = np.random.default_rng(3).normal(size=(4, 4))
    expected = reference(matrix) - 5000 * np.log(2)
    for mantissa in (jnp.asarray(matrix), entrywise.matrix(jnp.asarray(matrix))):
        assert float(radius(Scaled(mantissa, jnp.int32(-5000)))) == pytest.approx(expected, abs=1e-11)


def test_what_is_not_finite_is_nan_and_what_is_not_square_is_refused():
    for bad in (np.nan, np.inf):
        for size in (2, 8):
            assert np.isnan(float(radius(np.full((size, size), bad))))
    with pytest.raises(ValueError, match=r"matrix must be square, got shape \(2, 3\); map over a stack of them"):
        log_spectral_radius(jnp.ones((2, 3)))
    with pytest.raises(ValueError, match=r"matrix must be square, got shape \(3, 2, 2\)"):
        log_spectral_radius(jnp.ones((3, 2, 2)))


def test_numpy_and_integer_matrices():
    matrices = [3 * np.eye(size, dtype=dtype) for size in (4, 8) for dtype in (float, int)]
    radii = jax.jit(lambda: [log_spectral_radius(matrix) for matrix in matrices])()  # constants: seen as they are
    assert radii == pytest.approx(np.log([3] * 4), rel=1e-6)


def test_entries_outside_the_range_of_their_squares():
    assert float(radius(np.full((2, 2), 1e30))) == pytest.approx(np.log(2e30), rel=1e-6)
    assert float(radius(np.full((2, 2), 1e-30))) == pytest.approx(np.log(2e-30), rel=1e-6)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("size", [2, 7])
def test_derivative_is_that_of_the_largest_eigenvalue(size, double):
    """Re(w^H dM v / (lambda w^H v)), by NumPy; forwards and backwards, for entries of every size."""
    rng = np.random.default_rng(size)
    matrices, changes = rng.normal(size=(2, 30, size, size))
    exact = []
    for matrix, change in zip(matrices, changes, strict=True):
        values, right = np.linalg.eig(matrix)
        i = np.abs(values).argmax()
        exact.append((np.linalg.inv(right)[i] @ change @ right[:, i] / values[i]).real)
    scales = 10.0 ** np.linspace(-15, 15, 30)[:, None, None]
    with jax.enable_x64(double):
        scaled = [jnp.asarray(each * scales, jnp.result_type(float)) for each in (matrices, changes)]
        both = jax.jit(
            jax.vmap(lambda m, d: (jax.jvp(log_spectral_radius, (m,), (d,))[1], jax.grad(log_spectral_radius)(m)))
        )
        forwards, slopes = both(*scaled)
    backwards = np.sum(np.asarray(slopes, float) * changes * scales, (1, 2))
    for ours in (forwards, backwards):
        assert np.allclose(ours, exact, rtol=1e-10 if double else 1e-4, atol=1e-10 if double else 1e-4)


def test_derivative_of_what_has_none_is_nan():
    assert np.isnan(jax.grad(log_spectral_radius)(jnp.eye(3, k=1))).all()
