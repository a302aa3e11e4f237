"""Remedies that the guard is compared with, against plain loops."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import xarray as xr

import resonance_jax as rj
from sweeps import _remedies, guard
from sweeps._remedies import REMEDIES

CURVATURE = np.array([1.0, 0.05])
START = np.array([1.0, -1.0])
MU, ETA, STEPS = 0.9, 0.3, 10


def weights_of(remedy, *, adam=False):
    """Weights after each of ten steps on the quadratic."""
    optimizer = REMEDIES[remedy](MU, ETA, adam)
    weights = {"a": jnp.asarray(START[:1]), "b": jnp.asarray(START[1:])}
    state, path = optimizer.init(weights), []
    for _ in range(STEPS):
        gradient = {name: jnp.asarray(CURVATURE[i : i + 1]) * weights[name] for i, name in enumerate("ab")}
        with jax.numpy_dtype_promotion("standard"):  # as in rj.train: optax multiplies counts with rates
            updates, state = optimizer.update(gradient, state, weights)
        weights = optax.apply_updates(weights, updates)
        path.append(np.concatenate([weights["a"], weights["b"]]))
    return np.array(path)


def loop(forget, *, adam=False):
    """The same in NumPy; `forget` of gradient, last update and step."""
    theta, buffer, square, last, path, times = START, np.zeros(2), np.zeros(2), np.zeros(2), [], 0
    for k in range(STEPS):
        gradient = CURVATURE * theta
        if forget(gradient, last, k):
            buffer, times = np.zeros(2), times + 1
        if adam:
            buffer = MU * buffer + (1 - MU) * gradient
            square = 0.999 * square + 0.001 * gradient**2
            hat = np.sqrt(square / (1 - 0.999 ** (k + 1))) + 1e-8
            last = -ETA * buffer / (1 - MU ** (k + 1)) / hat
        else:
            buffer = MU * buffer + gradient
            last = -ETA * buffer
        theta = theta + last
        path.append(theta)
    return np.array(path), times


@pytest.mark.parametrize("adam", [False, True])
def test_restart(x64, adam):
    expected, times = loop(lambda gradient, last, k: gradient @ last > 0, adam=adam)
    assert 0 < times < STEPS
    np.testing.assert_allclose(weights_of("restart", adam=adam), expected, rtol=1e-10)


@pytest.mark.parametrize("adam", [False, True])
def test_reset(x64, adam, monkeypatch):
    monkeypatch.setattr(_remedies, "RESET_EVERY", 4)
    expected, _ = loop(lambda gradient, last, k: k in (4, 8), adam=adam)
    np.testing.assert_allclose(weights_of("reset", adam=adam), expected, rtol=1e-10)
    assert not np.allclose(weights_of("none", adam=adam), expected)


def trained(remedies, *, adam):
    """A few steps, too few for a remedy to interfere, with the momentum as an axis of a sweep."""

    def point(remedy, mu):
        problem, optimizer = rj.problems.linear_regression(dim=1, samples=2), REMEDIES[remedy](mu, 0.01, adam)
        return rj.train(jax.random.key(0), problem=problem, optimizer=optimizer, num_steps=20, tail=20)

    data = rj.sweep(point, {"remedy": remedies, "mu": [0.5, 0.95]})
    assert all(np.isfinite(data[name]).all() for name in data)
    assert (data.diverged_at < 0).all()
    assert (data.growth_rate < 0).all()
    return data.distance


def test_every_remedy_trains():
    distance = trained(list(REMEDIES), adam=False)
    for name in ("plateau", "apply if finite", "guard"):
        np.testing.assert_allclose(distance.sel(remedy=name), distance.sel(remedy="none"), rtol=1e-5)
    capped, none = distance.sel(remedy="momentum 0.9"), distance.sel(remedy="none")
    np.testing.assert_allclose(capped[0], none[0], rtol=1e-5)
    assert abs(capped[1] - none[1]) > 1e-3
    assert len(set(distance.sel(remedy="no momentum").values.tolist())) == 1


def test_remedies_of_adam_train():
    distance = trained(["none", "plateau", "restart", "guard"], adam=True)
    np.testing.assert_allclose(distance.sel(remedy="plateau"), distance.sel(remedy="none"), rtol=1e-5)
    np.testing.assert_allclose(distance.sel(remedy="guard"), distance.sel(remedy="none"), rtol=1e-5)


@pytest.mark.parametrize(("scale", "number"), [("tiny", 2), ("quick", 5), ("paper", 6)])
def test_claims_of_every_scale(scale, number):
    """Of runs that all end alike: the tables of every scale have what their claims ask for."""
    axes = guard.axes(scale)
    shape = tuple(len(values) for values in axes.values())
    cells = {name: (tuple(axes), np.zeros(shape)) for name in ("log10_error", "away")}
    rows = guard.claims(xr.Dataset(cells, coords=axes))
    assert len(rows) == number
    assert rows[0].holds
    assert "0.00%" in rows[0].measured
