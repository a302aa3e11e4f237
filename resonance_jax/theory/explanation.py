"""What an explanation holds, and how it prints."""

from typing import NamedTuple

import numpy as np

from resonance_jax.optimizers import modes
from resonance_jax.optimizers.linear import LinearOptimizer

SURE = 2.0  # standard errors


def smaller_step(optimizer: LinearOptimizer, eta: float | None, curvature: float) -> str:
    """What to do where a mode of this curvature grows; `eta` is None where an optimizer has a step size of its own."""
    factor = modes.largest_step(optimizer, curvature)
    return (
        f"Take a step size below {factor:.3g} times this one."
        if eta is None
        else f"Take a step size below {factor * eta:.3g}."
    )


class Rates(NamedTuple):
    """Growth per step. An error of 0 says that the rate is exact; NaN that it is not known."""

    mean: float  # of log ||E xi||
    mean_square: float  # half of log E ||xi||^2
    almost_sure: float  # of log ||xi|| of a typical run
    standard_error: float  # of the almost-sure rate
    mean_error: float = 0.0  # standard error of `mean`
    mean_square_error: float = 0.0  # of `mean_square`
    crossing: str = ""  # how the mean grows, as `rj.theory.crossing` names it; empty where there is no period

    @property
    def grows(self) -> bool:
        """Whether a typical run grows, by more than two standard errors."""
        return self.almost_sure > SURE * self.standard_error

    @property
    def shrinks(self) -> bool:
        return self.almost_sure < -SURE * self.standard_error


class Explanation(NamedTuple):
    """What `explain` returns; print it.

    >>> still, moving = Rates(-0.02, -0.02, -0.02, 0.001), Rates(0.01, 0.02, 0.01, 0.001)
    >>> Explanation(moving, still, "resonance", "it moves.", "Take a smaller momentum.", held=still).shift.grows
    True
    """

    shift: Rates  # or of recorded rows in their order
    baseline: Rates  # of iid inputs, or of the same rows shuffled
    verdict: str  # one of those that `explain` lists
    sentence: str  # what it means
    remedy: str  # what to do about it; empty if nothing
    held: Rates | None  # with the inputs held at the far end of the drift; None for recorded rows

    def __str__(self) -> str:
        columns = {"in this order": self.shift, "shuffled": self.baseline}
        if self.held is not None:
            columns = {"under the shift": self.shift, "held at its end": self.held, "iid baseline": self.baseline}
        rows = [f"{'growth per step':<18}" + "".join(f"{name:>20}" for name in columns)]
        for name, label, error in (
            ("mean", "mean", "mean_error"),
            ("mean_square", "mean square", "mean_square_error"),
            ("almost_sure", "almost sure", "standard_error"),
        ):
            if any(np.isfinite(getattr(each, name)) for each in columns.values()):
                cells = [_number(getattr(each, name), getattr(each, error)) for each in columns.values()]
                rows.append(f"{label:<18}" + "".join(f"{cell:>20}" for cell in cells))
        rows.append("Numbers with +- are estimates and their standard errors, the others are exact.")
        return "\n".join([*rows, f"{self.verdict}: {self.sentence}", *([self.remedy] if self.remedy else [])])


def _number(rate: float, error: float) -> str:
    if not np.isfinite(rate):
        return "-"
    if 0 < max(abs(rate), error) < 5e-5:  # it would read as 0
        return f"{rate:+.1e} +- {error:.1e}" if error else f"{rate:+.1e}"
    return f"{rate:+.5f} +- {error:.5f}" if error else f"{rate:+.5f}"
