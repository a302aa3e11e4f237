"""Waiting: seconds until the first answer, from a new process, with an empty cache folder and with a warm one.

Each call runs in a process of its own, without settings, as a user's script would. The first call of the process is
timed with the import of the package, the second one is the same call again, its functions defined anew.
"""

import os
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks import _machine

SETTING = """
import time; begin = time.perf_counter()
import jax, numpy as np, resonance_jax as rj
problem = rj.problems.linear_regression(dim=1, samples=20)
shift = rj.shifts.sinusoid(1 / 22, amplitude=0.5)
"""
CALLS = {  # as they stand in a notebook
    "heatmap, 30 x 30 x 4 runs of 10,000 steps, and its theory": """
def point(seed, f, mu):
    shift = rj.shifts.sinusoid(f, amplitude=0.5)
    run = rj.oscillate(jax.random.key(seed), shift=shift, problem=problem, mu=mu, eta=0.01, num_steps=10_000, tail=500)
    return run | {"predicted_rate": rj.theory.growth_rate(shift, mu=mu, eta=0.01)}
rj.sweep(point, dict(seed=np.arange(4), f=np.linspace(0, 0.05, 30), mu=np.linspace(0.95, 0.999, 30)))
""",
    "one run, `rj.oscillate`": """
rj.oscillate(jax.random.key(0), shift=shift, problem=problem, mu=0.99, eta=0.01, num_steps=10_000, tail=500)
""",
    "`rj.theory.explain`": """
rj.theory.explain(shift, problem, mu=0.99, eta=0.01)
""",
    "`rj.diagnose`, 2,000 rows": """
rows = np.sin(np.arange(2000)[:, None] / 5) + np.random.default_rng(0).normal(size=(2000, 1))
rj.diagnose(rows, samples=4, mu=0.9, eta=0.01)
""",
}
REPORT = """
print(time.perf_counter() - begin, flush=True); begin = time.perf_counter()
"""


def seconds(call: str, folder: str) -> list[float]:
    """Of the first and of the second call in a new process."""
    script = SETTING + call + REPORT + call + REPORT
    environment = os.environ | {"RESONANCE_CACHE": folder}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], env=environment, check=True, capture_output=True, text=True
    )
    return [float(line) for line in done.stdout.split()]


def main() -> None:
    machine: dict[str, Any] = _machine.machine()
    print(machine["name"])
    print("| call | cold, with the import | the same again | new process, warm folder | the same again |")
    print("| --- | --- | --- | --- | --- |")
    for name, call in CALLS.items():
        with tempfile.TemporaryDirectory() as folder:
            found = seconds(call, folder) + seconds(call, folder)
        print(f"| {name} | " + " | ".join(f"{each:.1f} s" for each in found) + " |", flush=True)


if __name__ == "__main__":
    main()
