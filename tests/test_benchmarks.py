"""The benchmarks run, and all forms compute the same; nothing is timed. Peers that are not installed are skipped."""

import json

import jax
import numpy as np
import pytest

import resonance_jax as rj
from benchmarks import __main__ as command
from benchmarks import (
    _machine,
    _measure,
    batch,
    first_heatmap,
    growth_chart,
    guard,
    optimizers,
    plot,
    scaling,
    single_run,
    theory_chart,
    trained,
)
from benchmarks._measure import Form, Timing, measure


def host(value):
    return lambda: lambda: np.asarray(value)


def unavailable():
    raise _measure.Unavailable("no licence")


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        (Form("theirs", lambda: pytest.fail("prepared"), needs="no_such_package"), "no_such_package is not installed"),
        (Form("theirs", lambda: pytest.fail("prepared"), platforms=("gpu",)), "for a GPU"),
        (Form("theirs", unavailable), "no licence"),
    ],
)
def test_a_form_that_cannot_run_is_skipped_and_named(form, reason):
    timing = measure("W0", form, 1)
    assert timing.seconds is None
    assert f"| W0 | theirs | | | | skipped: {reason} |" in _measure.table([timing])


def test_what_a_form_needs_is_a_package_or_a_program():
    assert _measure.is_installed("numpy")
    assert _measure.is_installed("sh")


def test_table_sets_forms_against_the_first():
    timings = [
        measure("W0", Form(name, host([1.0, np.nan])), 2)._replace(seconds=seconds)
        for name, seconds in (("ours", 0.5), ("theirs", 2.0), ("by hand", 0.1), ("by thumb", 5000.0))
    ]
    text = _measure.table(timings)
    assert "| W0 | ours | 500.0 ms | 1.0 |" in text
    assert "| W0 | theirs | 2.00 s | 4.0 |" in text
    assert "| W0 | by hand | 100.0 ms | 0.20 |" in text
    assert "| W0 | by thumb | 5,000.00 s | 10,000 |" in text
    assert timings[0].note == "50.0% finite"


def test_the_time_of_a_share_is_scaled_to_the_whole(monkeypatch):
    monkeypatch.setattr(_measure, "timed_calls", lambda call, repeats: [1.0, 3.0, 2.0])
    timing = measure("W0", Form("theirs", host(1.0), share=1 / 4, note="1/4 of the steps"), 3)
    assert timing.seconds == 8.0
    assert timing.calls == (4.0, 12.0, 8.0)
    assert timing.note == "100.0% finite; 1/4 of the steps, scaled"


def test_the_machine_is_named():
    here = _machine.machine()
    assert here["name"].startswith(here["processor"])
    assert here["jax"] == jax.__version__
    assert here["threads"] <= here["cores"]


def test_forms_of_a_run_end_alike():
    """With other draws of the same law a resonant run grows alike, by about 10^20 over 10,000 steps."""
    ours, theirs = (float(np.ravel(form.prepare()())[0]) for form in single_run.forms())
    assert ours == pytest.approx(theirs, rel=0.3)
    assert ours > 5


HEATMAP_AXES = {"f": np.array([0.0, 1 / 22]), "seed": np.arange(10), "mu": np.array([0.97, 0.98])}
HEATMAP_FORMS = first_heatmap.forms(HEATMAP_AXES, 600)


@pytest.fixture(scope="module")
def our_heatmap():
    return np.asarray(HEATMAP_FORMS[0].prepare()())


@pytest.mark.parametrize("form", HEATMAP_FORMS[1:], ids=lambda form: form.name)
def test_forms_of_the_heatmap_agree(form, our_heatmap):
    """Distances after 600 steps, median over ten seeds, with other draws."""
    reason = _measure.why_not(form)
    if reason:
        pytest.skip(reason)
    theirs = np.asarray(form.prepare()())
    assert theirs.shape == our_heatmap.shape
    assert np.allclose(np.median(theirs, axis=1), np.median(our_heatmap, axis=1), atol=1.0)


