"""Static axes, which do not hold numbers, and zipped axes."""

import enum
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import resonance_jax as rj
from resonance_jax.jobs.store import load

MU, ETA, SEED = np.array([0.5, 0.9, 0.99]), np.array([0.1, 0.01, 0.03]), np.arange(4)
KINDS = ["sum", "product"]


def point(mu, eta, seed=0, kind="sum"):
    noise = jax.random.normal(jax.random.key(seed))
    return {
        "y": mu + jnp.sin(eta) + noise if kind == "sum" else mu * jnp.exp(eta) * noise,
        "pair": jnp.stack([mu, eta]),
    }


def zipped(**axes):
    return {name: xr.DataArray(values, dims="run") for name, values in axes.items()}


def everywhere(check):
    """In memory and in a store, whole and in chunks, on one device and on two."""
    cases = [dict(devices=devices, chunk=chunk) for devices in (1, 2) for chunk in (None, 1, 2)]
    return pytest.mark.parametrize("stored", [False, True])(pytest.mark.parametrize("named", cases)(check))


def swept(axes, named, stored, tmp_path, point=point):
    return rj.sweep(point, axes, **named, **({"store": tmp_path / "a.zarr"} if stored else {}))


@everywhere
def test_each_static_value_is_a_sweep_of_its_own(named, stored, tmp_path):
    data = swept(dict(mu=MU, kind=KINDS, eta=ETA), named, stored, tmp_path)
    assert data.y.dims == ("mu", "kind", "eta")
    assert data.kind.values.tolist() == KINDS
    assert data.kind.dtype.kind == "U"
    for kind in KINDS:
        plain = rj.sweep(functools.partial(point, kind=kind), dict(mu=MU, eta=ETA), devices=1)
        for name in ("y", "pair"):
            np.testing.assert_allclose(data[name].sel(kind=kind), plain[name], rtol=1e-6)


@everywhere
def test_zipped_axes_are_the_diagonal_of_the_product(named, stored, tmp_path):
    data = swept(zipped(mu=MU, eta=ETA) | dict(seed=SEED), named, stored, tmp_path)
    assert data.y.dims == ("run", "seed")
    assert data.pair.dims == ("run", "seed", "pair_0")
    assert "run" not in data.coords
    np.testing.assert_array_equal(data.mu, MU)
    assert data.mu.dims == data.eta.dims == ("run",)
    plain = rj.sweep(point, dict(mu=MU, eta=ETA, seed=SEED), devices=1)
    diagonal = plain.y.sel(mu=data.mu, eta=data.eta)  # pointwise indexing
    np.testing.assert_allclose(data.y, diagonal.transpose("run", "seed"), rtol=1e-6)


@everywhere
def test_a_static_axis_may_be_zipped_too(named, stored, tmp_path):
    kinds = ["sum", "product", "sum"]
    data = swept(zipped(kind=kinds, eta=ETA) | dict(mu=MU), named, stored, tmp_path)
    assert data.y.dims == ("run", "mu")
    assert data.kind.values.tolist() == kinds
    plain = rj.sweep(point, dict(kind=KINDS, eta=ETA, mu=MU), devices=1)
    np.testing.assert_allclose(data.y, plain.y.sel(kind=data.kind, eta=data.eta), rtol=1e-6)


def test_a_static_value_is_held_against_the_numbers_beside_it():
    def momentum(mu, checked):
        rate = rj.theory.growth_rate(rj.shifts.sinusoid(0.1), mu=mu, eta=0.1) if checked else mu
        return {"y": rate}

    assert rj.sweep(momentum, zipped(mu=[0.5, 1.5], checked=[True, False])).y[1].item() == 1.5
    with pytest.raises(ValueError, match=r"mu must lie in \[0, 1\], got 1.5"):
        rj.sweep(momentum, zipped(mu=[0.5, 1.5], checked=[False, True]))


def test_a_chunk_never_spans_two_static_values():
    data = rj.sweep(point, dict(kind=KINDS, mu=MU, eta=ETA), devices=1)
    assert (data.attrs["chunk_shape"], data.attrs["num_chunks"]) == ([1, 3, 3], 2)


