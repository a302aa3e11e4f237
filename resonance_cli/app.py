"""The commands of `resonance` and their help. Their implementation is imported when they are called."""

import functools
import os
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    help="Sweeps over SGD with momentum on drifting data, as jobs that never lose finished work.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

BAD_INPUT = 2  # exit code
BEGAN = time.perf_counter()


class Notion(StrEnum):
    mean = "mean"
    mean_square = "mean-square"
    almost_sure = "almost-sure"


class Dtype(StrEnum):
    float32 = "float32"
    float64 = "float64"


SweepPath = Annotated[Path, typer.Argument(metavar="FILE.py", help="Python file with `point` and `axes`.")]
StorePath = Annotated[Path, typer.Argument(metavar="DIR.zarr", help="Store that `resonance run` wrote.")]
Scale = Annotated[str, typer.Option(help="Passed to axes(scale) of the file.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUES",
        help="Values of an axis: 0.9,0.99 or 0:0.05:100 (100 from 0 to 0.05) or 0..9 (whole numbers). Repeatable.",
    ),
]
Variant = Annotated[str | None, typer.Option(help="One of the VARIANTS of the file.")]
ShardOption = Annotated[
    str, typer.Option("--shard", metavar="i/n", help="Compute the i-th of n shards, i from 1: one job of an array.")
]
Devices = Annotated[int | None, typer.Option(min=1, help="Devices that share a chunk; all local ones by default.")]
Chunk = Annotated[
    int | None, typer.Option(min=1, help="Largest number of cells in a chunk; by default a twentieth of the grid.")
]
DtypeOption = Annotated[Dtype | None, typer.Option(help="Precision; by default that of the file, or float32.")]
Cache = Annotated[bool, typer.Option("--cache/--no-cache", help="Keep compiled programs in the user's cache.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]


AS_OPTIONS = {  # what the library calls its arguments -> what they are on the command line
    "resume=True": "--resume",
    "chunk=": "--chunk ",
    "shard must be": "--shard must be",
    "another store": "another --out",
    "columns must": "--features must",
    "target must": "--target must",
}


def one_line(command: Callable[..., None]) -> Callable[..., None]:
    """Errors that the user can fix are printed as one line on stderr, with exit code 2 and no traceback."""

    @functools.wraps(command)
    def guarded(*arguments: Any, **named: Any) -> None:
        try:
            command(*arguments, **named)
        except (ValueError, MemoryError) as error:
            message = " ".join(str(error).split())
            for argument, option in AS_OPTIONS.items():
                message = message.replace(argument, option)
            _fail(message)
        except OSError as error:
            where, what = error.filename or "to the disk", error.strerror or error
            _fail(f"cannot write {where}: {what}; finished chunks are kept, fix the problem and rerun with --resume")

    return guarded


def _fail(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    raise typer.Exit(BAD_INPUT)


def _print_version(asked: bool) -> None:
    if asked:
        from resonance_jax._version import __version__

        print(f"resonance_jax {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
@one_line
def init(
    out: Annotated[Path, typer.Argument(metavar="FILE.py", help="Sweep file to write.")] = Path("my_sweep.py"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
) -> None:
    """Write a commented sweep file that runs, to begin with.

    \b
    resonance init my_sweep.py
    resonance run my_sweep.py --out my.zarr
    """
    from resonance_cli.starter import init

    init(out, force)


@app.command()
@one_line
def run(
    file: SweepPath,
    out: Annotated[Path, typer.Option(metavar="DIR.zarr", help="Store for the results.")],
    scale: Scale = "quick",
    settings: Settings = None,
    variant: Variant = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the store if it exists.")] = False,
    shard: ShardOption = "1/1",
    devices: Devices = None,
    chunk: Chunk = None,
    max_minutes: Annotated[float | None, typer.Option(min=0, help="Stop after this time with exit code 75.")] = None,
    dtype: DtypeOption = None,
    cache: Cache = True,
    distributed: Annotated[
        bool, typer.Option("--distributed", help="Start jax.distributed; SLURM and Open MPI are detected.")
    ] = False,
    coordinator: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Address of the first process, if no scheduler is detected.")
    ] = None,
    num_processes: Annotated[int | None, typer.Option(min=1, help="With --coordinator.")] = None,
    process_id: Annotated[int | None, typer.Option(min=0, help="With --coordinator, from 0.")] = None,
) -> None:
    """Run a sweep file into a store, chunk after chunk.

    \b
    resonance run my_sweep.py --out my.zarr
    resonance run my_sweep.py --set mu=0.9:0.999:50 --set seed=0..9 --out my.zarr --resume
    resonance run my_sweep.py --out my.zarr --shard $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT --resume

    \b
    Exit code 0: all chunks of this shard are stored. 75: stopped by SIGTERM, Ctrl-C or
    --max-minutes; rerun with --resume. 2: bad input, explained in one line.
    """
    from resonance_cli import commands

    commands.run(
        file,
        out,
        scale=scale,
        settings=settings or [],
        variant=variant,
        resume=resume,
        shard=shard,
        devices=devices,
        chunk=chunk,
        max_minutes=max_minutes,
        dtype=dtype,
        cache=cache,
        cluster=commands.Cluster(distributed, coordinator, num_processes, process_id),
    )


@app.command()
@one_line
def plan(
    file: SweepPath,
    scale: Scale = "quick",
    settings: Settings = None,
    variant: Variant = None,
    shard: ShardOption = "1/1",
    devices: Devices = None,
    chunk: Chunk = None,
    dtype: DtypeOption = None,
    cache: Cache = True,
    as_json: AsJson = False,
) -> None:
    """Estimate what a run would take, without running it.

    Cells, chunks, memory and time, measured on one to three chunks.

    \b
    resonance plan my_sweep.py --scale paper
    resonance plan my_sweep.py --chunk 10000 --shard 1/8
    """
    from resonance_cli import commands

    commands.plan(
        file,
        scale=scale,
        settings=settings or [],
        variant=variant,
        shard=shard,
        devices=devices,
        chunk=chunk,
        dtype=dtype,
        cache=cache,
        as_json=as_json,
        began=BEGAN,
    )


@app.command()
@one_line
def status(store: StorePath, as_json: AsJson = False) -> None:
    """Show how much of a store is finished, and whether a job is at work on it.

    Chunks done, missing and damaged, cells by status, the jobs that wrote to it (running, finished, stopped, failed or
    killed), and an estimate of the time left.

    \b
    resonance status my.zarr
    """
    from resonance_cli.status import status

    status(store, as_json)


@app.command()
@one_line
def export(
    store: StorePath,
    out: Annotated[Path, typer.Argument(metavar="OUT.nc|.csv|.parquet", help="File to write.")],
) -> None:
    """Write a store as one file: NetCDF, CSV or Parquet, by its ending.

    Cells that are not computed yet are NaN. A table has one row for each cell.

    \b
    resonance export my.zarr my.nc
    resonance export my.zarr my.csv
    """
    from resonance_cli.export import export

    export(store, out)


@app.command()
@one_line
def plot(
    store: StorePath,
    out: Annotated[Path | None, typer.Option(metavar="OUT.png", help="Picture; by default beside the store.")] = None,
    file: Annotated[Path | None, typer.Option(metavar="FILE.py", help="Sweep file whose `figure` draws it.")] = None,
    output: Annotated[str | None, typer.Option(help="Output to draw, without --file.")] = None,
    x: Annotated[str | None, typer.Option("--x", metavar="AXIS", help="Horizontal axis.")] = None,
    y: Annotated[str | None, typer.Option("--y", metavar="AXIS", help="Vertical axis.")] = None,
    col: Annotated[str | None, typer.Option(metavar="AXIS", help="A column of panels for each value.")] = None,
    row: Annotated[str | None, typer.Option(metavar="AXIS", help="A row of panels for each value.")] = None,
    sel: Annotated[
        list[str] | None,
        typer.Option(metavar="AXIS=VALUE", help="Draw this value of an axis, the nearest one; may be repeated."),
    ] = None,
) -> None:
    """Draw the finished part of a store.

    With the `figure` of a sweep file, or a plain picture: over the last axes, mean over seeds, panels over the others.

    \b
    resonance plot my.zarr --output growth_rate
    resonance plot my.zarr --x f --y mu --col eta --sel samples=1
    resonance plot my.zarr --file my_sweep.py --out heat.png
    """
    from resonance_cli import commands

    commands.plot(store, out, file, output, dict(x=x, y=y, col=col, row=row), sel or ())


@app.command()
@one_line
def explore(
    source: Annotated[
        Path, typer.Argument(metavar="DIR.zarr|FILE.py", help="Store to read, or sweep file to run in memory.")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="PAGE.html", help="Page to write; by default beside the store or file.")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Serve the page on this machine; a click computes the run there.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --live; 0 takes any that is free.")] = 5006,
    value: Annotated[str | None, typer.Option(help="Output that is drawn first.")] = None,
    x: Annotated[str | None, typer.Option(help="Horizontal axis.")] = None,
    y: Annotated[str | None, typer.Option(help="Vertical axis.")] = None,
    scale: Scale = "quick",
    settings: Settings = None,
    variant: Variant = None,
    dtype: DtypeOption = None,
    cache: Cache = True,
) -> None:
    """Make a page on which a sweep can be explored.

    One HTML file that works without a network: a heatmap, and for each clicked cell its run, its rates and a verdict.

    \b
    resonance explore heat.zarr --out heat.html
    resonance explore my_sweep.py --set eta=0.001,0.01 --out my.html
    resonance explore my_sweep.py --live
    """
    from resonance_cli.explore import explore

    explore(
        source,
        out,
        live=live,
        port=port,
        value=value,
        x=x,
        y=y,
        scale=scale,
        settings=settings or [],
        variant=variant,
        dtype=dtype,
        cache=cache,
    )


@app.command()
@one_line
def chart(
    out: Annotated[Path, typer.Option(metavar="OUT.png|OUT.nc", help="Picture, or dataset.")] = Path("chart.png"),
    f: Annotated[
        str | None,
        typer.Option(metavar="VALUES", help="Frequencies, 1 / steps; by default up to the first tongue."),
    ] = None,
    mu: Annotated[
        str | None, typer.Option(metavar="VALUES", help="Momenta; by default from below the first growth to 0.999.")
    ] = None,
    eta: Annotated[float, typer.Option(help="Step size.")] = 0.01,
    amplitude: Annotated[float, typer.Option(help="Of the sinusoidal mean of the inputs.")] = 0.5,
    input_variance: Annotated[float, typer.Option(help="Of the inputs around their mean.")] = 1.0,
    notion: Annotated[
        Notion, typer.Option(help="What grows: the mean, the mean square over runs, or a typical run.")
    ] = Notion.mean,
    samples: Annotated[int, typer.Option(min=1, help="Per step; the mean does not depend on it.")] = 20,
    nesterov: Annotated[bool, typer.Option("--nesterov", help="Nesterov's momentum instead of heavy ball.")] = False,
) -> None:
    """Draw a stability chart of the theory.

    Growth per step under a sinusoidal mean, over frequency and momentum. Also says up to which momentum no frequency
    grows, inside the chart or not.

    \b
    resonance chart --eta 0.005 --mu 0.9:0.999:200 --out chart.png
    resonance chart --notion mean-square --samples 1 --out noise.png
    resonance chart --nesterov --out nesterov.png
    """
    from resonance_cli.chart import chart

    chart(out, f, mu, eta, amplitude, input_variance, notion.value, samples, nesterov)


@app.command()
@one_line
def diagnose(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Rows in time order: .csv, .tsv, .txt, .npy, .npz, .parquet or .zarr."),
    ],
    samples: Annotated[int, typer.Option(min=1, help="Consecutive rows of a step: the batch size.")],
    features: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Columns of the inputs: a,b. By default all with numbers but the target."),
    ] = None,
    target: Annotated[str | None, typer.Option(metavar="NAME", help="Column of the targets.")] = None,
    mu: Annotated[float | None, typer.Option(help="Your momentum; by default that which the order harms most.")] = None,
    eta: Annotated[
        float | None, typer.Option(help="Your step size; by default that which the order harms most.")
    ] = None,
    mus: Annotated[
        str | None, typer.Option(metavar="VALUES", help="Momenta to look at, e.g. 0.9:0.99:10; by default 0 to 0.999.")
    ] = None,
    etas: Annotated[
        str | None, typer.Option(metavar="VALUES", help="Step sizes to look at; by default four decades of them.")
    ] = None,
    standardise: Annotated[
        bool, typer.Option("--standardise", help="Scale each input to mean 0 and variance 1 over the file.")
    ] = False,
    model: Annotated[
        bool, typer.Option("--model/--no-model", help="Fit a model of the stream and ask theory about it.")
    ] = True,
    max_rows: Annotated[
        int, typer.Option(min=1, help="Rows that are held in memory; longer files are diagnosed in parts.")
    ] = 1_000_000,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results.")] = Path("diagnosis"),
    force: Annotated[bool, typer.Option("--force", help="Write even if the folder is not empty.")] = False,
    cache: Cache = True,
) -> None:
    """Tell whether momentum diverges on your data, what is to blame, and what is safe.

    Rows are taken as they are, in time order and shuffled, over a plane of momentum and step size. Prints the diagnosis
    and writes diagnosis.txt, diagnosis.png, diagnosis.nc and table.csv, with one line for each setting.

    \b
    resonance diagnose data.csv --target y --samples 16 --mu 0.99 --eta 0.01
    resonance diagnose data.parquet --features a,b --samples 1 --standardise --out found
    """
    from resonance_cli.diagnose import diagnose

    diagnose(
        file,
        samples=samples,
        features=features,
        target=target,
        mu=mu,
        eta=eta,
        mus=mus,
        etas=etas,
        standardise=standardise,
        model=model,
        max_rows=max_rows,
        out=out,
        force=force,
        cache=cache,
    )


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    options_metavar="[NAME[:VARIANT] ...] [OPTIONS]",
)
@one_line
def paper(context: typer.Context) -> None:
    """Run the paper's experiments: figures, and each statement beside its number.

    All of them and a report without further arguments, about ten minutes on two cores; `resonance paper --help` shows
    the options, the same as of `python -m sweeps` in a clone.

    \b
    resonance paper --out results
    resonance paper exp1_sinusoid --scale tiny
    """
    from sweeps.__main__ import main

    raise typer.Exit(main(context.args, prog="resonance paper"))


@app.command()
@one_line
def doctor() -> None:
    """Check this machine.

    Shows versions and devices, and checks in about ten seconds that it computes, stores and resumes correctly.
    """
    from resonance_cli.doctor import examine

    if not examine():
        raise typer.Exit(1)


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # no log lines of XLA
    app(prog_name="resonance")
