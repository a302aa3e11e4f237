"""`python -m sweeps NAME[:VARIANT] ... --scale quick --out results`: run, and write dataset, picture and claims.

`all` stands for every file and every variant that belongs to the report; `--report` writes report.html and report.md.
Compiled programs are kept in the user's cache, so a second run of the same sweep starts at once; `--no-cache` turns
that off.
"""

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import jax
import xarray as xr
from rich.console import Console
from rich.table import Table

import resonance_jax as rj
import sweeps
from resonance_jax.checks import at_least_one
from sweeps import _report
from sweeps._entries import Entry
from sweeps._run import in_order, load, missing, names, run_all
from sweeps._shared import SCALES


def show(entry: Entry, console: Console) -> None:
    printed = Table("statement", "measured", "expected", "verdict", title=entry.name, show_lines=True)
    for claim in entry.claims:
        printed.add_row(claim.statement, claim.measured, claim.expected, claim.verdict)
    console.print(printed)
    console.print(f"{entry.name}: {entry.grid}, scale {entry.attrs['scale']}; {entry.ran}", soft_wrap=True)


def explore(out: Path, entry: Entry) -> None:
    """Write the dataset of a figure as a page to click on, if it has two axes for that."""
    with contextlib.suppress(ValueError):
        rj.explore(xr.load_dataset(out / f"{entry.stem}.nc", engine="scipy"), title=entry.title).save(
            out / f"{entry.stem}.html"
        )


def main(given: Sequence[str] | None = None, prog: str = "python -m sweeps") -> int:
    parser = argparse.ArgumentParser(prog=prog, description=sweeps.__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        default=["all"],
        metavar="NAME[:VARIANT]",
        help=f"all (the default), or any of {', '.join(names())}",
    )
    parser.add_argument("--scale", choices=SCALES, default="quick", help="size of the grid (default: quick)")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the results (default: results)")
    parser.add_argument("--report", action="store_true", help="also write report.html and report.md; always with all")
    parser.add_argument("--explore", action="store_true", help="also write pages to click on; needs bokeh")
    parser.add_argument("--jobs", type=int, help="figures at once (default: 1 on a CPU, which one figure keeps busy)")
    parser.add_argument("--no-cache", action="store_true", help="do not use or store compiled programs on disk")
    arguments = parser.parse_args(given)
    report = arguments.report or "all" in arguments.names
    chosen = [each for name in arguments.names for each in (in_order() if name == "all" else [name])]
    try:
        if arguments.jobs is not None:
            at_least_one("--jobs", arguments.jobs, "it is how many figures run at once")
        for name in chosen:
            load(name)
    except ValueError as error:
        parser.error(str(error))
    jobs = arguments.jobs or (1 if jax.default_backend() == "cpu" else max(1, (os.cpu_count() or 1) // 2))
    begin, entries, console = time.perf_counter(), [], Console()
    for entry in run_all(chosen, arguments.scale, arguments.out, min(jobs, len(chosen)), cache=not arguments.no_cache):
        entries.append(entry)
        if arguments.explore:
            explore(arguments.out, entry)
        show(entry, console)
        if report:  # after every figure, so that finished work is never lost
            _report.write(arguments.out, entries, len(chosen), arguments.scale, time.perf_counter() - begin)
    if "all" in arguments.names:
        for name in filter(missing, names()):
            needed = ", ".join(missing(name))
            console.print(f"left out: {name}, which needs {needed}; pip install '.[examples]' brings them")
    console.print(f"wrote {arguments.out}/: dataset, picture and claims of each{', report' * report}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
