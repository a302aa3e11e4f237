"""What a diagnosis holds, and how it prints."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xarray as xr

from resonance_jax.shifts.fitting.fit import Fit
from resonance_jax.streams.remedies import Remedy
from resonance_jax.theory.recorded.verdicts import MEANINGS, NAMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Model(NamedTuple):
    """A model of the stream, and what theory says about it at the setting."""

    fit: Fit
    rate: float  # growth per step of a typical run under the model
    standard_error: float
    agrees: bool  # with the sign of the measured growth


class Diagnosis(NamedTuple):
    """What `diagnose` returns; print it, or plot it.

    Fields:
        data: growth over momentum and step size: `growth_rate` in time order, `shuffled_rate`, their standard errors,
            `expected_rate`, `rise` in decades, and `verdict`; `largest_safe_mu` for each step size and
            `largest_safe_eta` for each momentum. For one setting, where the order is to blame: `block_rate` and
            `buffer_rate` over what is kept of the order, `tongue_period`; for all, `modulation` over the frequency.
        mu, eta: the setting that is looked at closely; None where nothing grows and none was given.
        own: whether the setting was given; otherwise it is the one that suffers most from the order.
        verdict: of the setting: one of `theory.recorded.verdicts.MEANINGS`; empty without a setting.
        returns_at: rows of the shortest blocks whose order suffices for growth; None if unknown.
        remedies: what makes runs converge, with the growth per step of each.
        model: of the stream, and theory's growth under it; None if it was not asked for.
        what: the stream in words.
    """

    data: xr.Dataset
    mu: float | None
    eta: float | None
    own: bool
    verdict: str
    returns_at: int | None
    remedies: tuple[Remedy, ...]
    model: Model | None
    what: str

    @property
    def safe(self) -> bool:
        """Whether runs at the setting converge in time order."""
        return self.verdict == "stable"

    def plot(self) -> "Figure":
        """One figure: growth in time order and shuffled, and the time scale that is to blame."""
        from resonance_jax.plotting.diagnosis import diagnosis_figure

        return diagnosis_figure(self)

    def __str__(self) -> str:
        lines = [self.what, _counts(self.data.verdict)]
        if self.mu is None or self.eta is None:
            return "\n".join([*lines, "No setting of the plane diverges because of the order."])
        cell = self.data.sel(mu=self.mu, eta=self.eta)
        chosen = "At" if self.own else "The order does most harm at"
        lines += [
            f"{chosen} momentum {self.mu:.6g} and step size {self.eta:.6g}, growth per step is",
            f"    in time order  {_number(cell.growth_rate, cell.growth_rate_standard_error)}",
            f"    shuffled       {_number(cell.shuffled_rate, cell.shuffled_rate_standard_error)}",
            f"    expected       {float(cell.expected_rate):+.5f}",
            f"{self.verdict}: {MEANINGS[self.verdict]}",
        ]
        if self.returns_at is not None:
            lines.append(
                f"Time scale: blocks of {self.returns_at:,} rows in their order suffice for growth. {self._periods()}"
            )
        if self.model is not None:
            lines += _model_lines(self.model)
        if self.safe:
            lines += [
                _margin("momentum", "step size", self.mu, float(cell.largest_safe_mu)),
                _margin("step size", "momentum", self.eta, float(cell.largest_safe_eta)),
            ]
        elif self.remedies:
            lines += ["What to do:", *(f"    {each.text}" for each in self.remedies)]
        else:
            lines.append("No setting of the plane with this momentum or this step size is safe; take more rows a step.")
        return "\n".join(lines)

    def _periods(self) -> str:
        modulation = self.data.modulation
        strongest = 1 / float(modulation.frequency[int(modulation.values.argmax())])
        expected = np.unique(np.round(self.data.tongue_period.values[np.isfinite(self.data.tongue_period.values)], 1))
        periods = ", ".join(f"{each:.4g}" for each in expected[:4])
        text = f"B is modulated most at a period of {strongest:.4g} steps"
        return f"{text}; resonance is expected at {periods} steps." if periods else f"{text}."


def _margin(what: str, kept: str, here: float, largest: float) -> str:
    if largest >= here:
        return f"Safe up to {what} {largest:.4g} at this {kept}."
    return f"Not every smaller {what} is safe at this {kept}: look at the plane before you change it."


def _counts(verdict: xr.DataArray) -> str:
    counts = {name: int((verdict == i).sum()) for i, name in enumerate(NAMES)}
    shown = ", ".join(f"{name} {number}" for name, number in counts.items() if number)
    return f"Of {verdict.size} settings of momentum and step size: {shown}."


def _number(rate: xr.DataArray, error: xr.DataArray) -> str:
    return f"{float(rate):+.5f} +- {float(error):.5f}"


def _model_lines(model: Model) -> list[str]:
    first = str(model.fit).splitlines()[0].partition(": ")[2]
    says = f"    theory of this model: growth of {model.rate:+.5f} +- {model.standard_error:.5f} a step"
    if model.agrees:
        return [f"Model: {first}", f"{says}, of the same sign as the measured one."]
    return [
        f"Model: {first}",
        f"{says}. The measured growth has another sign: trust that. The model keeps one line of the spectrum and",
        "    Gaussian rows around it; the measurement sees the rows as they are.",
    ]
