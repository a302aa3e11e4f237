"""`python -m benchmarks [names] --device cpu|gpu --scale quick|paper --out results/bench.json`.

Times the forms of each workload in one run: medians of warm, synchronised calls, compilation apart; prints a table and
writes JSON. What is not installed is skipped and named.
"""

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path

import jax

from benchmarks import first_heatmap, single_run, theory_chart, trained
from benchmarks._measure import Form, machine, measure, table

WORKLOADS: dict[str, tuple[str, Callable[[str], list[Form]]]] = {
    "heatmap": (first_heatmap.NAME, lambda scale: first_heatmap.forms(10_000 if scale == "paper" else 1_000)),
    "theory": (theory_chart.NAME, lambda scale: theory_chart.forms()),
    "adam": ("W3 experiment 5", trained.adam_forms),
    "network": ("W4 experiment 6", trained.network_forms),
    "single": (single_run.NAME, lambda scale: single_run.forms()),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"any of {', '.join(WORKLOADS)} (default: all)")
    parser.add_argument("--device", choices=("cpu", "gpu"), help="default: what JAX finds")
    parser.add_argument("--scale", choices=("tiny", "quick", "paper"), default="quick", help="size of the workloads")
    parser.add_argument("--repeats", type=int, default=3, help="warm calls to take the median of (default: 3)")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in WORKLOADS]
    if unknown:
        parser.error(f"unknown workload {', '.join(unknown)}; choose any of {', '.join(WORKLOADS)}")
    if arguments.device:
        jax.config.update("jax_platforms", {"cpu": "cpu", "gpu": "cuda"}[arguments.device])
    jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)  # one per core
    here = machine() | {"scale": arguments.scale}
    print(", ".join(f"{name} {value}" for name, value in here.items()), flush=True)
    timings = []
    for name in arguments.names or WORKLOADS:
        title, forms = WORKLOADS[name]
        for form in forms(arguments.scale):
            timings.append(measure(title, form, arguments.repeats))
            print(f"{title}: {form.name}: {timings[-1].seconds}", flush=True)
    print("\n" + table(timings))
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps({"machine": here, "timings": [t._asdict() for t in timings]}, indent=1))


if __name__ == "__main__":
    main()
