"""The page in Chromium, from a file, without a network: what it draws, and what it answers to the mouse."""

import csv
import io
import shutil
import time

import matplotlib.image
import numpy as np
import pytest
from matplotlib.colors import to_hex

import resonance_jax as rj
from resonance_jax.explorer import page as page_module
from resonance_jax.explorer.packing import LEVELS
from tests.exploring import MU, F, dataset

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("no Chromium on this machine", allow_module_level=True)
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    rj.explore(dataset(), path=path)
    context = browser.new_context(viewport=dict(width=1300, height=950), offline=True)
    page = context.new_page()
    page.complaints, page.requests = [], []
    page.on("console", lambda said: said.type in ("error", "warning") and page.complaints.append(said.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("request", lambda request: page.requests.append(request.url))
    begin = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_function("document.body.dataset.ready && explorer.state.run")
    print(f"opened in {time.perf_counter() - begin:.2f} s")
    yield page
    context.close()


def position(page, f, mu):
    """Where a point of the heatmap lies on the screen."""
    return page.evaluate(
        """([x, y]) => {
          const figure = Bokeh.documents[0].get_model_by_name("heatmap")
          const view = Bokeh.index.find_one(figure)
          const box = view.el.getBoundingClientRect()
          const frame = view.frame
          return [box.left + frame.x_scale.compute(x), box.top + frame.y_scale.compute(y)]
        }""",
        [f, mu],
    )


def click(page, f, mu):
    page.evaluate("explorer.state.run = null")
    page.mouse.click(*position(page, f, mu))
    page.wait_for_function("explorer.state.run")


def choose(page, name, text):
    page.get_by_label(name, exact=True).select_option(label=text)
    page.wait_for_timeout(50)


def slice_of(page):
    """The values that the heatmap shows, over mu and f."""
    shown = page.evaluate("[...explorer.state.slice].map((v) => (Number.isNaN(v) ? 'NaN' : v))")
    return np.array(shown, float).reshape(len(MU), len(F))


def test_it_opens_without_a_request_or_a_complaint(page):
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert len([url for url in page.requests if url.startswith("file:")]) == 1


def test_slices_and_means_are_those_of_the_dataset(page):
    data = dataset().isel(eta=0)
    mean = rj.log10_mean(data.log10_distance.astype(float), "seed").transpose("mu", "f")
    np.testing.assert_allclose(slice_of(page), mean, rtol=1e-6)
    choose(page, "seed", "seed = 2")
    np.testing.assert_array_equal(slice_of(page), data.log10_distance.sel(seed=2).transpose("mu", "f"))
    choose(page, "heatmap of", "growth_rate")
    np.testing.assert_array_equal(slice_of(page), data.growth_rate.sel(seed=2).transpose("mu", "f"))
    choose(page, "seed", "mean over 3 seeds")
    np.testing.assert_allclose(slice_of(page), data.growth_rate.astype(float).mean("seed").transpose("mu", "f"))
    choose(page, "heatmap of", "log10_distance")


def test_a_slider_moves_to_another_slice(page):
    slider = page.locator(".noUi-handle").first
    slider.focus()
    slider.press("ArrowRight")
    page.wait_for_function("explorer.chosen.eta === 1")
    expected = rj.log10_mean(dataset().isel(eta=1).log10_distance.astype(float), "seed").transpose("mu", "f")
    np.testing.assert_allclose(slice_of(page), expected, rtol=1e-6)
    slider.press("ArrowLeft")
    page.wait_for_function("explorer.chosen.eta === 0")


def test_hovering_shows_the_cell_under_the_pointer(page):
    choose(page, "seed", "seed = 1")
    data = dataset().isel(eta=0, seed=1)
    for f, mu, inside in ((0.01, 0.95, 0.0), (0.03, 0.99, 0.014), (0.03, 0.95, 0.0)):  # edges are half-way, at 0.045
        page.mouse.move(*position(page, f + inside, mu))
        page.locator("#tip", has_text=f"f = {f:g}, eta = 0.01, mu = {mu:g}").wait_for()
        tip = page.locator("#tip").inner_text()
        cell = data.sel(f=f, mu=mu)
        assert f"growth_rate\t{float(f'{cell.growth_rate.item():.5g}')!r}" in tip
        assert "seed = 1" in tip
        assert ("log10_distance\tnot a number" in tip) == bool(np.isnan(cell.log10_distance))
        assert ("not finite" in tip) == bool(np.isnan(cell.log10_distance))
    choose(page, "seed", "mean over 3 seeds")
    seconds = page.evaluate(
        """() => { const begin = performance.now()
          for (let i = 0; i < 100; i++) explorer.hover({x: 0.06 * (i / 100), y: 0.95}, 300, 300)
          return (performance.now() - begin) / 100 }"""
    )
    print(f"hover {seconds:.2f} ms")


def test_clicking_shows_the_run(page):
    data = dataset().sel(f=0.06, mu=0.99).isel(eta=0)
    choose(page, "seed", "seed = 0")
    click(page, 0.06, 0.99)
    drawn = page.evaluate("({one: explorer.state.drawn.one, mean: explorer.state.drawn.mean})")
    curves = data.log10_distance_curve.astype(float)
    level = float((curves.max("step") - curves.min("step")).max()) / LEVELS
    np.testing.assert_allclose(drawn["one"], curves.sel(seed=0), atol=0.51 * level)
    np.testing.assert_allclose(drawn["mean"], rj.log10_mean(curves, "seed"), atol=0.51 * level)
    shown = page.locator(".run").inner_text()
    assert "f = 0.06, eta = 0.01, mu = 0.99" in shown
    assert "diverged" in shown
    assert f"{float(f'{data.growth_rate[0].item():.5g}')!r}" in shown
    spectrum = page.evaluate("explorer.spectrum(explorer.state.drawn.positions, explorer.state.drawn.one)")
    assert spectrum["frequency"][np.argmax(spectrum["power"])] == pytest.approx(4 / 1600)  # of the wave in the dataset
    choose(page, "seed", "mean over 3 seeds")


def test_cells_that_are_no_numbers_or_diverged_have_their_own_colours(page):
    def colours():
        """Of the middle of each cell, on the screen."""
        image = matplotlib.image.imread(io.BytesIO(page.screenshot()))
        at = [[np.round(position(page, f, mu)).astype(int) for f in F] for mu in MU]
        return [[to_hex(image[y + 4, x + 4]) for x, y in row] for row in at]

    choose(page, "seed", "seed = 1")
    shown = np.array(colours())
    np.testing.assert_array_equal(shown == page_module.SPECIAL["nan"], np.isnan(slice_of(page)))
    assert len({*shown.ravel()}) == shown.size
    page.get_by_label("mark diverged cells").check()
    page.wait_for_timeout(100)
    expected = dataset().diverged.isel(eta=0, seed=1).transpose("mu", "f").values
    np.testing.assert_array_equal(np.array(colours()) == page_module.SPECIAL["diverged"], expected)
    page.get_by_label("mark diverged cells").uncheck()
    choose(page, "seed", "mean over 3 seeds")


def test_lines_of_no_growth_are_where_the_rate_changes_its_sign(page):
    line = page.evaluate("explorer.zeroLine([-1, 1, 3, -1, 1, 3, NaN, 1, 3], [0, 1, 2], [0, 1, 2])")
    ends = {*zip(line["x0"], line["y0"], strict=True), *zip(line["x1"], line["y1"], strict=True)}
    assert ends == {(0.5, 0), (0.5, 1)}  # and not into the square with a NaN


def downloaded(page, button):
    with page.expect_download() as download:
        page.get_by_role("button", name=button).click()
    return list(csv.DictReader(io.StringIO(download.value.path().read_text())))


def test_downloads(page):
    data = dataset().isel(eta=0)
    click(page, 0.0, 0.9)
    rows = downloaded(page, "slice as CSV")
    assert len(rows) == len(F) * len(MU)
    assert [float(row["f"]) for row in rows[: len(F)]] == F.tolist()
    rates = [float(row["growth_rate"]) for row in rows]
    np.testing.assert_allclose(rates, data.growth_rate.mean("seed").transpose("mu", "f").values.ravel(), atol=1e-8)
    run = downloaded(page, "run as CSV")
    curve = [float(row["value"]) for row in run if row["what"] == "log10_distance_curve" and row["seed"] == "seed = 2"]
    np.testing.assert_allclose(curve, data.log10_distance_curve.sel(f=0, mu=0.9, seed=2), atol=0.05)
    assert {row["value"] for row in run if row["what"] == "verdict"} <= {"shrinks", "cannot say", "grows"}
    assert page.complaints == []
