"""The explorer without a browser: packing, cells, verdicts, the page as text, runs that clicks compute."""

import errno
import json
import re
import sys

import numpy as np
import pytest
import xarray as xr
from bokeh.document import Document
from typer.testing import CliRunner

import resonance_jax as rj
from benchmarks import explore as benchmark
from resonance_cli.app import app
from resonance_jax.explorer import live, packing, page
from resonance_jax.explorer.cells import axis_of, cells_of, is_even
from resonance_jax.explorer.verdicts import WORDS, basis, verdicts
from tests.exploring import dataset


def test_curves_come_back_within_half_a_level():
    rng = np.random.default_rng(0)
    curves = rng.normal(size=(7, 5, 64)).cumsum(-1) * 10.0 ** rng.integers(-30, 30, (7, 5, 1))
    curves[0, 0], curves[0, 1, 3], curves[0, 2, 4], curves[0, 3] = 2.5, np.nan, -np.inf, np.nan
    quantised = packing.quantise(curves)
    found = packing.dequantise(quantised)
    finite = np.isfinite(curves)
    np.testing.assert_array_equal(np.isfinite(found), finite)
    level = np.where(finite, curves, np.nan)
    level = (np.fmax.reduce(level, -1) - np.fmin.reduce(level, -1))[..., None] / packing.LEVELS
    rounding = 1e-6 * np.abs(np.where(finite, curves, 0)).max(-1, keepdims=True)  # offset and scale are float32
    assert np.all((np.abs(found - curves) <= level / 2 + rounding)[finite])
    np.testing.assert_array_equal(found[0, 0], 2.5)


def test_arrays_come_back_to_the_bit():
    arrays = {
        "codes": np.arange(256, dtype=np.uint8).reshape(2, 128),
        "values": np.array([[1 / 3, np.nan], [np.inf, -0.0]], np.float32),
        "huge": np.array([1e300, 1e-300, np.nan]),
        "flags": np.array([True, False]),
        "empty": np.zeros((0, 3), np.float32),
    }
    found = packing.unpack(packing.pack(arrays))
    assert {name: str(array.dtype) for name, array in found.items()} == dict(
        codes="uint8", values="float32", huge="float64", flags="uint8", empty="float32"
    )
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


def test_edges_lie_between_the_values_of_uneven_unsorted_and_geometric_axes():
    coords = {"f": [0.3, 0.0, 0.1], "eta": np.geomspace(1e-3, 1e-1, 3), "mu": np.linspace(0.9, 0.99, 10)}
    data = xr.Dataset(coords=coords)
    f, eta, mu = (axis_of(data, name) for name in coords)
    np.testing.assert_allclose(f.edges, [-0.05, 0.05, 0.2, 0.4])
    assert f.order.tolist() == [1, 2, 0]
    assert f.texts == ["f = 0", "f = 0.1", "f = 0.3"]
    np.testing.assert_allclose(eta.edges, np.geomspace(10**-3.5, 10**-0.5, 4))
    assert (f.log, eta.log, mu.log) == (False, True, False)
    assert (is_even(f), is_even(eta), is_even(mu)) == (False, True, True)


def test_axes_without_numbers_are_counted():
    coords = {"optimizer": ["sgd", "adam"], "a": ("pair", [1.0, 2.0]), "b": ("pair", [3, 4])}
    data = xr.Dataset({"loss": (("optimizer", "pair"), np.ones((2, 2)))}, coords=coords)
    axes = cells_of(data).axes
    assert axes["optimizer"].texts == ["optimizer = sgd", "optimizer = adam"]
    assert axes["pair"].texts == ["a = 1, b = 3", "a = 2, b = 4"]
    np.testing.assert_array_equal(axes["pair"].edges, [-0.5, 0.5, 1.5])


