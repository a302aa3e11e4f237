"""The benchmarks run and compare equals; nothing here is timed."""

import jax
import numpy as np
import pytest

from benchmarks import _measure, first_heatmap, single_run, theory_chart


def test_a_form_that_is_not_installed_is_skipped_and_named():
    form = _measure.Form("theirs", lambda: pytest.fail("prepared"), needs="no_such_package")
    timing = _measure.measure("W0", form, 1)
    assert timing.seconds is None
    assert "skipped: no_such_package is not installed" in _measure.table([timing])


def test_table_sets_forms_against_the_first():
    forms = [_measure.Form(name, lambda: lambda: np.array([1.0, np.nan])) for name in ("ours", "theirs")]
    timings = [_measure.measure("W0", form, 2)._replace(seconds=s) for form, s in zip(forms, (0.5, 2.0), strict=True)]
    assert "| W0 | theirs | 2.00 s | 4.0 |" in _measure.table(timings)
    assert timings[0].note == "50.0% finite"


def test_forms_of_a_run_end_alike():
    """Other draws of one law: a resonant run grows alike, by some 10^20 over 10,000 steps."""
    ours, theirs = (float(np.ravel(form.prepare()())[0]) for form in single_run.forms())
    assert ours == pytest.approx(theirs, rel=0.3)
    assert ours > 5


def test_forms_of_the_theory_agree():
    forms = [jax.jit(form) for form in (theory_chart.ours, theory_chart.matrices)]
    for f, mu in [(0.045, 0.97), (0.01, 0.95)]:
        values = [float(form(np.float32(f), np.float32(mu))["log_rho"]) for form in forms]
        assert values[0] == pytest.approx(values[1], abs=1e-3)


def test_forms_of_the_heatmap_agree(monkeypatch):
    """Distances after 600 steps, median over ten seeds, of other draws."""
    monkeypatch.setattr(
        first_heatmap, "AXES", first_heatmap.AXES | {"f": np.array([0.0, 1 / 22]), "mu": np.array([0.97])}
    )
    results = [np.asarray(form.prepare()()) for form in first_heatmap.forms(600)[:3]]
    for result in results[1:]:
        assert np.allclose(np.median(result, axis=1), np.median(results[0], axis=1), atol=1.0)
