"""Least squares on recorded rows, against a NumPy loop over the same rows and against optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
import pytest
import xarray as xr

import resonance_jax as rj
from resonance_jax.testing import check_problem
from tests import reference

KEY = jax.random.key(2)


def stream(num_rows=203, dim=2, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num_rows, dim)) + np.sin(np.arange(num_rows) / 4)[:, None]
    return x, x @ np.arange(1.0, dim + 1) - 0.5 + 0.1 * rng.normal(size=num_rows)


ORDERS = {"time": "time", "shuffled": "shuffled", "blocks": rj.problems.blocks(9), "buffer": rj.problems.buffer(25)}


@pytest.mark.parametrize(
    ("order", "dim", "samples"), [("time", 2, 4), ("shuffled", 7, 1), ("blocks", 7, 10), ("buffer", 2, 1)]
)
def test_runs_are_those_of_a_loop_over_the_rows(x64, order, dim, samples):
    """Few weights and many, B formed and not; with targets, so that noise kicks the run."""
    x, y = stream(dim=dim)
    problem = rj.problems.recorded(x, y, samples=samples, order=ORDERS[order])
    settings = dict(mu=0.8, eta=0.02)
    run = jax.jit(lambda key: rj.oscillate(key, problem=problem, num_steps=150, tail=20, **settings))(KEY)
    rows, residual, error = reference.draws(KEY, problem.stream, problem, 150)
    log10_distance, growth = reference.sgdm(rows, residual, error, tail=20, **settings)
    assert np.allclose([run["log10_distance"], run["growth_rate"]], [log10_distance, growth], rtol=1e-9, atol=1e-12)
    check_problem(problem)


def test_time_order_by_hand(x64):
    """The rows themselves, not those that the problem says it takes; theta* by lstsq."""
    x, y = stream()
    problem = rj.problems.recorded(x, y, samples=5, loss_factor=1.0)
    augmented = np.concatenate([x, np.ones((len(x), 1))], axis=1)[:200]
    theta_star = np.linalg.lstsq(augmented, y[:200], rcond=None)[0]
    found_star, theta = problem.least_squares.weights(jax.random.split(KEY, 4)[0])
    assert np.allclose(found_star, theta_star, rtol=1e-10)
    theta, velocity = np.asarray(theta), np.zeros(3)
    for k in range(90):  # more than two passes of 40 steps
        rows = slice(5 * (k % 40), 5 * (k % 40) + 5)
        gradient = augmented[rows].T @ (augmented[rows] @ theta - y[rows]) / 5
        velocity = 0.9 * velocity - 0.05 * gradient
        theta = theta + velocity
    run = rj.oscillate(KEY, problem=problem, mu=0.9, eta=0.05, num_steps=90, tail=1)
    assert np.isclose(run["log10_distance"], np.log10(np.linalg.norm(theta - theta_star)), rtol=1e-10)
    trained = rj.train(KEY, problem=problem, optimizer=optax.sgd(0.05, momentum=0.9), num_steps=90, tail=1)
    assert np.isclose(trained["distance"], np.linalg.norm(theta - theta_star), rtol=1e-8)
    assert np.allclose(problem.least_squares.recorded.curvature, augmented.T @ augmented / 200, rtol=1e-12)


def test_without_targets_the_error_alone_runs(x64):
    x, y = stream()
    without, with_targets = (rj.problems.recorded(x, t, samples=2) for t in (None, y))
    rates = [
        rj.theory.almost_sure_growth(problem=problem, mu=0.9, eta=0.01, num_steps=1000)
        for problem in (without, with_targets)
    ]
    assert np.isclose(rates[0].rate, rates[1].rate, atol=3e-3)  # from other starts
    assert without.least_squares.kick((), _step(without)) is None
    spectrum = rj.theory.lyapunov_spectrum(problem=without, mu=0.9, eta=0.01, key=KEY, num_steps=1000)
    assert np.isclose(spectrum[0], rates[0].rate, atol=3e-3)
    assert np.isclose(spectrum.sum(), 3 * np.log(0.9), rtol=1e-9)


def _step(problem):
    found = problem.least_squares.stream.inputs(
        KEY, jnp.arange(1, dtype=jnp.int32), problem.least_squares.stream.init(KEY)
    )[0]
    return jax.tree.map(lambda leaf: leaf[0], found)


def test_growth_in_time_order_is_floquets_over_one_pass(x64):
    """The same rows return, so the rate is the spectral radius of one pass's product, by NumPy."""
    x, _ = stream(60, 1)
    problem = rj.problems.recorded(x, samples=1)
    mu, eta = 0.95, 0.02
    M = np.eye(4)
    for row in np.concatenate([x, np.ones((60, 1))], axis=1):
        B = 2 * np.outer(row, row)
        M = np.block([[np.eye(2) - eta * B, mu * np.eye(2)], [-eta * B, mu * np.eye(2)]]) @ M
    expected = np.log(np.abs(np.linalg.eigvals(M)).max()) / 60
    rate = rj.theory.almost_sure_growth(problem=problem, mu=mu, eta=eta, num_steps=6000).rate
    assert np.isclose(rate, expected, atol=2e-4)