def test_what_is_chosen_to_be_drawn():
    cells = cells_of(dataset())
    assert (cells.value, cells.x, cells.y) == ("log10_distance", "f", "mu")
    assert cells.variables["predicted_rate"].dims == ("f", "eta", "mu")  # the same for every seed
    assert cells.variables["growth_rate"].dims == ("seed", "f", "eta", "mu")
    assert [name for name, variable in cells.variables.items() if variable.is_rate] == ["growth_rate", "predicted_rate"]
    kinds = {name: variable.kind for name, variable in cells.variables.items()}
    assert kinds == dict(log10_distance="log10", diverged="flag", growth_rate="signed", predicted_rate="signed")
    assert list(cells.curves) == ["log10_distance_curve"]
    assert [page.seed_of(each) for each in (cells, cells_of(dataset().isel(seed=[0])))] == ["seed", None]
    chosen = cells_of(dataset(), "growth_rate", x="mu")
    assert (chosen.value, chosen.x, chosen.y) == ("growth_rate", "mu", "f")


def test_diverged_cells_do_not_stretch_the_colours():
    loss = np.array([[0.5, 0.7], [0.6, 1e30]])
    data = xr.Dataset({"loss": (("T", "mu"), loss), "diverged_at": (("T", "mu"), np.array([[-1, -1], [-1, 40]]))})
    found = cells_of(data).variables["loss"]
    assert (found.kind, found.limits) == ("plain", (0.5, 0.7))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(value="loss"), r"no variable 'loss' to draw; choose one of log10_distance, growth_rate"),
        (dict(x="T"), r"x must be an axis of the variable, got 'T'; choose one of seed, f, eta, mu"),
        (dict(x="f", y="f"), r"x and y must be different axes, got 'f' twice; choose another"),
    ],
)
def test_choices_that_the_dataset_does_not_have(settings, message):
    with pytest.raises(ValueError, match=message):
        rj.explore(dataset(), **settings)


def test_what_cannot_be_explored():
    with pytest.raises(ValueError, match=r"explore draws a Dataset, got DataArray; pass what rj.sweep returned"):
        rj.explore(dataset().growth_rate)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"needs a variable of numbers over two dimensions, got {'f': 2}; sweep two"):
        rj.explore(xr.Dataset({"loss": ("f", [1.0, 2.0])}))


@pytest.mark.parametrize(
    ("outputs", "word"),
    [
        (dict(growth_rate=0.01, diverged=True), "diverged"),
        (dict(growth_rate=-0.01, diverged_at=7), "diverged"),
        (dict(growth_rate=-0.01, loss=np.nan), "not finite"),
        (dict(growth_rate=0.01, predicted_rate=0.02), "grows"),
        (dict(growth_rate=0.01, predicted_rate=-0.02), "grows"),  # what the run did counts more than what was predicted
        (dict(growth_rate=-0.01, predicted_rate=-0.02), "shrinks"),
        (dict(growth_rate=-0.01, predicted_rate=0.02), "cannot say"),
        (dict(growth_rate=-0.001, predicted_rate=-0.02), "cannot say"),  # less than a factor of ten in 1,000 steps
        (dict(rate=-0.01, rate_standard_error=0.006), "cannot say"),
        (dict(rate=-0.01, rate_standard_error=0.004), "shrinks"),
        (dict(mean_rate=-0.01, mean_square_rate=0.01), "cannot say"),
        (dict(mean_rate=0.01), "grows"),
        (dict(loss=0.01), "cannot say"),
        (dict(status=0, growth_rate=0.0), "not computed"),
        (dict(status=2, growth_rate=0.0), "diverged"),
        (dict(status=3, growth_rate=0.01), "not finite"),
    ],
)
def test_verdicts_err_on_the_safe_side(outputs, word):
    data = xr.Dataset({name: (("f", "mu"), np.full((1, 1), value)) for name, value in outputs.items()})
    cells = cells_of(data.assign_coords(step=[500, 1000]))
    assert WORDS[verdicts(cells).item()] == word


def test_the_page_says_what_its_verdicts_are_based_on():
    assert "less than a factor of ten in its 1600 steps cannot be judged" in basis(cells_of(dataset()))
    assert "by their sign alone" in basis(cells_of(dataset().drop_dims("step")))
    assert "no growth rate, so a verdict can only say what diverged says" in basis(
        cells_of(dataset()[["log10_distance", "diverged"]])
    )


