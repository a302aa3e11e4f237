"""The paper's experiments: each file at a tiny size, the first heatmap at the size of the paper."""

import functools
import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import jax
import matplotlib.figure
import numpy as np
import pytest
import xarray as xr

import resonance_jax as rj
import sweeps
from resonance_jax.engine.axes import check_axis
from resonance_jax.jobs import sweepfile
from resonance_jax.jobs.claims import Claim, table
from sweeps import _entries, _heatmap, _response, _run, exp5_adam, exp6_mlp
from sweeps.__main__ import main
from sweeps._agreement import base_rates
from sweeps._captions import CAPTIONS
from sweeps._page import page
from sweeps._run import in_order
from sweeps._shared import SCALES
from tests.overprint import overprinted

NAMES = [module.name for module in pkgutil.iter_modules(sweeps.__path__) if not module.name.startswith("_")]


@pytest.mark.parametrize("name", NAMES)
def test_tiny(name, monkeypatch):
    """Fewer steps, all of them in the mean: a run of one phase, half the program to compile."""
    for shared, steps in ((_heatmap, 1000), (_response, 1000), (exp6_mlp, 400)):
        monkeypatch.setattr(shared, "NUM_STEPS", steps)
        monkeypatch.setattr(shared, "TAIL", steps)
    monkeypatch.setattr(exp5_adam, "TAIL", 1000)
    monkeypatch.setattr(_heatmap, "boundary", lambda *_: xr.Dataset({"f": ("point", [0.0]), "mu": ("point", [0.96])}))
    module = importlib.import_module(f"sweeps.{name}")
    for package in getattr(module, "NEEDS", ()):
        pytest.importorskip(package)
    with jax.enable_x64(getattr(module, "DTYPE", "float32") == "float64"):
        data = rj.sweep(module.point, module.axes("tiny"))
    assert all(np.isfinite(data[variable]).all() for variable in data)
    figure = module.figure(data)
    assert isinstance(figure, matplotlib.figure.Figure)
    assert overprinted(figure) == []
    monkeypatch.setattr(rj, "sweep", lambda *_, **__: pytest.fail("claims read the dataset and run nothing"))
    claims = module.claims(data)
    assert claims
    assert all(isinstance(claim, Claim) and claim.measured and claim.where for claim in claims)


def test_the_tip_of_the_tongue_is_drawn_on_a_coarse_grid():
    """Theory: no frequency resonates below 0.9654. The cells of this grid are 0.01 apart."""
    axes = {"seed": [0], "f": np.linspace(0.01, 0.05, 5), "mu": np.linspace(0.95, 0.999, 6)}
    data = xr.DataArray(np.zeros((1, 5, 6)), axes)
    ax = _heatmap._draw(data, data.isel(seed=0), _heatmap.ETA).axes[0]
    (edge,) = ax.lines
    assert np.nanmin(edge.get_ydata()) == pytest.approx(0.9654, abs=1e-3)
    assert edge.get_color() == "white"


VARIANTS = [
    f"{name}:{variant}"
    for name in NAMES
    for variant in getattr(importlib.import_module(f"sweeps.{name}"), "VARIANTS", {})
]


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_are_readings_of_the_point(name):
    """Every variant traces, on the axes of its default reading."""
    file, _, variant = name.partition(":")
    module = importlib.import_module(f"sweeps.{file}")
    point = functools.partial(module.point, **module.VARIANTS[variant])
    scalars = {
        axis: jax.ShapeDtypeStruct((), check_axis(axis, v).numbers.dtype) for axis, v in module.axes("tiny").items()
    }
    outputs = jax.eval_shape(point, **scalars)
    assert set(outputs) == set(jax.eval_shape(module.point, **scalars))


