"""What a sweep is asked to do, checked on the host before anything is traced."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

Point = Callable[..., dict[str, Any]]
Device = Any  # jax.Device, which is no type to a type checker


def check_axes(point: Point, axes: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
    if not callable(point):
        raise ValueError(f"point must be a function of named scalars, got {point!r}; pass the function, not its result")
    if not isinstance(axes, Mapping) or not axes:
        raise ValueError(
            f"axes must be a dict of at least one name and its values, got {axes!r}; name an argument of point"
        )
    try:
        hash(point)
    except TypeError:
        raise ValueError(f"point must be hashable, got {point!r}; wrap it in a function") from None
    parameters = inspect.signature(point).parameters.values()
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for name in axes:
        if name not in named and not takes_any:
            raise ValueError(f"axis {name!r} is not a parameter of point, which has {named}; rename or remove the axis")
    for p in parameters:
        if p.name in named and p.default is p.empty and p.name not in axes:
            raise ValueError(
                f"parameter {p.name!r} of point has no axis and no default; add an axis or a default for it"
            )
    return {name: _check_axis(name, values) for name, values in axes.items()}


def _check_axis(name: str, values: ArrayLike) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"axis {name!r} must be 1-D, got shape {array.shape}; wrap a single value as [value]")
    if array.size == 0:
        raise ValueError(f"axis {name!r} must have at least one value, got none; remove it or give it values")
    if array.dtype.kind not in "iuf":
        raise ValueError(
            f"axis {name!r} must hold real numbers, got dtype {array.dtype}; index other things by integers"
        )
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            finite = np.isfinite(working_dtype(array))
        if not finite.all():
            raise ValueError(
                f"axis {name!r} must be finite in {jnp.result_type(float)}, got {array[~finite][0]}; drop that value"
            )
    else:
        info = np.iinfo(jnp.result_type(int))
        outside = (array < info.min) | (array > info.max)
        if outside.any():
            raise ValueError(f"axis {name!r} must fit into {info.dtype}, got {array[outside][0]}; use float values")
    return array


def check_devices(devices: int | Sequence[Device] | None) -> tuple[Device, ...]:
    local = jax.local_devices()
    if devices is None:
        return tuple(local)
    if isinstance(devices, int | np.integer) and not isinstance(devices, bool):
        if not 1 <= devices <= len(local):
            remedy = f"this process sees {local}"
            if local[0].platform == "cpu" and devices > 1:
                remedy += (
                    f'. A CPU is one device unless told otherwise: jax.config.update("jax_num_cpu_devices", {devices}) '
                    f"before JAX is first used, or XLA_FLAGS=--xla_force_host_platform_device_count={devices} in the "
                    "environment"
                )
            raise ValueError(f"devices must be between 1 and {len(local)}, got {devices}; {remedy}")
        return tuple(local[:devices])
    chosen = tuple(devices) if isinstance(devices, Sequence) and not isinstance(devices, str) else ()
    if not chosen or len(set(chosen)) < len(chosen) or not all(isinstance(one, jax.Device) for one in chosen):
        raise ValueError(
            f"devices must be a number or a list of different devices, got {devices!r}; leave it out for all"
        )
    return chosen


def working_dtype(array: np.ndarray) -> np.ndarray:
    return array.astype(jnp.result_type(float) if array.dtype.kind == "f" else jnp.result_type(int))