def test_forms_of_the_theory_agree():
    cells = [(0.045, 0.97), (0.01, 0.95)]
    forms = [theory_chart.ours, theory_chart.matrices]
    if _measure.is_installed("diffrax"):
        forms.append(theory_chart.diffrax_tsit5)
    for f, mu in cells:
        exact = theory_chart.scipy_cell(f, mu)
        for form in forms:
            with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
                value = jax.jit(form)(np.float32(f), np.float32(mu))["log_rho"]
            assert float(value) == pytest.approx(exact, abs=1e-3)


def test_scipy_solves_a_sample_of_the_chart():
    axes = theory_chart.axes("tiny")
    form = theory_chart.forms(axes)[-1]
    assert form.share == 16 / 64
    assert form.note == "16 of 64 cells"
    assert theory_chart.scipy_sample(axes).shape == (16,)


def test_forms_of_training_agree():
    """The plain scan draws as `rj.train` does. Of the network, which takes long to compile, only the trace."""
    beta1, T, steps = np.float32(0.9), np.float32(5), dict(num_steps=40, tail=20)

    def ours(seed, beta1, T):
        shift, problem, optimizer = trained.adam(beta1, T)
        return rj.train(jax.random.key(seed), shift=shift, problem=problem, optimizer=optimizer, **steps)

    theirs = trained.plain("distance", trained.adam, **steps)
    with jax.numpy_dtype_promotion("standard"):
        distances = [float(jax.jit(form)(0, beta1, T)["distance"]) for form in (ours, theirs)]
        network = jax.eval_shape(trained.plain_network, 0, np.float32(0.4), T)
    assert distances[0] == pytest.approx(distances[1], rel=1e-3)
    assert network["loss"].shape == ()


@pytest.mark.parametrize(("make", "name"), [(trained.adam, "distance"), (trained.network, "loss")])
def test_training_in_torch_agrees(make, name):
    """Median over twenty seeds, with other draws."""
    pytest.importorskip("torch")
    from benchmarks import trained_torch

    theirs = {"distance": trained_torch.adam, "loss": trained_torch.network}[name]
    axes, steps = {"seed": np.arange(20), "T": np.array([0.0, 10.0]), "curve": np.array([0.4])}, dict(tail=50)

    def ours(seed, T, curve):
        shift, problem, optimizer = make(curve, T)
        return rj.train(jax.random.key(seed), shift=shift, problem=problem, optimizer=optimizer, num_steps=400, **steps)

    result = theirs(axes, num_steps=400, **steps)()
    expected = rj.sweep(ours, axes)[name].values
    assert result.shape == expected.shape
    assert np.median(result, axis=0) == pytest.approx(np.median(expected, axis=0), rel=0.5)


def test_scaling_has_the_base_on_every_curve(monkeypatch):
    monkeypatch.setattr(scaling, "oscillated", lambda steps, **size: lambda seed, f, mu: {"product": f * mu})
    monkeypatch.setitem(scaling.BASE, "tiny", scaling.Size(cells=4, steps=20, samples=1, dim=1, seeds=2))
    monkeypatch.setitem(scaling.CURVES, "tiny", dict(cells=(4,), seeds=(2,)))
    rows = list(scaling.rows("tiny", 1))
    assert [(row.axis, row.value, row.cells) for row in rows] == [("cells", 4, 8), ("seeds", 2, 8)]
    assert rows[0].seconds == rows[1].seconds
    assert rows[0].peak_bytes > 0
    assert rows[0].compile_seconds > 0
    assert "| seeds | 2 | 8 |" in scaling.table(rows)


@pytest.fixture
def results(tmp_path, monkeypatch, capsys):
    """What the command writes and prints, for two machines, one of them with scaling."""
    forms = [Form("ours", host(1.0)), Form("theirs", host(1.0)), Form("missing", host(1.0), needs="no_such_package")]
    monkeypatch.setitem(command.WORKLOADS, "single", ("W0", lambda scale: forms))
    monkeypatch.setattr(command, "set_up", lambda device, cache: None)
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    command.main(["single", "--scale", "tiny", "--repeats", "2", "--out", str(here)])
    other = json.loads(here.read_text())
    other["machine"]["name"] = "another machine"
    other["scaling"] = [
        scaling.Row(axis, value, value, value / 10, 1.0, 1e6 * value, 10.0, 1)._asdict()
        for axis in ("cells", "dim")
        for value in (1, 10, 100)
    ]
    there.write_text(json.dumps(other))
    return here, there, capsys.readouterr().out