def parts(html):
    """The specification and the arrays of a page."""

    def within(name):
        return re.search(rf'<script type="[^"]*" id="{name}">(.*?)</script>', html, re.DOTALL)[1]

    spec = json.loads(within("spec"))
    packed = spec["packed"]
    values = packing.unpack(packing.Packed(within("packed-values"), packed["values"]))
    return spec, values, packing.unpack(packing.Packed(within("packed-curves"), packed["curves"]))


def test_a_page_holds_the_dataset_and_asks_for_nothing_else(tmp_path):
    data = dataset()
    found = rj.explore(data, title="a <b> & c", path=tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert html == found.html
    assert not re.search(r"<(script|link)[^>]*\b(src|href)=", html)
    assert "<h1>a &lt;b&gt; &amp; c</h1>" in html
    assert "MB; save(" in repr(found)
    assert "a &amp;lt;b" in found._repr_html_()
    spec, values, curves = parts(html)
    np.testing.assert_array_equal(values["log10_distance"], data.log10_distance)
    np.testing.assert_array_equal(values["predicted_rate"], data.predicted_rate[0])
    codes = np.cumsum(curves["log10_distance_curve"], axis=-1, dtype=np.uint8)
    offset, scale = (curves[f"log10_distance_curve/{name}"] for name in ("offset", "scale"))
    drawn = packing.dequantise(packing.Quantised(codes, offset, scale))
    np.testing.assert_allclose(drawn[:2], data.log10_distance_curve[:2], atol=0.06)
    assert not spec["even"]  # f is not evenly spaced


def test_curves_that_would_make_the_page_too_large_are_left_out_and_named(monkeypatch):
    data = dataset().assign(growth_curve=lambda data: data.log10_distance_curve.diff("step"))
    packed = page.pack_cells(cells_of(data))[0]
    monkeypatch.setattr(page, "MOST_TEXT", len(packed.values.text) + len(packed.curves.text) - 1)
    html = rj.explore(data).html
    assert "Left out, to keep the page small: growth_curve." in html
    assert [curve["name"] for curve in parts(html)[0]["curves"]] == ["log10_distance_curve"]


def test_bokeh_is_asked_for_by_the_name_of_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "bokeh", None)
    with pytest.raises(ImportError, match=r'needs bokeh, which is not installed; run `pip install "resonance_jax\[exp'):
        rj.explore(dataset())


def cheap(seed, f, mu, record=2):
    steps = np.arange(1, record + 1)
    curve = rj.Labelled(f * steps.astype(np.float32) + seed, ("step",), (tuple(steps.tolist()),))
    return {"log10_distance": 100 * f * mu, "growth_rate": f - mu, "log10_distance_curve": curve}


AXES = {"seed": np.array([0.0, 1.0]), "f": np.array([0.2, 0.1, 0.0]), "mu": np.array([0.5, 1.0])}


def test_a_click_computes_the_run_at_its_own_coordinates():
    cells = cells_of(rj.sweep(cheap, AXES))
    point = live.with_record(cheap)
    run = live.compute_run(point, AXES, cells, {"seed": -1, "f": 0, "mu": 1}, {"f": 0.025, "mu": 0.75})
    assert run["texts"] == ["f = 0.025", "mu = 0.75"]
    np.testing.assert_allclose(run["values"]["log10_distance"], 100 * 0.025 * 0.75, rtol=1e-6)
    steps = np.arange(1, live.RECORD + 1)
    np.testing.assert_allclose(run["curves"]["log10_distance_curve"], [0.025 * steps, 0.025 * steps + 1], rtol=1e-6)
    assert run["positions"]["log10_distance_curve"] == steps.tolist()
    assert [WORDS[each] for each in run["verdicts"]] == ["shrinks", "shrinks"]


