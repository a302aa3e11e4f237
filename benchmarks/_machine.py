"""What a benchmark ran on."""

import importlib.metadata
import os
import platform
import shutil
import subprocess
import time
from typing import Any

import jax

from benchmarks._measure import current_platform

PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "optax", "flax", "torch", "numba", "diffrax")
COMPILERS = ("cc", "nvcc")


def machine() -> dict[str, Any]:
    """Devices, processor and the version of everything that is compared; missing packages are left out."""
    device = jax.local_devices()[0]
    count, model, threads = jax.local_device_count(), processor(), num_threads()
    name = f"{model}, {threads} threads" if current_platform() == "cpu" else f"{count} x {device.device_kind}"
    return {
        "name": name,
        "platform": device.platform,
        "device": f"{count} x {device.device_kind}",
        "processor": model,
        "cores": os.cpu_count(),
        "threads": threads,
        "python": platform.python_version(),
        **versions(),
        "date": time.strftime("%Y-%m-%d"),
    }


def num_threads() -> int:
    """Cores that this process may use, the default of OpenMP, numba and PyTorch."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    """Model of the CPU, or at least its kind."""
    for line in lines_of("lscpu"):
        if line.startswith("Model name:"):
            return line.removeprefix("Model name:").strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    for compiler in COMPILERS:
        lines = [line for line in lines_of(compiler, "--version") if any(letter.isdigit() for letter in line)]
        numbered = [line for line in lines if "release" in line] or lines  # nvcc begins with its copyright
        if numbered:
            found[compiler] = numbered[0].strip()
    return found


def lines_of(program: str, *arguments: str) -> list[str]:
    """Lines that a program prints; none if it is not installed."""
    if shutil.which(program) is None:
        return []
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()