def test_the_command_prints_a_table_and_writes_json(results):
    path, _, printed = results
    assert "| W0 | missing | | | | skipped: no_such_package is not installed |" in printed
    assert f"jax: {jax.__version__}" in printed
    result = json.loads(path.read_text())
    assert result["machine"]["scale"] == "tiny"
    assert [timing["form"] for timing in result["timings"]] == ["ours", "theirs", "missing"]
    assert set(result["timings"][0]) == set(Timing._fields)
    assert len(result["timings"][0]["calls"]) == 2
    assert result["timings"][2]["seconds"] is None


def test_plot_draws_machines_against_each_other(results, tmp_path, capsys):
    out = tmp_path / "pictures"
    command.main(["plot", *map(str, results[:2]), "--out", str(out)])
    assert {path.name for path in out.iterdir()} == {"forms.png", "scaling_cells.png", "scaling_dim.png"}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in out.iterdir())
    assert "scaling_dim.png" in capsys.readouterr().out


def test_machines_of_one_name_are_told_apart():
    one, other = ({"machine": {"name": name}} for name in ("a", "b"))
    assert plot.distinct_names([one, other, one]) == ["a (1)", "b", "a (3)"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["heat"],
            "unknown workload heat; choose any of heatmap, theory, adam, network, single, growth, "
            "stream, optimizers, guard, batch, scaling",
        ),
        (["--repeats", "0"], "--repeats must be a whole number of at least 1, got 0; it is how many warm calls"),
        (["plot", "no_such.json"], "cannot read no_such.json"),
        (["plot", "pyproject.toml"], "cannot read pyproject.toml"),
    ],
)
def test_bad_command_lines(arguments, message, capsys):
    with pytest.raises(SystemExit) as end:
        command.main(arguments)
    assert end.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_plot_wants_a_result(tmp_path):
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(ValueError, match="is not a result of python -m benchmarks; it needs machine"):
        plot.read(tmp_path / "list.json")


def test_plot_wants_one_scale(results, tmp_path):
    here, there, _ = results
    there.write_text(there.read_text().replace('"scale": "tiny"', '"scale": "paper"'))
    with pytest.raises(ValueError, match="the results are of different scales, tiny, paper; draw those of one"):
        plot.write([here, there], tmp_path)


def test_mean_square_chart_against_kronecker_products():
    """Two independent forms: columns of ten numbers in float32, and matrices of 16 x 16 moments in float64."""
    grid = {"f": np.array([0.0455]), "mu": np.array([0.96, 0.99])}
    ours = rj.sweep(growth_chart.ours, grid).rate
    theirs = [growth_chart.kronecker(0.0455, mu) for mu in grid["mu"]]
    np.testing.assert_allclose(ours[0], theirs, atol=2e-7)


def test_a_job_stores_what_its_chunks_compute():
    alone, as_job = (form.prepare()() for form in batch.forms("tiny"))
    np.testing.assert_array_equal(alone, as_job)


def test_an_optimizer_of_optax_is_the_same_run():
    given, read = (np.asarray(form.prepare()()) for form in optimizers.forms("tiny")[:2])
    np.testing.assert_array_equal(given, read)


def test_a_guard_that_has_nothing_to_do_changes_nothing(capsys):
    plain, ours, plain_scan, our_scan = (float(form.prepare()()) for form in guard.forms("tiny"))
    assert ours == pytest.approx(plain, rel=1e-5)
    assert our_scan == pytest.approx(plain_scan, rel=1e-5)
    assert plain_scan == pytest.approx(plain, rel=1e-4)
    with jax.numpy_dtype_promotion("standard"):
        guard.main("tiny", 1)
    assert "lax.scan, batch " in capsys.readouterr().out
