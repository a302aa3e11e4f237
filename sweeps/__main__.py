"""`python -m sweeps NAME[:VARIANT] ... --scale quick --out results`: run, and write dataset, picture and claims.

`all` stands for every file and every variant that belongs to the report; `--report` writes report.html and report.md.
"""

import argparse
import functools
import importlib
import os
import pkgutil
import sys
import time
from pathlib import Path

import jax

import sweeps

jax.config.update(
    "jax_num_cpu_devices", min(8, os.cpu_count() or 1)
)  # one per core: no barrier between cores in a step

import matplotlib.pyplot as plt  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import resonance_jax as rj  # noqa: E402
from sweeps import _report  # noqa: E402
from sweeps._claims import SCALES, Claim, table  # noqa: E402


def names() -> list[str]:
    """The sweep files; a name with an underscore is what they share."""
    return [module.name for module in pkgutil.iter_modules(sweeps.__path__) if not module.name.startswith("_")]


def in_order() -> list[str]:
    """What `all` runs: experiments, then appendix; a variant beside its default reading."""
    modules = {name: importlib.import_module(f"sweeps.{name}") for name in names()}
    chosen = []
    for name in sorted(names(), key=lambda name: (not name.startswith("exp"), str(modules[name].__doc__))):
        variants = getattr(modules[name], "VARIANTS", {})
        chosen += [name, *(f"{name}:{variant}" for variant in variants if f"{name}:{variant}" in _report.READINGS)]
    return chosen


def show(claims: list[Claim], title: str, console: Console) -> None:
    printed = Table("statement", "measured", "expected", "verdict", title=title, show_lines=True)
    for claim in claims:
        printed.add_row(claim.statement, claim.measured, claim.expected, claim.verdict)
    console.print(printed)


def run(name: str, scale: str, out: Path, console: Console) -> _report.Entry:
    """Run one sweep file, or one of its variants, and write what it makes."""
    begin = time.perf_counter()
    file, _, variant = name.partition(":")
    module = importlib.import_module(f"sweeps.{file}")
    variants = getattr(module, "VARIANTS", {})
    if variant and variant not in variants:
        known = ", ".join(f"{file}:{each}" for each in variants) or "none"
        raise ValueError(f"{file} has no variant {variant!r}; its variants are: {known}")
    point = functools.partial(module.point, **variants[variant]) if variant else module.point
    with jax.enable_x64(getattr(module, "DTYPE", "float32") == "float64"):
        # A bar needs a grid cut into pieces, which a GPU would rather have whole.
        data = rj.sweep(point, module.axes(scale), progress=jax.default_backend() == "cpu")
    data.attrs |= {"scale": scale, "reading": variant or "default", "point": f"{module.__name__}.point"}
    grid = " x ".join(f"{size} {dim}" for dim, size in data.sizes.items())
    console.print(
        f"{name}: {grid} on {data.attrs['device']}, compiled in {data.attrs['compile_seconds']:.1f} s, "
        f"ran in {data.attrs['run_seconds']:.2f} s"
    )
    stem = name.replace(":", "-")
    out.mkdir(parents=True, exist_ok=True)
    data.to_netcdf(out / f"{stem}.nc", engine="scipy")
    picture = module.figure(data)
    if variant:
        picture.text(0.995, 0.005, f"reading: {variant}", ha="right", va="bottom", fontsize=8, style="italic")
    picture.savefig(out / f"{stem}.png", dpi=150)
    plt.close(picture)
    claims = module.claims(data)
    (out / f"{stem}.claims.md").write_text(table(claims))
    show(claims, f"{name}, scale {scale}", console)
    console.print(f"wrote {out}/{stem}.nc, .png and .claims.md")
    return _report.Entry(name, str(module.__doc__), claims, data.attrs, time.perf_counter() - begin)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m sweeps", description=sweeps.__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME[:VARIANT]", help=f"all, or any of {', '.join(names())}")
    parser.add_argument("--scale", choices=SCALES, default="quick", help="size of the grid (default: quick)")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the results (default: results)")
    parser.add_argument("--report", action="store_true", help="also write report.html and report.md")
    arguments = parser.parse_args()
    plt.switch_backend("Agg")
    chosen = [each for name in arguments.names for each in (in_order() if name == "all" else [name])]
    unknown = sorted({name.partition(":")[0] for name in chosen} - set(names()))
    if unknown:
        parser.error(f"unknown {', '.join(unknown)}; choose all, or any of {', '.join(names())}")
    begin, entries, console = time.perf_counter(), [], Console()
    for name in chosen:
        try:
            entries.append(run(name, arguments.scale, arguments.out, console))
        except ValueError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 2
        if arguments.report:  # after every figure: what is finished is never lost
            _report.write(arguments.out, entries, len(chosen), arguments.scale, time.perf_counter() - begin)
    if arguments.report:
        console.print(f"wrote {arguments.out}/report.html and report.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
