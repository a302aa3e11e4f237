"""How a part of the package shows itself: as the call that made it."""

from typing import Any

import numpy as np

from resonance_jax import checks


def call(factory: str, **arguments: Any) -> str:
    """The call of a factory as text, short enough for a `repr`; arguments that are None are left out.

    >>> call("sinusoid", f=0.045, amplitude=0.5, dim=None)
    'sinusoid(f=0.045, amplitude=0.5)'
    """
    shown = [f"{name}={short(value)}" for name, value in arguments.items() if value is not None]
    return f"{factory}({', '.join(shown)})"


def short(value: Any) -> str:
    """A value as text, as short as a `repr` needs it."""
    if not checks.is_concrete(value):
        return "<traced>"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    if isinstance(value, str | bool):
        return repr(value)
    array = np.asarray(value)
    if array.ndim == 0 and array.dtype.kind in "iuf":
        return f"{array.item():.6g}"
    if array.dtype.kind in "iuf" and array.size <= 9:
        return np.array2string(array, separator=", ", precision=4).replace("\n", "")
    return f"<array of shape {array.shape}>" if array.dtype.kind in "iuf" else repr(value)
