"""`python -m sweeps NAME [NAME ...] --scale quick --out results`: run, and write dataset, picture and claims."""

import argparse
import importlib
import os
import pkgutil
from pathlib import Path
from types import ModuleType

import jax

import sweeps

jax.config.update(
    "jax_num_cpu_devices", min(8, os.cpu_count() or 1)
)  # one per core: no barrier between cores in a step

import matplotlib  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import resonance_jax as rj  # noqa: E402
from sweeps._claims import SCALES, Claim, table  # noqa: E402


def names() -> list[str]:
    """The sweep files; a name with an underscore is what they share."""
    return [module.name for module in pkgutil.iter_modules(sweeps.__path__) if not module.name.startswith("_")]


def show(claims: list[Claim], title: str, console: Console) -> None:
    printed = Table("statement", "measured", "expected", "verdict", title=title, show_lines=True)
    for claim in claims:
        printed.add_row(claim.statement, claim.measured, claim.expected, claim.verdict)
    console.print(printed)


def run(module: ModuleType, scale: str, out: Path, console: Console) -> list[Claim]:
    """Run one sweep file and write what it makes."""
    name = module.__name__.rpartition(".")[2]
    double = getattr(module, "DTYPE", "float32") == "float64"
    with jax.enable_x64(double):
        data = rj.sweep(module.point, module.axes(scale), progress=True)
    data.attrs["scale"] = scale
    grid = " x ".join(f"{size} {dim}" for dim, size in data.sizes.items())
    console.print(
        f"{name}: {grid} on {data.attrs['device']}, compiled in {data.attrs['compile_seconds']:.1f} s, "
        f"ran in {data.attrs['run_seconds']:.2f} s"
    )
    out.mkdir(parents=True, exist_ok=True)
    data.to_netcdf(out / f"{name}.nc", engine="scipy")
    module.figure(data).savefig(out / f"{name}.png", dpi=150)
    claims = module.claims(data)
    (out / f"{name}.claims.md").write_text(table(claims))
    show(claims, f"{name}, scale {scale}", console)
    console.print(f"wrote {out}/{name}.nc, .png and .claims.md")
    return claims


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sweeps", description=sweeps.__doc__)
    parser.add_argument("names", nargs="+", choices=names(), metavar="name", help=", ".join(names()))
    parser.add_argument("--scale", choices=SCALES, default="quick", help="size of the grid (default: quick)")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the results (default: results)")
    arguments = parser.parse_args()
    matplotlib.use("Agg")
    for name in arguments.names:
        run(importlib.import_module(f"sweeps.{name}"), arguments.scale, arguments.out, Console())


if __name__ == "__main__":
    main()
