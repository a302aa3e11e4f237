"""The diagnosis of a stream: growth against NumPy, blame where it is known, remedies that work, errors that help."""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import resonance_jax as rj
from resonance_jax.streams import large, time_scales
from resonance_jax.streams.diagnosis import Diagnosis
from resonance_jax.theory.recorded import growth, verdicts
from resonance_jax.theory.recorded.growth import Growth
from resonance_jax.theory.recorded.plane import plane, summary


def record(shift, num_steps, samples, *, seed=0, dim=1):
    """Rows of unit variance around the mean of a shift."""
    k = jnp.arange(num_steps, dtype=jnp.int32)
    inputs, _ = shift.inputs(jax.random.key(seed), k, shift.init(jax.random.key(seed + 1)))
    around = np.random.default_rng(seed).normal(size=(num_steps, samples, dim))
    return (np.asarray(inputs.mean, float)[:, None, :] + around).reshape(-1, dim)


def surrogate(x, seed=0):
    """The same spectrum with random phases."""
    rng = np.random.default_rng(seed)
    spectrum = np.fft.rfft(x - x.mean())
    turned = np.abs(spectrum) * np.exp(2j * np.pi * rng.uniform(size=spectrum.size))
    return np.fft.irfft(turned, len(x)) + x.mean()


def floquet(x, mu, eta):
    """Growth over one pass of the rows, from the eigenvalues of its product, in float64."""
    w = x.shape[1]
    M, size = np.eye(2 * w), 0.0
    for row in x:
        B, one = 2 * np.outer(row, row), np.eye(w)
        M = np.block([[one - eta * B, mu * one], [-eta * B, mu * one]]) @ M
        size += np.log(np.abs(M).max())
        M /= np.abs(M).max()
    return (np.log(np.abs(np.linalg.eigvals(M)).max()) + size) / len(x)


def test_growth_in_time_order_is_that_of_floquet():
    rng = np.random.default_rng(1)
    x = (np.sin(np.arange(300) / 3) + 0.3 * rng.normal(size=300))[:, None]
    problem = rj.problems.recorded(x, samples=1).least_squares
    mus, etas = np.array([0.0, 0.8, 0.95, 0.99]), np.array([0.001, 0.02, 0.1, 0.3])
    data = plane(problem, mus, etas, 2)
    augmented = np.concatenate([x, np.ones((300, 1))], axis=1)
    expected = np.array([[floquet(augmented, mu, eta) for eta in etas] for mu in mus])
    assert np.allclose(data.growth_rate, expected, atol=3e-4)
    assert np.array_equal(data.growth_rate > 0, expected > 0)
    assert (data.expected_rate <= data.growth_rate + 1e-3).mean() > 0.5
    for mu in mus:
        for eta in etas:
            modes = np.linalg.eigvalsh(2 * augmented.T @ augmented / 300)
            largest = max(np.abs(np.roots([1, -(1 + mu - eta * b), mu])).max() for b in modes)
            assert np.isclose(data.expected_rate.sel(mu=mu, eta=eta), np.log(largest), rtol=1e-6)