def test_features_are_a_basis():
    x, _ = stream(100, 1)
    by_hand = rj.problems.recorded(np.concatenate([x, x**2], axis=1), samples=2)
    features = rj.problems.recorded(x, samples=2, features=lambda x: jnp.concatenate([x, x**2], axis=1))
    runs = [
        rj.oscillate(KEY, problem=problem, mu=0.5, eta=0.01, num_steps=100, tail=1) for problem in (by_hand, features)
    ]
    assert np.isclose(runs[0]["log10_distance"], runs[1]["log10_distance"], rtol=1e-5)
    assert features.dim == 1
    with pytest.raises(
        ValueError, match=r"features must map rows \(n, 1\) to \(n, p\), got \(100,\) for n=100; one row"
    ):
        rj.problems.recorded(x, samples=2, features=lambda x: x[:, 0])
    with pytest.raises(ValueError, match="features must be a function of rows"):
        rj.problems.recorded(x, samples=2, features=3)


def test_a_sweep_over_orders_and_settings_takes_one_trace_for_each_order():
    x, _ = stream()
    traced = []

    def point(length, seed, mu):
        traced.append(1)
        problem = rj.problems.recorded(x, samples=1, order=rj.problems.blocks(length))
        return rj.oscillate(jax.random.key(seed), problem=problem, mu=mu, eta=0.01, num_steps=100, tail=10)

    data = rj.sweep(point, dict(length=[1, 10, 203], seed=[0, 1], mu=[0.5, 0.9]))
    assert len(traced) == 1
    assert np.isfinite(data.log10_distance).all()
    in_time = rj.oscillate(
        jax.random.key(1), problem=rj.problems.recorded(x, samples=1), mu=0.9, eta=0.01, num_steps=100, tail=10
    )
    assert np.isclose(data.log10_distance.sel(length=203, seed=1, mu=0.9), in_time["log10_distance"], rtol=1e-4)


