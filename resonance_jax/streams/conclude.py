"""From growth over the plane to a diagnosis: one setting looked at closely, the time scale to blame, what to do."""

from typing import Any

import jax
import numpy as np
import xarray as xr
from jax import Array

from resonance_jax.labels import attrs
from resonance_jax.problems.base import LeastSquares, Problem, Recorded
from resonance_jax.problems.linear_regression import linear_regression
from resonance_jax.shifts.fitting.fit import fit
from resonance_jax.streams import time_scales
from resonance_jax.streams.diagnosis import Diagnosis, Model
from resonance_jax.streams.remedies import remedies
from resonance_jax.sweep import sweep
from resonance_jax.theory.noise.almost_sure import almost_sure_growth
from resonance_jax.theory.recorded import verdicts

MODEL_RUNS = 8  # of the model of the stream
MODEL_STEPS = 10_000  # of each
FITTED_STEPS = 20_000  # of the stream, from its beginning: an AR(2) model of ten times as many takes half a minute
OF_ORDER = ("order", "both", "bursts")  # verdicts that have a time scale


def recorded_of(problem: Problem) -> tuple[LeastSquares, Recorded]:
    """The parts of a problem that `problems.recorded` made of rows."""
    linear = problem.least_squares
    assert linear is not None
    assert linear.recorded is not None
    return linear, linear.recorded


def conclude(
    problem: Problem,
    data: xr.Dataset,
    *,
    mu: float | None,
    eta: float | None,
    bias: bool,
    loss_factor: float,
    model: bool,
) -> Diagnosis:
    """The diagnosis of a problem of recorded rows whose growth over the plane is known.

    Args:
        problem: of `problems.recorded`.
        data: of `theory.recorded.plane`; `mu` and `eta` are among its coordinates.
        mu, eta: the user's own setting; None: that at which the order does most harm.
        bias, loss_factor: as the problem was made.
        model: whether to fit a model.
    """
    linear, rows = recorded_of(problem)
    data = data.assign(modulation=time_scales.modulation(rows.rows, rows.samples, rows.curvature))
    what = (
        f"{len(rows.rows):,} rows of {problem.dim} input{'s' * (problem.dim > 1)}, {rows.samples} a step: "
        f"{rows.steps:,} steps a pass, {linear.num_weights} weights."
    )
    setting = _setting(data, mu, eta)
    if setting is None:
        return Diagnosis(_labelled(data), None, None, False, "", None, (), None, what)
    at = dict(mu=setting[0], eta=setting[1])
    verdict = verdicts.NAMES[int(data.verdict.sel(at))]
    returns_at, behind_buffer = None, None
    if verdict in OF_ORDER:
        by_block = time_scales.by_block(linear, len(rows.rows), setting)
        behind_buffer = time_scales.by_buffer(linear, len(rows.rows), setting)
        returns_at = time_scales.growth_returns_at(by_block)
        data = data.assign(
            block_rate=by_block.rate,
            block_rate_standard_error=by_block.standard_error,
            buffer_rate=behind_buffer.rate,
            buffer_rate_standard_error=behind_buffer.standard_error,
        )
    data = data.assign(tongue_period=time_scales.tongue_periods(rows.curvature, setting))
    row_bytes = rows.rows.itemsize * (problem.dim + 1)  # with its target
    measured = float(data.growth_rate.sel(at))
    return Diagnosis(
        data=_labelled(data),
        mu=setting[0],
        eta=setting[1],
        own=mu is not None and eta is not None,
        verdict=verdict,
        returns_at=returns_at,
        remedies=remedies(data, *setting, behind_buffer, row_bytes) if verdict != "stable" else (),
        model=_model(rows, bias, loss_factor, setting, measured) if model else None,
        what=what,
    )


def _setting(data: xr.Dataset, mu: float | None, eta: float | None) -> tuple[float, float] | None:
    """The user's own; where a part of it is missing, that which grows fastest by the order alone; None if none does."""
    given = {name: value for name, value in (("mu", mu), ("eta", eta)) if value is not None}
    near = {name: [float(data[name][np.abs(data[name].values - value).argmin()])] for name, value in given.items()}
    data = data.sel(near)
    blamed = data.growth_rate
    if len(given) < 2:
        blamed = blamed.where(data.verdict == verdicts.NAMES.index("order"))
        if not bool(blamed.notnull().any()):
            return None
    i, j = np.unravel_index(np.nanargmax(blamed.values), blamed.shape)
    return float(data.mu[i]), float(data.eta[j])


def _model(rows: Recorded, bias: bool, loss_factor: float, setting: tuple[float, float], measured: float) -> Model:
    """Growth of a typical run under the model of the stream."""
    inputs = rows.rows[:, : rows.rows.shape[1] - int(bias)]
    found = fit(inputs[: FITTED_STEPS * rows.samples], rows.samples)
    problem = linear_regression(
        dim=inputs.shape[1], samples=rows.samples, input_variance=found.covariance, bias=bias, loss_factor=loss_factor
    )
    mu, eta = setting

    def point(seed: Array) -> dict[str, Any]:
        key = jax.random.key(seed)
        return {"rate": almost_sure_growth(found.shift, problem, mu=mu, eta=eta, key=key, num_steps=MODEL_STEPS).rate}

    rates = sweep(point, {"seed": np.arange(MODEL_RUNS)}).rate.values.astype(float)
    rate, error = float(rates.mean()), float(rates.std(ddof=1) / np.sqrt(MODEL_RUNS))
    return Model(found, rate, error, bool(np.sign(rate) == np.sign(measured)))


def _labelled(data: xr.Dataset) -> xr.Dataset:
    for name in data.variables:
        data[name].attrs = attrs(str(name)) | data[name].attrs
    return data
