"""Names of axes and outputs in words: long name, units and symbol, for datasets and plots alike."""

from collections.abc import Mapping
from typing import Any, NamedTuple

ERROR = "_standard_error"  # how `rj.sweep` names the second field of an `Estimate`


class Label(NamedTuple):
    """What a name stands for."""

    long_name: str
    units: str = "1"  # of a pure number
    symbol: str = ""  # in LaTeX


LABELS = {
    # axes
    "mu": Label("momentum", symbol=r"\mu"),
    "eta": Label("step size", symbol=r"\eta"),
    "beta1": Label("decay", symbol=r"\beta_1"),
    "f": Label("frequency of the shift", "1/step", "f"),
    "T": Label("period or interval of the shift", "steps", "T"),
    "v": Label("variance of the mean", symbol="v"),
    "dim": Label("inputs", symbol="d"),
    "samples": Label("samples per step"),
    "seed": Label("seed"),
    "frequency": Label("frequency", "1/step"),
    "step": Label("steps done", "steps", "k"),
    # outputs of runs
    "distance": Label("distance, mean of the last steps", symbol=r"\Vert\theta_k-\theta^*\Vert"),
    "log10_distance": Label("log10 of the distance, mean of the last steps"),
    "loss": Label("test loss, mean of the last steps"),
    "distance_curve": Label("distance", symbol=r"\Vert\theta_k-\theta^*\Vert"),
    "log10_distance_curve": Label("log10 of the distance"),
    "loss_curve": Label("test loss"),
    "diverged": Label("whether the run diverged"),
    "diverged_at": Label("step at which the run diverged, -1 if it did not", "steps"),
    "status": Label("status of the cell"),
    # growth rates
    "growth_rate": Label("growth rate", "1/step", r"\log\rho"),
    "growth_curve": Label("growth rate since the snapshot before", "1/step"),
    "update_growth_rate": Label("growth rate of the norm of the updates", "1/step"),
    "predicted_rate": Label("growth rate predicted by theory", "1/step"),
    "discrete_rate": Label("growth rate in discrete time", "1/step"),
    "mean_rate": Label("growth rate of the mean", "1/step"),
    "mean_square_rate": Label("growth rate of the mean square", "1/step"),
    "almost_sure_rate": Label("growth rate of almost every run", "1/step"),
    "rate": Label("growth rate", "1/step"),
    "shuffled_rate": Label("growth rate of the shuffled rows", "1/step"),
    "expected_rate": Label("growth rate if each step saw all rows", "1/step"),
    "block_rate": Label("growth rate where blocks of rows keep their order", "1/step"),
    "buffer_rate": Label("growth rate behind a shuffle buffer", "1/step"),
    # streams
    "rise": Label("largest rise of the error on the way", "decades"),
    "shuffled_rise": Label("largest rise of the error on the way, shuffled", "decades"),
    "verdict": Label("what is to blame"),
    "largest_safe_mu": Label("largest safe momentum"),
    "largest_safe_eta": Label("largest safe step size"),
    "block_length": Label("rows that keep their order", "rows"),
    "buffer_size": Label("rows in the shuffle buffer", "rows"),
    "modulation": Label("power spectral density of the strongest modulation of B", "steps"),
    "tongue_period": Label("period at which resonance is expected", "steps"),
    "log_rho": Label("log of the spectral radius over a period", symbol=r"\log\rho"),
}


def find(name: str) -> Label | None:
    """The label of a name, or of the standard error of a name; None if it is unknown."""
    if name.endswith(ERROR):
        of = LABELS.get(name.removesuffix(ERROR))
        return of and Label(f"standard error of the {of.long_name}", of.units)
    return LABELS.get(name)


def attrs(name: str) -> dict[str, Any]:
    """Attributes of a variable or coordinate of this name, as xarray and NetCDF know them.

    >>> attrs("f")
    {'long_name': 'frequency of the shift', 'units': '1/step'}
    >>> attrs("my_output")
    {}
    """
    label = find(name)
    return {"long_name": label.long_name, "units": label.units} if label else {}


def axis(name: str, own: Mapping[str, Any] | None = None) -> str:
    """Text beside the axis of a plot.

    Args:
        name: of the variable or coordinate. Plots show the log10 of a value on an axis of powers of ten, so the text
            for `log10_distance` is that for `distance`.
        own: attributes of the data; their `long_name` and `units` come before those of the table.

    >>> axis("f"), axis("loss"), axis("my_output")
    ('frequency of the shift $f$ (1/step)', 'test loss, mean of the last steps', 'my_output')
    >>> axis("log10_distance") == axis("distance")
    True
    >>> axis("f", {"long_name": "frequency of the pump", "units": "Hz"})
    'frequency of the pump (Hz)'
    """
    own = own or {}
    label = find(name) or Label(name)
    if own.get("long_name", label.long_name) != label.long_name:
        label = Label(own["long_name"], label.units)
    elif name.startswith("log10_"):
        label = find(name.removeprefix("log10_")) or label
    units = own.get("units", label.units)
    head, comma, rest = label.long_name.partition(",")
    symbol = f" ${label.symbol}$" if label.symbol else ""
    return f"{head}{symbol}{comma}{rest}" + (f" ({units})" if units not in ("1", "") else "")