def test_any_module_and_loss_train_on_the_rows():
    from flax import linen as nn

    x, y = stream(400)
    settings = dict(optimizer=optax.adam(0.05), num_steps=400, tail=50)

    class Linear(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(1)(x)

    problem = rj.problems.recorded(x, y, samples=10, module=Linear())
    assert repr(problem) == "recorded(rows=400, inputs=2, samples=10, order=time, module=Linear)"
    found = rj.train(KEY, problem=problem, **settings)
    assert 0.005 < found["loss"] < 0.03  # the targets' noise has variance 0.01
    absolute = rj.problems.recorded(
        x, y, samples=10, order="shuffled", module=Linear(), loss=lambda outputs, targets: jnp.abs(outputs - targets)
    )
    assert 0.06 < rj.train(KEY, problem=absolute, **settings)["loss"] < 0.12
    check_problem(problem)
    with pytest.raises(ValueError, match="a module needs targets to fit, got none"):
        rj.problems.recorded(x, samples=10, module=Linear())
    with pytest.raises(ValueError, match=r"loss must map outputs and targets \(n,\) to losses \(n,\), got \(\)"):
        rj.problems.recorded(
            x, y, samples=10, module=Linear(), loss=lambda outputs, targets: jnp.mean(outputs - targets)
        )
    with pytest.raises(ValueError, match=r"module must map rows \(n, 2\) to \(n, 1\) or \(n,\), got \(10, 3\)"):
        rj.problems.recorded(x, y, samples=10, module=nn.Dense(3))
    with pytest.raises(ValueError, match="a loss needs a module to fit"):
        rj.problems.recorded(x, y, samples=10, loss=lambda outputs, targets: outputs - targets)


def test_rows_of_pandas_and_xarray_have_names():
    x, y = stream()
    frame = pd.DataFrame(x, columns=["wind", "rain"]).assign(calm=1)
    with pytest.raises(ValueError, match="column 'calm' is constant, 1, and so the same as the bias; leave it out"):
        rj.problems.recorded(frame, y, samples=1)
    array = xr.DataArray(x.copy(), dims=("time", "what"), coords={"what": ["wind", "rain"]})
    array[3, 1] = np.nan
    with pytest.raises(ValueError, match="inputs must be finite, got nan in row 3, column 'rain', and 0 more; drop"):
        rj.problems.recorded(array, y, samples=1)
    same = rj.problems.recorded(frame[["wind", "rain"]], pd.Series(y), samples=1)
    assert np.allclose(
        same.least_squares.recorded.curvature, rj.problems.recorded(x, y, samples=1).least_squares.recorded.curvature
    )


BAD = {
    "targets must be one number for each of 203 rows, got shape \\(200,\\)": lambda x, y: (x, y[:200]),
    "targets must be finite, got inf in row 1, column '0'": lambda x, y: (x, np.where(np.arange(203) == 1, np.inf, y)),
    "inputs must be numbers, got": lambda x, y: (x.astype(str), y),
    "inputs must be rows of numbers, \\(N, columns\\), got shape \\(203, 2, 1\\)": lambda x, y: (x[:, :, None], y),
    "inputs must be rows of numbers, \\(N, columns\\), got shape \\(0, 1\\)": lambda x, y: ([], None),
    "column '1' is 0 in every row, so no step moves its weight": lambda x, y: (x * [1, 0], y),
    "the columns '0', '1', '2' are linearly dependent": lambda x, y: (np.concatenate([x, x[:, :1] + x[:, 1:]], 1), y),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_rows_are_named(message):
    inputs, targets = BAD[message](*stream())
    with pytest.raises(ValueError, match=message):
        rj.problems.recorded(inputs, targets, samples=1)


def test_bad_settings_are_named():
    x, y = stream()
    with pytest.raises(ValueError, match="samples must be at most the 203 rows, got 204"):
        rj.problems.recorded(x, y, samples=204)
    problem = rj.problems.recorded(x, y, samples=1)
    with pytest.raises(ValueError, match=r"has inputs of its own, got shift=sinusoid\(f=0.1.* leave the shift out"):
        rj.oscillate(KEY, shift=rj.shifts.sinusoid(0.1), problem=problem, mu=0.9, eta=0.1, num_steps=10, tail=1)
    with pytest.raises(ValueError, match="the mean and the mean square are exact for Gaussian inputs"):
        rj.theory.mean_growth(rj.shifts.resting(), problem, mu=0.9, eta=0.1)
    with pytest.raises(
        ValueError, match="inputs must be recorded numbers, got a traced array; make the problem outside"
    ):
        jax.jit(lambda x: rj.problems.recorded(x, samples=1).dim)(x)
    with pytest.raises(ValueError, match="problem must be least squares"):
        rj.theory.almost_sure_growth(mu=0.9, eta=0.1)


def test_without_a_shift_nothing_moves():
    problem = rj.problems.linear_regression(dim=2, samples=3)
    settings = dict(problem=problem, mu=0.9, eta=0.01, num_steps=50, tail=5)
    left_out, resting = (rj.oscillate(KEY, shift=shift, **settings) for shift in (None, rj.shifts.resting()))
    assert left_out == resting