@contextlib.contextmanager
def short_runs():
    """Growth of 2,000 steps after as many, not of 10,000: enough for settings far from the boundary."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growth, "LEAST_STEPS", 2000)
        yield


@pytest.fixture(scope="module")
def sinusoid():
    return record(rj.shifts.sinusoid(1 / 22), 2200, 20)


@pytest.fixture(scope="module")
def diagnosed(sinusoid):
    plane = dict(mus=[0.5, 0.9, 0.95, 0.97], etas=[0.0005, 0.001, 0.005, 2.0])
    with short_runs():
        return rj.diagnose(sinusoid, samples=20, mu=0.99, eta=0.01, **plane)


def test_a_sinusoid_is_the_order_and_its_remedies_work(diagnosed, sinusoid):
    assert diagnosed.verdict == "order"
    assert not diagnosed.safe
    assert diagnosed.own
    assert abs(diagnosed.model.fit.period / 22 - 1) < 0.01
    assert diagnosed.model.agrees
    assert 20 * 4 <= diagnosed.returns_at <= 20 * 64  # about a quarter of a period to three periods
    names = [remedy.name for remedy in diagnosed.remedies]
    assert names == ["momentum", "step size", "buffer"]
    problem = rj.problems.recorded(sinusoid, samples=20)
    for remedy in diagnosed.remedies[:2]:
        mu, eta = (remedy.value, 0.01) if remedy.name == "momentum" else (0.99, remedy.value)
        run = rj.oscillate(jax.random.key(3), problem=problem, mu=mu, eta=eta, num_steps=8000, tail=100)
        assert run["log10_distance"] < -1, remedy
    behind = rj.problems.recorded(sinusoid, samples=20, order=rj.problems.buffer(int(diagnosed.remedies[2].value)))
    run = rj.oscillate(jax.random.key(3), problem=behind, mu=0.99, eta=0.01, num_steps=8000, tail=100)
    assert run["log10_distance"] < -1


def test_it_agrees_with_explain(diagnosed):
    """Growth of the recorded stream and of fresh draws: four joint standard errors, 1e-4 by chance."""
    said = rj.theory.explain(
        rj.shifts.sinusoid(1 / 22), rj.problems.linear_regression(dim=1, samples=20), 0.99, 0.01, num_steps=4400
    )
    cell = diagnosed.data.sel(mu=0.99, eta=0.01)
    error = np.hypot(float(cell.growth_rate_standard_error), said.shift.standard_error)
    assert abs(float(cell.growth_rate) - said.shift.almost_sure) < 4 * error
    assert said.verdict == "resonance"
    error = np.hypot(diagnosed.model.standard_error, said.shift.standard_error)
    assert abs(diagnosed.model.rate - said.shift.almost_sure) < 4 * error + 5e-4  # the fit has its error too


def test_it_prints_what_a_stranger_can_act_on(diagnosed):
    text = str(diagnosed)
    for part in (
        "44,000 rows of 1 input, 20 a step: 2,200 steps a pass, 2 weights.",
        "At momentum 0.99 and step size 0.01, growth per step is",
        "order: runs diverge in time order and converge when the rows are shuffled: the order is to blame.",
        "Model: period 2",
        "What to do:",
        "at this step size: the error falls tenfold in",
        "a shuffle buffer of",
    ):
        assert part in text
    assert diagnosed.data.growth_rate.attrs["units"] == "1/step"
    calm = str(diagnosed._replace(mu=0.9, verdict="stable", remedies=(), returns_at=None))
    assert "Safe up to momentum" in calm
    none_smaller = diagnosed.data.assign(largest_safe_eta=np.nan * diagnosed.data.largest_safe_eta)
    island = str(diagnosed._replace(mu=0.9, verdict="stable", data=none_smaller))
    assert "Not every smaller step size is safe at this momentum: look at the plane" in island
    assert "What to do" not in calm
    hopeless = str(diagnosed._replace(remedies=()))
    assert "No setting of the plane with this momentum or this step size is safe; take more rows a step." in hopeless
    assert "No setting of the plane diverges because of the order." in str(diagnosed._replace(mu=None))


def test_a_stream_in_parts_is_the_mean_of_its_parts(sinusoid, monkeypatch):
    """Growth of the parts by a plain mean; the parts themselves are given, so that nothing compiles."""
    given = iter((0.01, 0.03, 0.02))

    def known(problem, mus, etas, permutations, progress):
        like = xr.DataArray(np.ones((len(mus), len(etas))), dims=("mu", "eta"), coords={"mu": mus, "eta": etas})
        rate = next(given)
        shuffled = Growth(-0.1 * like, 0.001 * like, 0.0 * like)
        return summary(Growth(rate * like, 0.001 * like, 100 * rate * like), shuffled, problem.recorded.curvature)

    monkeypatch.setattr(large, "plane", known)
    settings = dict(samples=20, mus=[0.9, 0.99], etas=[0.01, 0.02], model=False)
    parts = [sinusoid[:14_000], sinusoid[14_000:28_000], sinusoid[28_000:42_000], sinusoid[43_990:]]
    seen = {}
    monkeypatch.setattr(large, "conclude", lambda problem, data, **_: seen.update(data=data) or _NOTHING)
    found = large.diagnose_parts(iter(parts), **settings)
    assert "This is the first of 3 parts, 2,100 steps in all." in found.what
    data = seen["data"]
    assert np.allclose(data.growth_rate, 0.02)
    assert np.allclose(data.growth_rate_standard_error, 0.01 / np.sqrt(3))
    assert np.allclose(data.rise, 3)
    assert (data.verdict == verdicts.NAMES.index("order")).all()
    with pytest.raises(ValueError, match="a diagnosis needs rows, got a stream without any"):
        large.diagnose_parts(iter([]), **settings)


_NOTHING = Diagnosis(xr.Dataset(), None, None, False, "", None, (), None, "A stream.")


def one_cell(rows, samples, mu, eta):
    problem = rj.problems.recorded(rows, samples=samples).least_squares
    with short_runs():
        data = plane(problem, np.array([mu]), np.array([eta]), 4)
    return verdicts.NAMES[int(data.verdict[0, 0])], data


def test_blame_where_it_is_known(diagnosed):
    noise = np.random.default_rng(0).normal(size=20_000)
    assert one_cell(noise, 1, 0.995, 0.01)[0] == "noise"

    def verdict(mu, eta):
        return verdicts.NAMES[int(diagnosed.data.verdict.sel(mu=mu, eta=eta))]

    assert verdict(0.5, 2.0) == "step too large"
    assert verdict(0.9, 0.01) == "stable"
    assert verdict(0.99, 0.01) == "order"


def test_a_surrogate_with_the_same_spectrum_has_the_same_blame():
    """A narrow band is to blame, not the phases in it."""
    x = record(rj.shifts.ar2(0.045, variance=1.0, noise_variance=1e-3), 8000, 1)[:, 0] * 0.5
    x = x + np.sin(2 * np.pi * 0.045 * np.arange(8000))
    for rows in (x, surrogate(x)):
        assert one_cell(rows, 1, 0.98, 0.01)[0] == "order"


def test_rates_of_sizes_that_are_known(x64):
    clock = growth.clock_of(1000)
    assert clock == growth.Clock(1000, 10, 50, 200)
    t = clock.check * np.arange(clock.checks + 1.0)
    wave = np.log(10) * 2 * np.sin(2 * np.pi * t / 1000)  # in each pass up by two decades, down by four, and back
    falls, rises = (growth.of_sizes(jnp.asarray(sizes), clock) for sizes in (-0.01 * t, 0.002 * t + wave))
    assert np.allclose([falls.rate, rises.rate], [-0.01, 0.002], atol=1e-5)
    assert falls.standard_error < 1e-6
    assert np.isclose(falls.rise, 0)
    assert np.isclose(rises.rise, (0.002 * 8500 + 4 * np.log(10)) / np.log(10), atol=0.1)  # from a trough to a crest
    walks = np.cumsum(np.random.default_rng(0).normal(size=(500, 4, clock.checks + 1)) * np.sqrt(clock.check), axis=-1)
    found = jax.jit(jax.vmap(jax.vmap(lambda sizes: growth.of_sizes(sizes, clock))))(walks)
    mean = growth.mean_over(Growth(*(xr.DataArray(each, dims=("cell", "run")) for each in found)), "run")
    exact = 1 / np.sqrt(4 * 10_000)  # of the drift of a random walk of unit steps
    assert np.isclose(np.sqrt((mean.standard_error**2).mean()), exact, rtol=0.05)
    assert np.isclose(mean.rate.std(), exact, rtol=0.2)
    assert np.array_equal(mean.rise, found.rise.max(1))


def rates(rate, error, rise):
    return Growth(*(xr.DataArray([float(value)], dims="cell") for value in (rate, error, rise)))


@pytest.mark.parametrize(
    ("time", "shuffled", "expected", "verdict"),
    [
        ((-0.01, 0.001, 0.1), (-0.01, 0.001, 0.1), -0.01, "stable"),
        ((-0.01, 0.1, 0.1), (0.01, 0.001, 9), -0.01, "stable"),  # never rose tenfold
        ((-0.01, 0.001, 3.5), (-0.01, 0.001, 0.1), -0.01, "bursts"),
        ((-0.01, 0.1, 2.0), (-0.01, 0.001, 0.1), -0.01, "undecided"),
        ((0.01, 0.1, 9.0), (-0.01, 0.001, 0.1), -0.01, "order"),  # rose a thousandfold
        ((0.01, 0.1, 2.0), (-0.01, 0.001, 0.1), -0.01, "undecided"),
        ((0.01, 0.001, 2.0), (-0.01, 0.1, 2.0), -0.01, "undecided"),
        ((0.01, 0.001, 9.0), (0.009, 0.001, 9.0), -0.01, "noise"),
        ((0.03, 0.001, 9.0), (0.009, 0.001, 9.0), -0.01, "both"),
        ((0.03, 0.001, 9.0), (0.009, 0.001, 9.0), 0.01, "step too large"),
        ((8e-9, 2e-9, 2e-5), (1e-9, 1e-9, 2e-5), -5e-10, "stable"),  # rounding of weights that hardly move
        ((1e-6, 2e-9, 2e-5), (1e-9, 1e-9, 2e-5), -5e-10, "order"),  # more than rounding
        ((8e-9, 2e-9, 0.1), (8e-9, 2e-9, 0.1), -5e-10, "noise"),  # it rose
    ],
)
def test_verdicts(time, shuffled, expected, verdict):
    found = verdicts.verdicts(rates(*time), rates(*shuffled), xr.DataArray([expected], dims="cell"))
    assert verdicts.NAMES[int(found[0])] == verdict


def test_safe_values_end_below_the_first_cell_that_is_not_stable():
    stable, order = (verdicts.NAMES.index(name) for name in ("stable", "order"))
    cells = np.full((3, 4), stable)
    cells[1, 2], cells[2, 0] = order, order
    verdict = xr.DataArray(cells, dims=("mu", "eta"), coords={"mu": [0.5, 0.9, 0.99], "eta": [1.0, 2.0, 3.0, 4.0]})
    assert np.array_equal(verdicts.largest_safe(verdict, "eta"), [4.0, 2.0, np.nan], equal_nan=True)
    assert verdicts.largest_safe(verdict, "mu").values.tolist() == [0.9, 0.99, 0.5, 0.99]


def test_time_scales_of_a_known_line():
    k = np.arange(4000)
    x = np.stack([np.sin(2 * np.pi * k / 25), np.ones(4000)], axis=1).astype(np.float32)
    curvature = 2 * x.T.astype(float) @ x / 4000
    density = time_scales.modulation(x, 1, curvature)
    assert np.isclose(1 / density.frequency[int(density.values.argmax())], 25, rtol=0.05)
    assert np.isclose(density.integrate("frequency"), 1, rtol=0.1)
    periods = time_scales.tongue_periods(np.diag([2.0, 0.5]), (1.0, 0.01))
    omega = np.arccos(1 - 0.01)  # of curvature 2 without damping: cos omega = 1 - eta b / 2
    assert np.allclose(periods.sel(mode=0), np.array([1, 2, 3]) * np.pi / omega)
    assert np.isnan(time_scales.tongue_periods(np.diag([2.0]), (0.2, 0.001))).all()  # overdamped


def test_lengths_and_buffers_that_last():
    def found(name, rate, rise=0.0):
        values = 2 ** np.arange(len(rate))
        return Growth(
            *(
                xr.DataArray(np.broadcast_to(v, len(rate)).astype(float), dims=name, coords={name: values})
                for v in (rate, 1e-3, rise)
            )
        )

    assert time_scales.growth_returns_at(found("block_length", [-1, 1, -1, 1, 1])) == 8
    assert time_scales.growth_returns_at(found("block_length", [1, 1, -1])) is None
    assert time_scales.smallest_safe_buffer(found("buffer_size", [1, -1, 1, -1, -1e-4])) == 8
    assert time_scales.smallest_safe_buffer(found("buffer_size", [1, -1, -1], 4.0)) is None


def test_bad_streams_are_named():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 2))
    settings = dict(samples=1, mus=[0.5], etas=[0.01])
    with pytest.raises(ValueError, match="a diagnosis needs at least 40 steps a pass, got 10 of 10 rows; take fewer"):
        rj.diagnose(x, samples=10)
    with pytest.raises(ValueError, match="a diagnosis needs at least 40 steps a pass, got 2 of 50 rows; take fewer"):
        rj.theory.explain(problem=rj.problems.recorded(x, samples=50), mu=0.9, eta=0.01)
    for changes, message in (
        (dict(mu=1.5), r"mu must lie in \[0, 1\], got 1.5"),
        (dict(eta=-1.0), r"eta must lie in \(0, inf\), got -1"),
        (dict(mus=[0.9, 0.5]), "mus must be ascending numbers in one dimension"),
        (dict(mus=[0.5, 1.5]), r"each of mus must lie in \[0, 1\], got 1.5; give momenta"),
        (dict(etas=[0.0, 0.1]), r"each of etas must lie in \(0, inf\), got 0.0; give positive step sizes"),
        (dict(etas=[]), "etas must be ascending numbers in one dimension"),
        (dict(permutations=0), "permutations must be a whole number of at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            rj.diagnose(x, **(settings | changes))
    frame = pd.DataFrame(x, columns=["a", "b"])
    frame.loc[7, "b"] = np.nan
    with pytest.raises(ValueError, match="inputs must be finite, got nan in row 7, column 'b'"):
        rj.diagnose(frame, **settings)
    with pytest.raises(ValueError, match=r"targets must be one number for each of 100 rows, got shape \(99,\)"):
        rj.diagnose(x, np.zeros(99), **settings)
    with pytest.warns(UserWarning, match=r"columns have deviations from .* standardise them, \(x - x.mean\(0\)\)"):
        rj.diagnose(x * [1, 1000], model=False, **settings)
