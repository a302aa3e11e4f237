"""The devices that share a sweep: which ones exist, which ones are used, and their names."""

import os
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

MOST_CPU_DEVICES = 8  # more split a grid into parts too small to be worth it

Device = Any  # jax.Device, which type checkers do not accept as a type


def configure_devices(num_cpu_devices: int | None = None, *, share_gpu: bool = False) -> None:
    """Settings that JAX reads when it starts its first device; for scripts, before anything is computed.

    Args:
        num_cpu_devices: number of devices that a CPU is divided into; None takes one per core, at most eight. With one
            per core, the cores need not wait for each other within a step.
        share_gpu: allocate the memory of a GPU when it is needed, so that other processes may use it, too.
    """
    wanted = num_cpu_devices or min(MOST_CPU_DEVICES, os.cpu_count() or 1)
    if jax.config.jax_num_cpu_devices != wanted:  # pyright: ignore[reportAttributeAccessIssue]
        jax.config.update("jax_num_cpu_devices", wanted)  # raises if a device is already started
    if share_gpu:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def check_devices(devices: int | Sequence[Device] | None) -> tuple[Device, ...]:
    """The devices that are asked for; None takes all local ones."""
    local = jax.local_devices()
    if devices is None:
        return tuple(local)
    if isinstance(devices, int | np.integer) and not isinstance(devices, bool):
        if not 1 <= devices <= len(local):
            remedy = f"this process sees {local}"
            if local[0].platform == "cpu" and devices > 1:
                remedy += (
                    f'. By default a CPU is one device: jax.config.update("jax_num_cpu_devices", {devices}) '
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


def chunks_at_once(devices: int | Sequence[Device] | None) -> int:
    """How many chunks of a sweep are computed at the same time on the devices that are asked for.

    A CPU is one device unless JAX was told otherwise before it started, and a program of ours keeps one of its cores
    busy: then one chunk for each core.
    """
    local = jax.local_devices()
    if devices is not None or len(local) > 1 or local[0].platform != "cpu":
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MOST_CPU_DEVICES, cores)


def name_of(devices: Sequence[Device]) -> str:
    """Number and kind of the devices, as `2 x cpu (cpu)`."""
    return f"{len(devices)} x {devices[0].device_kind} ({devices[0].platform})"