def test_a_sweep_of_the_report_has_figure_and_claims(monkeypatch, tmp_path):
    bare = _run.load("signals_sinusoid")._replace(claims=None)
    monkeypatch.setattr(_run, "load", lambda name: bare)
    with pytest.raises(ValueError, match=r"signals_sinusoid.py lacks `figure` or `claims`; the report needs both"):
        _run.run("signals_sinusoid", "tiny", tmp_path, False)


def test_report_names_known_variants():
    assert set(_entries.READINGS) <= set(VARIANTS)
    assert [name for name in in_order() if ":" not in name] != sorted(NAMES)  # as in the paper, not by name
    assert set(in_order()) == {*NAMES, *_entries.READINGS}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Two figures, one of them another reading, side by side in two processes."""
    out = tmp_path_factory.mktemp("report")
    command = [sys.executable, "-m", "sweeps", "signals_sinusoid", "exp3_square_wave:sum", "--scale", "tiny"]
    done = subprocess.run(
        [*command, "--jobs", "2", "--no-cache", "--report", "--out", str(out)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out


def test_report_holds_figures_and_claims(report):
    written, text = ((report / f"report.{kind}").read_text() for kind in ("html", "md"))
    assert written.count("data:image/png;base64,") == 2
    assert "http" not in written  # opens offline
    order = [written.index(part) for part in ("What does not hold", "<h2>Contents", "<img", "<h2>Seconds")]
    assert order == sorted(order)
    assert "2 of 2 figures, 8 statements: " in written
    for each in (written, text):
        assert "The text states neither the vertical scale nor the colours." in each
        assert "Right: their power spectral densities." in each  # the caption
        assert "signals_sinusoid.nc" in each
        assert "signals_sinusoid.html" not in each  # no explorer was written
    for name in (
        "signals_sinusoid",
        "exp3_square_wave:sum",
        "gradients summed over the samples",
        "jax",
        "cpu",
        " s in all",
    ):
        assert name in written
        assert name in text
    rows = text.count("| holds |") + text.count("| does not hold |") + text.count("| ambiguous |")
    assert rows == written.count('class="holds"') + written.count('class="does-not-hold"') + written.count(
        'class="ambiguous"'
    )
    assert rows == 8
    assert {path.name for path in report.iterdir()} >= {"exp3_square_wave-sum.nc", "signals_sinusoid.png"}


@pytest.mark.parametrize("name", NAMES)
def test_scales(name):
    module = importlib.import_module(f"sweeps.{name}")
    cells = [np.prod([len(values) for values in module.axes(scale).values()]) for scale in SCALES]
    assert cells == sorted(cells)
    with pytest.raises(ValueError, match=r"scale must be one of tiny, quick, paper, got 'huge'; pick one of them"):
        module.axes("huge")


RUN = """
import resource, runpy, sys
from pathlib import Path
sys.argv = ["sweeps", *sys.argv[1:]]
try:
    runpy.run_module("sweeps", run_name="__main__")
except SystemExit as end:
    assert not end.code, end.code