def test_a_click_on_axes_without_floats_takes_the_cell():
    def point(name, T):
        return {"loss": {"a": 1, "b": 2}[name] * T}

    axes = {"name": ["b", "a"], "T": np.array([3, 1])}
    cells = cells_of(rj.sweep(point, axes))
    run = live.compute_run(point, axes, cells, {"name": 0, "T": 0}, {"name": 0.3, "T": 1.4})
    assert (run["texts"], run["values"]) == (["name = b", "T = 1"], {"loss": [2.0]})


def test_a_server_answers_clicks_and_shows_errors():
    cells = cells_of(rj.sweep(cheap, AXES))
    document = Document()

    def compute(index, at):
        if at["f"] > 1:
            raise ValueError("f must lie below 1")
        return {"values": {"growth_rate": [np.inf, -np.inf, np.nan, 1.0]}, "index": index, "at": at}

    live.prepare_document(cells, compute, "a title", document)
    (verdict,) = [model for model in document.models if model.tags]
    ask, answer = verdict.tags

    def click(f):
        ask.data = {"x": [f], "y": [0.75], "index": ['{"f": 1}']}
        return json.loads(answer.data["run"][0])

    values = {"growth_rate": ["Infinity", "-Infinity", "NaN", 1.0]}
    assert click(0.5) == {"values": values, "index": {"f": 1}, "at": {"f": 0.5, "mu": 0.75}}
    assert click(2.0) == {"error": "f must lie below 1"}
    assert document.template_variables["lead"] == "Hover for values. Click anywhere to compute the run there."
    assert (document.title, document.template_variables["curves"]) == ("a title", packing.pack({}).text)


def test_a_port_that_is_taken_is_named(monkeypatch):
    def taken(*arguments, **named):  # what the server itself leaves open in this case is no concern of the test
        raise OSError(errno.EADDRINUSE, "Address already in use")

    monkeypatch.setattr("bokeh.server.server.Server", taken)
    with pytest.raises(ValueError, match=r"port 80 cannot be used: Address already in use; choose another port"):
        live.serve(cheap, AXES, rj.sweep(cheap, AXES), port=80)


SWEEP = '''
"""A sweep to explore."""
import numpy as np

def point(f, mu):
    return {"growth_rate": f - mu}

axes = {"f": np.linspace(0, 1, 4), "mu": np.linspace(0, 1, 3)}
'''


def command(*arguments, rc=0):
    result = CliRunner().invoke(app, ["explore", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == rc, (result.stdout, result.stderr)
    return result.stderr


def test_command(tmp_path, monkeypatch):
    file, store, out = tmp_path / "my.py", tmp_path / "my.zarr", tmp_path / "page.html"
    file.write_text(SWEEP)
    assert "page.html: " in command(file, "--out", out, "--set", "mu=0.5,1", "--no-cache")
    _, values, _ = parts(out.read_text(encoding="utf-8"))
    assert "<h1>A sweep to explore.</h1>" in out.read_text(encoding="utf-8")
    np.testing.assert_allclose(values["growth_rate"], np.linspace(0, 1, 4)[:, None] - [0.5, 1], rtol=1e-6)
    rj.sweep(lambda f, mu: {"growth_rate": f - mu}, {"f": [0.0, 1.0], "mu": [0.0, 1.0]}, store=store, devices=1)
    command(store, "--x", "mu")
    assert parts((tmp_path / "my.html").read_text(encoding="utf-8"))[0]["x"] == "mu"
    assert "--live computes runs and needs a sweep file" in command(store, "--live", rc=2)
    assert "is a store, which is read as it is; --set" in command(store, "--variant", "a", rc=2)
    assert "no variable 'z' to draw" in command(store, "--value", "z", rc=2)
    monkeypatch.setitem(sys.modules, "bokeh", None)
    assert "exploring needs bokeh" in command(store, rc=2)


def test_the_benchmark_runs_without_a_browser(monkeypatch, capsys):
    monkeypatch.setattr("shutil.which", lambda name: None)
    benchmark.main(side=4, seeds=2)
    printed = capsys.readouterr().out
    assert re.search(r"write: [\d.]+ s, [\d.]+ MB\nno Chromium on this machine", printed)
