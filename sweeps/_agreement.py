"""How well a prediction says which runs diverge, beside the prediction that none does."""

from collections.abc import Callable
from typing import Any

import xarray as xr


def base_rates(
    predicted: xr.DataArray, found: xr.DataArray, say: Callable[[Any], str] = lambda value: f"{float(value):.1%}",
    over: tuple[str, ...] | None = None, where: Any = True,
) -> str:  # fmt: skip
    """Balanced accuracy, and the agreement of "never diverges": where few runs diverge, that one is high as well.

    Balanced accuracy is the mean of two shares of right predictions: among the runs that diverge, and among the others.

    Args:
        predicted: which runs should diverge.
        found: which do.
        say: the text for the values.
        over: dimensions to count over; None: all.
        where: which of them count.

    >>> found = xr.DataArray([True, False, False, False], dims="f")
    >>> base_rates(xr.zeros_like(found), found)
    'balanced accuracy 50.0%; "never diverges" agrees on 75.0%'
    """
    right = (predicted == found).where(where)
    kinds = [right.where(found).mean(over), right.where(~found).mean(over)]  # NaN where there is no run of the kind
    balanced, never = xr.concat(kinds, "kind").mean("kind"), (~found).where(where).mean(over)
    return f'balanced accuracy {say(balanced)}; "never diverges" agrees on {say(never)}'
