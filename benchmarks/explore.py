"""The page of the full heatmap: 100 x 100 cells, 10 seeds, curves of 64 snapshots. `python -m benchmarks.explore`.

Size, seconds to write, and in headless Chromium from a file, without a network: time until the heatmap is drawn, for
a hover and for a click. The dataset is made up: rates with one tongue, curves that follow
them with the noise of a run. Without Chromium or playwright only size and writing are measured.
"""

import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import xarray as xr

import resonance_jax as rj
from benchmarks import _machine

NUM_STEPS, RECORD, SEEDS, SIDE = 10_000, 64, 10, 100
REPEATS = 5
TIMED = {
    "hover": "explorer.hover({x: 0.05 * Math.random(), y: 0.95 + 0.049 * Math.random()}, 300, 300)",
    "click": "await explorer.click({x: 0.05 * Math.random(), y: 0.95 + 0.049 * Math.random()})",
}
AROUND = """async () => {
  const begin = performance.now()
  CALL
  await new Promise(requestAnimationFrame)
  return performance.now() - begin
}"""


def dataset(side: int = SIDE, seeds: int = SEEDS) -> xr.Dataset:
    """What `rj.oscillate(..., record=64)` returns over (seed, f, mu), made up."""
    rng = np.random.default_rng(0)
    f, mu = np.linspace(0, 0.05, side), np.linspace(0.95, 0.999, side)
    steps = np.round((np.arange(RECORD) + 1) * NUM_STEPS / RECORD).astype(int)
    tongue = np.exp(-(((f[:, None] - 0.045) / 0.004) ** 2)) * 0.03
    predicted = np.broadcast_to(tongue - 0.5 * (1 - mu), (side, side)).astype(np.float32)
    kicks = (
        rng.normal(size=(seeds, side, side, RECORD)).cumsum(-1) * 0.3
    )  # decades a snapshot, as `rj.oscillate` has them at one in 156 steps
    curve = (predicted[..., None] * steps / np.log(10) + kicks).astype(np.float32)
    growth = curve[..., -1] * np.log(10) / NUM_STEPS
    dims = ("seed", "f", "mu")
    return xr.Dataset(
        {
            "log10_distance": (dims, curve[..., -1]),
            "growth_rate": (dims, growth.astype(np.float32)),
            "predicted_rate": (dims, np.broadcast_to(predicted, growth.shape)),
            "diverged": (dims, curve[..., -1] > 3),
            "log10_distance_curve": ((*dims, "step"), curve),
        },
        coords={"seed": np.arange(seeds), "f": f, "mu": mu, "step": steps},
    )


def in_browser(path: Path, chromium: str, repeats: int = REPEATS) -> dict[str, float]:
    """Seconds, the median of some openings; hover and click with the redraw that follows them."""
    from playwright.sync_api import sync_playwright

    found: dict[str, list[float]] = {"open": [], **{name: [] for name in TIMED}}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(repeats):
            page = browser.new_context(viewport={"width": 1300, "height": 950}, offline=True).new_page()
            page.goto(path.as_uri())
            page.wait_for_function("document.body.dataset.ready && explorer.state.run")
            found["open"].append(float(page.evaluate("document.body.dataset.ready")) / 1e3)
            for name, call in TIMED.items():
                found[name] += [page.evaluate(AROUND.replace("CALL", call)) / 1e3 for _ in range(10)]
            page.context.close()
        browser.close()
    return {name: statistics.median(seconds) for name, seconds in found.items()}


def main(side: int = SIDE, seeds: int = SEEDS, repeats: int = REPEATS) -> None:
    print(_machine.processor(), f"{_machine.num_threads()} threads", sep=", ")
    data = dataset(side, seeds)
    rj.explore(data.isel(f=slice(2), mu=slice(2)))  # imports bokeh
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        begin = time.perf_counter()
        rj.explore(data, path=path)
        print(f"write: {time.perf_counter() - begin:.2f} s, {path.stat().st_size / 1e6:.2f} MB")
        chromium = shutil.which("chromium")
        if chromium is None:
            print("no Chromium on this machine: the browser is not measured")
            return
        for name, seconds in in_browser(path, chromium, repeats).items():
            print(f"{name}: {seconds * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