def test_one_trace_and_one_program_for_each_static_value():
    traces, compilations = [], []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: compilations.append(event) if "backend_compile" in event else None
    )

    def counted(x, name):
        traces.append(name)
        return {"y": x + len(name)}

    for values in ([1.0, 2.0], [3.0, 4.0]):
        data = rj.sweep(counted, dict(x=values, name=["a", "bb", "ccc"]), devices=1)
        assert traces == ["a", "bb", "ccc"]
        assert len(compilations) == 3
        np.testing.assert_array_equal(data.y, np.array(values)[:, None] + [1, 2, 3])
    rj.sweep(counted, zipped(x=[1.0, 2.0, 3.0, 4.0], name=["a", "bb", "bb", "a"]), devices=1)
    assert len(traces) == 3
    assert len(compilations) == 5  # of a cell alone: "a" and "bb"


def test_progress_over_static_values(capsys):
    rj.sweep(point, dict(kind=KINDS, mu=MU, eta=ETA), progress=True)
    assert "18/18 cells" in capsys.readouterr().out


class Rule(enum.Enum):
    heavy_ball = 1
    nesterov = 2


def double(x):
    return 2 * x


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["sgd", "adam"], ["sgd", "adam"]),
        (np.array(["sgd", "adam"]), ["sgd", "adam"]),
        ([True, False], [True, False]),
        (np.array([True, False]), [True, False]),
        ([None, 0.5, 1], ["None", "0.5", "1"]),
        ([True, 1], ["True", "1"]),
        ([(20, 20), (50, 50)], ["(20, 20)", "(50, 50)"]),
        ([(20, 20), (50,)], ["(20, 20)", "(50,)"]),
        ([double, jnp.sin], ["double", "sin"]),
        (list(Rule), ["heavy_ball", "nesterov"]),
        ([int, float], ["int", "float"]),
    ],
)
def test_plain_values_and_their_labels(values, labels, tmp_path):
    seen = []

    def remember(value):
        seen.append(value)
        return {"y": 1.0}

    data = rj.sweep(remember, dict(value=values))
    assert seen == list(values)
    assert [type(value) for value in seen] == [
        {np.str_: str, np.bool: bool}.get(type(value), type(value)) for value in values
    ]
    assert data.value.values.tolist() == labels
    assert data.y.sel(value=labels[1]).item() == 1
    kept = rj.sweep(remember, dict(value=values), store=tmp_path / "a.zarr")
    xr.testing.assert_equal(kept.drop_vars("status"), data)
    assert xr.open_zarr(tmp_path / "a.zarr").value.values.tolist() == labels
    assert len(seen) == len(labels)


def test_true_is_not_one():
    kinds = rj.sweep(lambda v: {"y": isinstance(v, bool) + 0}, dict(v=[True, 1, None, (1,), (True,)])).y
    assert kinds.values.tolist() == [1, 0, 0, 0, 0]
    pairs = rj.sweep(lambda v: {"y": isinstance(v[0], bool) + 0}, dict(v=[(1,), (True,), (1.0,)])).y
    assert pairs.values.tolist() == [0, 1, 0]


def test_a_data_array_along_itself_is_an_ordinary_axis():
    data = rj.sweep(
        lambda mu, eta: {"y": mu * eta}, dict(mu=xr.DataArray(MU, dims="mu"), eta=xr.DataArray(ETA, dims="eta"))
    )
    assert data.y.dims == ("mu", "eta")
    np.testing.assert_array_equal(data.indexes["mu"], MU)


def test_an_axis_may_be_the_dimension_of_others():
    data = rj.sweep(lambda run, mu: {"y": run + mu}, zipped(mu=MU) | dict(run=np.arange(3.0)))
    assert data.y.dims == ("run",)
    np.testing.assert_allclose(data.sel(run=1.0).y, 1.9)