status = Path("/proc/self/status")  # the peak of this program alone; getrusage counts the parent's before exec
lines = status.read_text().splitlines() if status.exists() else []
peak = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
print("peak KiB", *(peak or [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024]))
"""


@pytest.fixture(scope="module")
def first_heatmap(tmp_path_factory):
    """W1 through the command line, in a process of its own: 100 f x 100 mu x 10 seeds, 10,000 steps, 20 samples."""
    out = tmp_path_factory.mktemp("results")
    command = [sys.executable, "-c", RUN, "exp1_sinusoid", "--scale", "paper", "--no-cache", "--out", str(out)]
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}  # as a user runs it
    done = subprocess.run(
        command, cwd=Path(__file__).parents[1], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return out, done.stdout


def test_first_heatmap_is_finite_and_agrees_with_theory(first_heatmap):
    out, _ = first_heatmap
    data = xr.load_dataset(out / "exp1_sinusoid.nc", engine="scipy")
    assert dict(data.sizes) == {"f": 100, "seed": 10, "mu": 100}
    assert all(np.isfinite(data[name]).all() for name in data)
    assert data.log10_distance.max() > 60
    assert data.log10_distance.min() < -100
    agreement = float(((data.log10_distance.median("seed") > 0) == (data.predicted_rate.isel(seed=0) > 0)).mean())
    assert agreement >= 0.98


def test_first_heatmap_writes_dataset_picture_and_claims(first_heatmap):
    out, printed = first_heatmap
    assert (out / "exp1_sinusoid.png").read_bytes().startswith(b"\x89PNG")
    claims = (out / "exp1_sinusoid.claims.md").read_text()
    assert claims.count("| holds |") == 5
    assert "does not hold" not in claims
    assert "holds" in printed


def test_first_heatmap_fits_into_two_gibibytes(first_heatmap):
    _, printed = first_heatmap
    assert 1e5 < int(printed.split("peak KiB")[1]) < 2 * 2**20


def entry(claims, name="exp1_sinusoid"):
    return _entries.Entry(name, "Title.", "2 f", claims, {"variant": ""}, 1.0)


def test_verdicts_in_words():
    holds, fails, unclear = (Claim("a", "b", "c", "d", verdict) for verdict in (True, False, None))
    assert _entries.counted([holds]) == "the one statement holds"
    assert _entries.counted([holds, holds]) == "both statements hold"
    assert _entries.counted([holds] * 3) == "all 3 statements hold"
    assert _entries.counted([fails]) == "1 statement: 1 does not hold"
    said = "5 statements: 2 hold, 2 do not hold, 1 cannot be decided from the text"
    assert _entries.counted([unclear, fails, fails, holds, holds]) == said
    rounding = fails._replace(why="Rounding.")
    failed = _entries.failures([entry([unclear, rounding]), entry([holds, fails, rounding], "exp2_ar2")])
    assert [(failure.why, [one.name for one in failure.entries]) for failure in failed] == [
        ("Rounding.", ["exp1_sinusoid", "exp2_ar2"]),
        ("Not known.", ["exp2_ar2"]),
        ("Not known.", ["exp1_sinusoid"]),
    ]
    assert failed[-1].claim.holds is None


def test_the_page_links_the_explorer_where_there_is_one(tmp_path):
    one = entry([Claim("1 < 2", "b", "c", "d", True)])
    attrs = dict(variant="", compile_seconds=1.0, run_seconds=1.0, device="cpu", dtype="float32")
    one = one._replace(attrs=attrs)
    (tmp_path / "exp1_sinusoid.png").write_bytes(b"")
    assert "explore" not in page(tmp_path, [one], "Title", ["Lead."])
    (tmp_path / "exp1_sinusoid.html").write_text("")
    written = page(tmp_path, [one], "Title", ["Lead."])
    assert '<a href="exp1_sinusoid.html">explore</a>' in written
    assert "1 &lt; 2" in written
    assert "What does not hold" not in written


def test_every_figure_has_a_caption():
    assert set(CAPTIONS) == set(NAMES)


def test_base_rates():
    predicted = xr.DataArray([True, True, False, False], dims="f")
    found = xr.DataArray([True, False, False, False], dims="f")
    assert base_rates(predicted, found) == 'balanced accuracy 83.3%; "never diverges" agrees on 75.0%'
    counted = xr.DataArray([True, True, False, False], dims="f")
    assert base_rates(predicted, found, where=counted) == 'balanced accuracy 50.0%; "never diverges" agrees on 50.0%'
    assert base_rates(predicted, xr.zeros_like(found)) == 'balanced accuracy 50.0%; "never diverges" agrees on 100.0%'


def test_table_says_why():
    rows = [Claim("a", "b", "c", "d", True, why="moot"), Claim("a", "b", "c", "d", False, why="rounding")]
    assert table(rows).splitlines()[0] == "| statement | where | measured | expected | verdict | why |"
    assert table(rows).splitlines()[2:] == [
        "| a | b | c | d | holds |  |",
        "| a | b | c | d | does not hold | rounding |",
    ]
    assert "why" not in table(rows[:1])


def test_table_of_claims():
    text = table([Claim("a", "b", "|c|", "d", None), Claim("a", "b", "c", "d", False)])
    assert text.splitlines()[2:] == [r"| a | b | \|c\| | d | ambiguous |", "| a | b | c | d | does not hold |"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["exp0"], "unknown sweep 'exp0'; choose all, or any of exp1_sinusoid"),
        (["exp3_square_wave:max"], "exp3_square_wave.py has no variant 'max'; it has sum, unit_norm"),
        (["exp1_sinusoid", "--jobs", "-1"], "--jobs must be a whole number of at least 1, got -1; it is how many"),
        (["exp1_sinusoid", "--scale", "huge"], "invalid choice: 'huge'"),
    ],
)
def test_bad_command_lines(arguments, message, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["sweeps", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_network_that_diverges_never_looks_good():
    """Six of ten runs diverge at T = 10, one at T = 40: the others alone have a mean of 0.1 at both."""
    axes = {"seed": range(10), "T": [0.0, 10.0, 40.0, 100.0], "v": [0.2, 0.4]}
    loss = xr.DataArray(np.full((10, 4, 2), 0.1), axes)
    diverged = loss.seed < xr.DataArray([0, 6, 1, 0], {"T": axes["T"]})
    diverged = xr.zeros_like(loss, bool) | (diverged & (loss.v == 0.4))
    data = xr.Dataset({"loss": loss.where(~diverged, 1e21), "diverged_at": xr.where(diverged, 9, -1)})
    assert exp6_mlp.mean_loss(data).sel(v=0.4).values == pytest.approx([0.1, np.inf, 0.1, 0.1])
    claim = exp6_mlp.claims(data)[1]
    assert claim.measured == "7 of 80 runs diverge, at most 60% of those of one T and v"
    assert claim.holds is False
    picture = exp6_mlp.figure(data)
    assert "7 of 80 runs diverged" in picture.get_suptitle()
    assert [line.get_ydata().tolist() for line in picture.axes[0].child_axes[0].lines] == [[0] * 4, [0, 60, 10, 0]]


def test_peaks_of_a_curve():
    T = np.arange(1.0, 101)
    curve = xr.DataArray(
        np.exp(-((T - 20) ** 2) / 20) + 0.5 * np.exp(-((T - 60) ** 2) / 20) + 0.01 * np.sin(T), {"T": T}
    )
    assert [round(at / 10) * 10 for at, _ in _response.peaks(curve, 0.15)] == [20, 60]
    assert _response.peaks(curve * 0.1, 0.15) == []


def test_the_template_runs_outside_the_repository(tmp_path):
    """Copied away, it needs nothing but the installed package; at a tiny size, with short runs."""
    template = Path(__file__).parents[1] / "examples" / "heatmap_sweep.py"
    copied = tmp_path / "mine.py"
    copied.write_text(template.read_text().replace("num_steps=10_000", "num_steps=1_000"))
    assert not {"sweeps", "benchmarks", "tests"} & {word.split(".")[0] for word in copied.read_text().split()}
    swept = sweepfile.load(copied)
    data = rj.sweep(swept.point, swept.axes("tiny"))
    assert dict(data.sizes) == {"f": 6, "seed": 2, "mu": 5}
    assert isinstance(swept.figure(data), matplotlib.figure.Figure)
    (claim,) = swept.claims(data)
    assert claim.measured.startswith("the signs of both growth rates agree on")
    assert f"| {claim.verdict} |" in table([claim])
    weak = sweepfile.load(copied, "weak")
    assert weak.variants == ("weak",)
    assert weak.text.startswith("A heatmap of your own")
    assert weak.point.keywords == {"amplitude": 0.25}
