"""How much memory a device and this process have, how much is free, and the error where it is too small."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

UNKNOWN = 4 * 2**30  # assumed if the system does not say
CGROUP = Path("/sys/fs/cgroup")  # where Linux sets memory limits, for example those of a scheduler's job or a container


@contextlib.contextmanager
def memory_error(message: str) -> Iterator[None]:
    """Turn the error of a device that runs out of memory into a MemoryError."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error) and "out of memory" not in str(error).lower():
            raise
        raise MemoryError(message) from error


def free_memory(device: Any) -> float:
    """Free bytes of a device; on a CPU, the bytes available to this job divided by the number of devices."""
    stats = device.memory_stats()
    if stats and "bytes_limit" in stats:
        return stats["bytes_limit"] - stats.get("bytes_in_use", 0)
    return min(_available(), _left_in_group()) / device.client.local_device_count()


def peak_of_process() -> int:
    """Largest resident memory of this process so far, in bytes."""
    try:  # on Linux, getrusage would include the peak of the process that started this one
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        pass
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def peak_of_device(device: Any) -> int | None:
    """Peak of the bytes in use so far; None if the device does not report it, as a CPU does not."""
    stats = device.memory_stats()
    return stats.get("peak_bytes_in_use") if stats else None


def _available() -> float:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return UNKNOWN


def _left_in_group() -> float:
    """Free bytes under the limits of the process's control groups; infinite without limits."""
    try:
        group = next(line for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return float("inf")
    folder = CGROUP / group.removeprefix("0::").lstrip("/")
    left = [float("inf")]
    for each in (folder, *folder.parents):
        if each == CGROUP.parent:
            break
        try:
            left.append(int((each / "memory.max").read_text()) - int((each / "memory.current").read_text()))
        except (OSError, ValueError):  # no file, or "max"
            continue
    return max(0.0, min(left))