def test_stores_of_other_axes_are_refused(tmp_path):
    out = tmp_path / "a.zarr"
    rj.sweep(point, zipped(mu=MU, eta=ETA), store=out)
    with pytest.raises(ValueError, match=r"axes mu, eta, in the store mu along run, eta along run\. Give another"):
        rj.sweep(point, dict(mu=MU, eta=ETA), store=out, resume=True)
    out = tmp_path / "b.zarr"
    rj.sweep(point, dict(kind=KINDS, mu=MU, eta=ETA), store=out, shard="1/2", chunk=9)
    with pytest.raises(ValueError, match=r"axis kind is product, sum, in the store sum, product\. Give another"):
        rj.sweep(point, dict(kind=KINDS[::-1], mu=MU, eta=ETA), store=out, resume=True)
    assert np.isnan(load(out).y.sel(kind="product")).all()

    def changed(mu, eta, kind):
        return point(mu, eta, 0, kind) | ({"y": mu} if kind == "product" else {})

    with pytest.raises(ValueError, match=r"the point computes something else"):
        rj.sweep(changed, dict(kind=KINDS, mu=MU, eta=ETA), store=out, resume=True)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (
            dict(a=["x", "x"]),
            r"axis 'a' has more than one value with the label 'x'; remove one, or give functions names of their own wi",
        ),
        (dict(a=[lambda x: x, lambda x: 2 * x]), r"more than one value with the label '<lambda>'"),
        (zipped(a=[lambda x: x, lambda x: 2 * x]), r"more than one value with the label '<lambda>'"),
        (dict(a=[None, "None"]), r"more than one value with the label 'None'"),
        (
            dict(a=["x", [1, 2]]),
            r"axis 'a' must hold numbers, or hashable values such as strings, bools, None, tuples and functions; got "
            r"list; take a tuple, or a function that makes it",
        ),
        (dict(a=[{"x": 1}]), r"axis 'a' must hold numbers, or hashable values .* got dict"),
        (dict(a="adam"), r"axis 'a' must be 1-D, got shape \(\); wrap a single value as \[value\]"),
        (dict(a=np.array([["x"]])), r"axis 'a' must be 1-D, got shape \(1, 1\)"),
        (dict(a=np.array([], str)), r"axis 'a' must have at least one value, got none"),
        (dict(a=np.array(["2026"], "M8[Y]")), r"axis 'a' must hold real numbers, or hashable values such as strings, "),
        (dict(a=xr.DataArray([[1.0]], dims=("p", "q"))), r"axis 'a' must be 1-D, got shape \(1, 1\)"),
        (
            zipped(a=[1.0, 2.0]) | zipped(b=[1.0]),
            r"axes 'a' and 'b' share the dimension 'run' and must be of one length, got 2 and 1; give each as many val",
        ),
        (
            dict(a=xr.DataArray([1.0], dims="b")) | zipped(b=[1.0]),
            r"the dimension 'b' of axis 'a' is the name of an axis along 'run'; rename the dimension",
        ),
        (
            dict(a=xr.DataArray([1.0], dims="y")),
            r"outputs, their dimensions and axes share the names \['y'\]; rename the outputs",
        ),
        (dict(a=xr.DataArray([-1.0], dims="run"), b=["mu"]), r"mu must lie in \[0, 1\], got -1.0"),
    ],
)
def test_bad_axes(axes, message):
    def point(a, b="none"):
        if b == "mu":
            rj.theory.growth_rate(rj.shifts.sinusoid(0.1), mu=a, eta=0.1)
        return {"y": 1.0}

    with pytest.raises(ValueError, match=message):
        rj.sweep(point, axes)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {"y": jnp.ones(2)},
            r"got float32 of shape \(\) under 'y' for kind='a', x='p' and float32 of shape \(2,\) for kind='b', x='p'",
        ),
        ({"y": 1}, r"under 'y' for kind='a', x='p' and int32 of shape \(\) for kind='b', x='p'; return the same names"),
        ({"z": 1.0}, r"under 'y' for kind='a', x='p' and nothing for kind='b', x='p'; .* or sweep once for each value"),
        ({"y": 1.0, "z": 1.0}, r"got nothing under 'z' for kind='a', x='p' and float32 of shape \(\) for kind='b'"),
    ],
)
def test_outputs_agree_between_static_values(other, message):
    with pytest.raises(ValueError, match=r"outputs must agree between static values, .*" + message):
        rj.sweep(lambda kind, x: {"y": 1.0} if kind == "a" else other, dict(kind=["a", "b"], x=["p", "q"]))
