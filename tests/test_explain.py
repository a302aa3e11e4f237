"""Verdicts: their order on made-up rates, and on settings whose cause is known by construction."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import resonance_jax as rj
from resonance_jax.shifts import Inputs
from resonance_jax.theory.explain import _enough_steps, _staged, _verdict
from resonance_jax.theory.explanation import Explanation, Rates
from resonance_jax.theory.frozen import farthest_inputs, held_growth, held_shift
from resonance_jax.theory.search.resonances import curvatures_at, curvatures_each, curvatures_of
from tests import reference

regression, explain, shifts = rj.problems.linear_regression, rj.theory.explain, rj.shifts
KEY = jax.random.key(3)

UP, DOWN, FAST, CLOSE = (Rates(-0.01, 0.02, rate, 1e-4) for rate in (0.01, -0.01, 0.03, 1e-4))
CALM = DOWN._replace(mean_square=-0.01)
LARGE = UP._replace(mean=0.01)
STILL = CALM._replace(almost_sure=-0.01)


@pytest.mark.parametrize(
    ("under", "held", "without", "verdict", "words"),
    [
        (CALM, DOWN, DOWN, "stable", "typical runs converge, and so does their mean square."),
        (CALM, DOWN, UP, "stable", "Without the shift they would diverge."),
        (CALM, LARGE, LARGE, "stable", "typical runs converge"),
        (DOWN, DOWN, DOWN, "mean-square only", "rare ones grow so much .* more samples"),
        (DOWN, STILL, STILL, "mean-square only", "rare ones grow so much .* where nothing moves, the mean square conv"),
        (UP, LARGE, LARGE, "step too large", "even if they do not drift. Take a step size below 0.2"),
        (DOWN, DOWN, LARGE, "step too large", "Take a step size below 0.2"),
        (LARGE, LARGE, DOWN, "frozen instability", "at the far end of the drift: held there, .* step size below 0.1"),
        (UP, LARGE, DOWN, "noise", "whose mean converges; held at the far end, the mean diverges too; .* more samples"),
        (UP, UP._replace(mean=1e-8), UP._replace(mean=1e-8), "noise", "a smaller momentum"),  # mu = 1
        (UP, DOWN, DOWN, "resonance", "converge where nothing moves. Take a smaller momentum"),
        (UP, UP, UP, "noise", "^sampling noise alone makes runs diverge; the motion does not .* more samples"),
        (UP, UP, DOWN, "noise", "^with the mean held at its far end, sampling noise alone"),
        (FAST, UP, UP, "both", "at least twice as fast."),
        (FAST, UP, DOWN, "both", "with the mean held at its far end, .* at least twice as fast."),
        (CLOSE, DOWN, DOWN, "undecided", "within two standard errors of 0; .* Treat it as unsafe"),
        (UP, CLOSE, DOWN, "undecided", "whether they would if nothing moved"),
    ],
)
def test_order_of_the_verdicts(under, held, without, verdict, words):
    smaller = ("Take a step size below 0.2.", "Take a step size below 0.1.")
    found, sentence, remedy = _verdict(under, held, without, smaller)
    assert found == verdict
    assert re.search(words, f"{sentence} {remedy}")
    assert bool(remedy) == (verdict != "stable")


def test_explanation_is_a_table_and_a_sentence():
    under = UP._replace(mean_square_error=0.002)
    lines = str(Explanation(under, DOWN, *_verdict(under, DOWN, DOWN, (0.2, 0.1)), DOWN)).splitlines()
    assert [line[:18].strip() for line in lines[:4]] == ["growth per step", "mean", "mean square", "almost sure"]
    assert "+0.01000 +- 0.00010" in lines[3]
    assert "+0.02000 +- 0.00200" in lines[2]
    assert "+-" not in lines[1]
    assert lines[4] == "Numbers with +- are estimates and their standard errors, the others are exact."
    assert lines[5].startswith("resonance: typical runs diverge")
    assert lines[6].startswith("Take a smaller momentum")
    assert max(map(len, lines[:5])) <= 80


def test_stages_of_a_run():
    """The shift itself, its inputs held at the far end, and the iid baseline, which adds the variance of the means."""
    shift, k = shifts.switching(3, dim=2, variance=0.4), jnp.arange(4, dtype=jnp.int32)
    far = jnp.array([0.5, -1.0])
    ends = Inputs(jnp.stack([far, jnp.zeros(2)]), jnp.array([0.1, 0.4]))
    moving, held, iid = (_staged(shift, ends, jnp.int32(stage)).inputs(KEY, k, ())[0] for stage in range(3))
    assert np.array_equal(moving.mean, shift.inputs(KEY, k, ())[0].mean)
    assert np.array_equal(held.mean, np.broadcast_to(far, (4, 2)))
    assert np.asarray(held.variance) == pytest.approx(0.1)
    assert not iid.mean.any()
    assert np.asarray(iid.variance) == pytest.approx(0.4)


# Inputs that are held still, in closed form


def test_held_growth_is_that_of_one_step(x64):
    """Of the expected step, and of its Kronecker square, in NumPy by quadrature."""
    for bias, mean in ((True, [0.7]), (False, [0.7]), (True, [0.6, -0.8])):
        problem = regression(dim=len(mean), samples=1, input_variance=0.3, bias=bias)
        at = Inputs(jnp.asarray(mean), jnp.asarray(0.2))
        held = jax.jit(lambda mu, eta, p=problem, at=at: held_growth(at, p, rj.optimizers.heavy_ball(mu, eta)))
        for mu, eta in ((0.9, 0.05), (0.3, 0.9)):
            square, first = reference.expected_kronecker(mean, mu=mu, eta=eta, samples=1, variance=0.5, bias=bias)
            expected = reference.log_radius(first), reference.log_radius(square) / 2
            found = held(jnp.asarray(mu), jnp.asarray(eta))
            assert [float(rate) for rate in found] == pytest.approx(expected, abs=1e-9), (bias, mean, mu, eta)


def test_the_far_end_is_where_the_curvature_is_largest(x64):
    """Held there, the mean grows once eta b is above 2 (1 + mu)."""
    problem = regression(dim=2, samples=3, input_variance=0.5, reduction="sum")
    for shift, size in ((shifts.sinusoid(0.125, amplitude=2.0), 2.0), (shifts.breathing(0.125, variance=0.7), 0.0)):
        far, mu = farthest_inputs(shift, problem), 0.4
        assert abs(np.asarray(far.mean)) == pytest.approx([size])
        assert float(far.variance) == pytest.approx(0.0 if size else 1.4)
        high = curvatures_each(jax.tree.map(lambda leaf: leaf[None], far), problem)[0, -1]
        steps = (rj.optimizers.heavy_ball(mu, by * 2 * 1.4 / high) for by in (0.999, 1.001))
        below, above = (float(held_growth(far, problem, optimizer)[0]) for optimizer in steps)
        assert below < 0 < above


def visited(shift):
    return np.asarray(shift.law.visited(shift).mean)


def test_what_shifts_visit_and_its_curvatures():
    assert not visited(shifts.sinusoid(0.0)).any()  # f = 0 stands still
    assert np.abs(visited(shifts.sinusoid(0.5, amplitude=10.0))).max() < 1e-4  # sin(pi k) = 0
    assert np.abs(visited(shifts.sinusoid(1 / 3))).max() == pytest.approx(0.5 * np.sin(np.pi / 3), rel=1e-4)
    for f in (1e-3, 0.0123, 0.25):
        assert np.abs(visited(shifts.sinusoid(f))).max() == pytest.approx(0.5, rel=1e-2)
    assert np.abs(visited(shifts.square_wave(7, dim=3, norm=0.5))).max() == pytest.approx(0.5)
    drawn = visited(shifts.switching(5, dim=1, variance=4.0))
    assert np.std(drawn) == pytest.approx(2.0, abs=0.4)  # 256 draws, 4.5 standard errors
    assert np.array_equal(visited(held_shift(Inputs(jnp.array([3.0, 4.0]), jnp.array(0.0))))[0], [3.0, 4.0])
    for dim, amplitude in ((1, [1.3]), (3, [0.3, -0.4, 1.2])):
        for variance in (0.3, np.linspace(0.1, 0.5, dim), np.eye(dim) + 0.2):
            problem = regression(dim=dim, samples=1, input_variance=variance)
            shift = shifts.sinusoid(0.1, amplitude=amplitude)
            B = rj.theory.gradient_matrix(shift, input_variance=variance)(jnp.float32(0.25))
            b = np.linalg.eigvalsh(np.asarray(B, float))
            found = curvatures_at(Inputs(jnp.array([amplitude]), jnp.zeros(1)), problem)
            assert tuple(found) == pytest.approx((b[0], b[-1]), rel=1e-5)
            assert curvatures_of(shift, problem).high == pytest.approx(b[-1], rel=1e-5)
    with pytest.raises(ValueError, match=r"neither a period nor a stationary law.*give the Shift a stationary"):
        visited(shifts.ar2(0.1)._replace(stationary=None))


# Causes known by construction, far from the step size of the paper. `python -m tests.verdicts` runs 30 of them.


def test_a_step_that_is_too_large_is_not_called_noise():
    found = explain(shifts.sinusoid(1 / 22), regression(dim=1, samples=2000), mu=0, eta=1.2, num_steps=1000)
    assert found.verdict == "step too large"
    assert found.baseline.mean == pytest.approx(np.log(1.4), abs=1e-4)
    assert "below 1." in found.remedy


def test_inputs_that_are_too_large_at_the_far_end_are_not_called_resonance():
    found = explain(shifts.sinusoid(1 / 2000, amplitude=12.0), regression(dim=1, samples=20), 0, 0.01, num_steps=2000)
    assert found.verdict == "frozen instability"
    assert found.baseline.shrinks
    assert found.held.mean > 0


def test_almost_sure_is_not_above_the_mean_square_of_ar2():
    """Both along the means of the same runs: they differ less than the runs do from each other."""
    found = explain(shifts.ar2(1 / 22), regression(dim=1, samples=5), 0.99, 0.01, num_steps=4000).shift
    assert found.almost_sure < found.mean_square + 2 * found.standard_error
    assert 0 < found.mean_square_error < 0.01
    assert 0 < found.mean_error < 0.01


def test_runs_have_whole_periods_in_each_tenth():
    for T, expected in ((22, 10_120), (3000.25, 30_000), (0.0, 10_000)):
        shift = shifts.square_wave(T, dim=1)
        assert abs(_enough_steps(shift) - expected) <= 10
        if T:
            turns = _enough_steps(shift) / 10 / T
            assert abs(turns - round(turns)) * T <= 0.51
    assert _enough_steps(shifts.ar2(0.1)) == 10_000
    with pytest.raises(ValueError, match=r"a period of 1e\+06 steps is longer than the 100000 .* or give num_steps"):
        explain(shifts.sinusoid(1e-6), regression(dim=1, samples=1), 0.9, 0.01)


def test_bad_input():
    shift, problem = shifts.resting(), regression(dim=1, samples=1)
    for (mu, eta), message in {
        (1.5, 0.01): r"mu must lie in \[0, 1\], got 1.5",
        (0.9, -1.0): r"eta must lie in \(0, inf\), got -1.0; give a positive step size",
        (float("nan"), 0.01): r"mu must lie in \[0, 1\], got nan",
        (0.9, float("nan")): r"eta must lie in \(0, inf\), got nan",
    }.items():
        with pytest.raises(ValueError, match=message):
            explain(shift, problem, mu, eta)
    with pytest.raises(ValueError, match=r"explain needs plain numbers, got a traced eta; sweep mean_growth"):
        jax.jit(lambda eta: explain(shift, problem, 0.9, eta).shift.mean)(0.1)
