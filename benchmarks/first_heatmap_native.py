"""The first heatmap in C and in CUDA: compiled when it is prepared, called through ctypes."""

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks._heatmap_setting import AMPLITUDE, ETA, SAMPLES, TAIL
from benchmarks._measure import Axes, Unavailable

COMMANDS = {
    "c": ["cc", "-O3", "-march=native", "-fno-math-errno", "-fopenmp", "-shared", "-fPIC"],
    "cu": ["nvcc", "-O3", "-arch=native", "-shared", "-Xcompiler", "-fPIC"],
}


class Size(ctypes.Structure):
    """`struct size` of first_heatmap.h."""

    _fields_ = [(name, ctypes.c_int) for name in ("num_f", "num_seeds", "num_mu", "num_steps", "samples", "tail")] + [
        (name, ctypes.c_float) for name in ("eta", "amplitude")
    ]


def library(language: str) -> ctypes.CDLL:
    """Compile benchmarks/first_heatmap.c or .cu and load it."""
    source = Path(__file__).with_name(f"first_heatmap.{language}")
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder) / "first_heatmap.so")
        command = [*COMMANDS[language], str(source), "-o", target, "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unavailable(f"{command[0]} failed: {' '.join(done.stderr.split())[:200]}")
        return ctypes.CDLL(target)


def compiled(language: str, axes: Axes, num_steps: int) -> Callable[[], np.ndarray]:
    floats = np.ctypeslib.ndpointer(np.float32, flags="C_CONTIGUOUS")
    function = library(language).first_heatmap
    function.argtypes = [Size, floats, floats, floats]
    function.restype = ctypes.c_char_p  # what went wrong, or NULL
    f, mu = (np.ascontiguousarray(axes[name], np.float32) for name in ("f", "mu"))
    num_seeds = len(axes["seed"])
    size = Size(len(f), num_seeds, len(mu), num_steps, SAMPLES, TAIL, ETA, AMPLITUDE)

    def call() -> np.ndarray:
        result = np.empty((len(f), num_seeds, len(mu)), np.float32)
        error = function(size, f, mu, result)
        if error:
            raise RuntimeError(f"first_heatmap.{language}: {error.decode()}")
        return result

    return call
