"""`python -m benchmarks [names] --device cpu|gpu --scale tiny|quick|paper --out results/bench.json`.

Times the forms of each workload in one run: medians of warm, synchronised calls, compilation listed separately. Prints
a table and writes JSON. Forms that are not installed, or not for this device, are skipped and named.
`python -m benchmarks plot a.json b.json` compares machines.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import jax

from benchmarks import (
    _machine,
    batch,
    first_heatmap,
    growth_chart,
    guard,
    optimizers,
    plot,
    scaling,
    single_run,
    stream,
    theory_chart,
    trained,
)
from benchmarks._measure import Form, Timing, measure, table
from resonance_jax.checks import at_least_one
from resonance_jax.engine.cache import use_compilation_cache
from resonance_jax.engine.devices import configure_devices
from sweeps import exp5_adam, exp6_mlp

WORKLOADS: dict[str, tuple[str, Callable[[str], list[Form]]]] = {
    "heatmap": (
        first_heatmap.NAME,
        lambda scale: first_heatmap.forms(first_heatmap.axes(scale), first_heatmap.NUM_STEPS[scale]),
    ),
    "theory": (theory_chart.NAME, lambda scale: theory_chart.forms(theory_chart.axes(scale))),
    "adam": ("W3 experiment 5, Adam", lambda scale: trained.adam_forms(exp5_adam.axes(scale))),
    "network": ("W4 experiment 6, network", lambda scale: trained.network_forms(exp6_mlp.axes(scale))),
    "single": (single_run.NAME, lambda scale: single_run.forms()),
    "growth": (growth_chart.NAME, growth_chart.forms),
    "stream": (stream.NAME, stream.forms),
    "optimizers": (optimizers.NAME, optimizers.forms),
    "guard": (guard.NAME, guard.forms),
    "batch": (batch.NAME, batch.forms),
}
NAMES = [*WORKLOADS, "scaling"]


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"any of {', '.join(NAMES)} (default: all)")
    parser.add_argument("--device", choices=("cpu", "gpu"), help="default: what JAX finds")
    parser.add_argument("--scale", choices=("tiny", "quick", "paper"), default="quick", help="size (default: quick)")
    parser.add_argument("--repeats", type=int, default=3, help="warm calls to take the median of (default: 3)")
    parser.add_argument("--cache", action="store_true", help="compiled programs from disk: compile times are not cold")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parsed = parser.parse_args(arguments)
    unknown = [name for name in parsed.names if name not in NAMES]
    if unknown:
        parser.error(f"unknown workload {', '.join(unknown)}; choose any of {', '.join(NAMES)}")
    try:
        at_least_one("--repeats", parsed.repeats, "it is how many warm calls are timed")
    except ValueError as error:
        parser.error(str(error))
    parsed.names = parsed.names or NAMES
    return parsed


def set_up(device: str | None, cache: bool) -> None:
    """Settings that JAX reads before it starts its first device."""
    if device:
        jax.config.update("jax_platforms", {"cpu": "cpu", "gpu": "cuda"}[device])
    configure_devices(_machine.num_threads(), share_gpu=True)  # with PyTorch
    use_compilation_cache(cache)
    if not cache:
        jax.config.update("jax_enable_compilation_cache", False)


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["plot"]:
        plot.main(arguments[1:])
        return
    chosen = parse(arguments)
    set_up(chosen.device, chosen.cache)
    try:
        jax.devices()
    except (RuntimeError, AssertionError):  # depending on the version of JAX
        sys.exit(f"JAX finds no {chosen.device or 'device'} here; leave out --device to run on any device")
    here = _machine.machine() | {"scale": chosen.scale, "repeats": chosen.repeats, "cache": chosen.cache}
    print("\n".join(f"{name}: {value}" for name, value in here.items()) + "\n", flush=True)

    timings: list[Timing] = []
    for name in chosen.names:
        title, forms = WORKLOADS.get(name, (name, lambda scale: []))
        for form in forms(chosen.scale):
            timings.append(measure(title, form, chosen.repeats))
            print(f"{title}: {form.name}: {timings[-1].seconds or timings[-1].note}", flush=True)
    rows: list[scaling.Row] = []
    for row in scaling.rows(chosen.scale, chosen.repeats) if "scaling" in chosen.names else []:
        rows.append(row)
        print(f"scaling: {row.axis} {row.value}: {row.seconds}", flush=True)

    print("\n" + "\n\n".join([table(timings)] * bool(timings) + [scaling.table(rows)] * bool(rows)))
    if chosen.out:
        result = {
            "machine": here,
            "timings": [timing._asdict() for timing in timings],
            "scaling_base": scaling.BASE[chosen.scale]._asdict(),
            "scaling": [row._asdict() for row in rows],
        }
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
