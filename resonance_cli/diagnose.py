"""The diagnosis of a file of rows: read, diagnosed, printed, and written into a folder."""

import itertools
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd

import resonance_jax as rj
from resonance_cli.printing import say
from resonance_cli.values import parse_values
from resonance_jax import checks
from resonance_jax.streams import tables
from resonance_jax.streams.diagnosis import Diagnosis
from resonance_jax.streams.large import diagnose_parts
from resonance_jax.theory.recorded.growth import LEAST_PASS
from resonance_jax.theory.recorded.verdicts import NAMES

matplotlib.use("Agg")  # no window on a cluster

COLUMNS = (  # of the table
    "growth_rate",
    "growth_rate_standard_error",
    "shuffled_rate",
    "shuffled_rate_standard_error",
    "expected_rate",
    "rise",
    "verdict",
)
AS_OPTION = ("standardise them, (x - x.mean(0)) / x.std(0)", "add --standardise")


class File(NamedTuple):
    """What is read of a file."""

    path: Path
    features: list[str] | None
    target: str | None

    def pieces(self, rows: int) -> Iterator[tables.Table]:
        return tables.parts(self.path, self.features, self.target, rows=rows)


class Scale(NamedTuple):
    """Mean and standard deviation of each column."""

    mean: np.ndarray
    deviation: np.ndarray


def diagnose(
    path: Path,
    *,
    samples: int,
    features: str | None,
    target: str | None,
    mu: float | None,
    eta: float | None,
    mus: str | None,
    etas: str | None,
    standardise: bool,
    model: bool,
    max_rows: int,
    out: Path,
    force: bool,
    cache: bool,
) -> None:
    plane: dict[str, Any] = dict(mus=_momenta(mus), etas=_step_sizes(etas))
    _check_folder(out, force)
    rj.use_compilation_cache(cache)
    file = File(path, None if features is None else [name.strip() for name in features.split(",")], target)
    at_once = max(samples, max_rows - max_rows % samples)  # so that no step has rows of two parts
    first, *more = itertools.islice(file.pieces(at_once), 2)
    read = _what_is_read(path, first, target)
    say(read)
    with _writing(out):  # now, before minutes are spent on what cannot be written
        out.mkdir(parents=True, exist_ok=True)
    options: dict[str, Any] = dict(samples=samples, mu=mu, eta=eta, model=model, progress=sys.stdout.isatty(), **plane)
    with _warnings_as_lines():
        if more:
            if at_once < LEAST_PASS * samples:
                raise ValueError(
                    f"--max-rows must hold {LEAST_PASS} steps of {samples} rows, got {max_rows}; "
                    f"give at least {LEAST_PASS * samples}"
                )
            say(f"{path} has more than {at_once:,} rows: it is diagnosed in parts of {at_once:,}; see --max-rows.")
            del first, more
            scale = _scale(file.pieces(at_once)) if standardise else None
            found = diagnose_parts((_inputs(piece, scale) for piece in file.pieces(at_once)), **options)
        else:
            scale = _scale([first]) if standardise else None
            found = rj.diagnose(_inputs(first, scale), first.targets, **options)
    print(found)
    facts = dict(file=path.name, columns=read, standardised=int(standardise), samples=samples)
    _write_all(out, found, read, facts)


def _momenta(text: str | None) -> np.ndarray | None:
    if text is None:
        return None
    values = np.unique(parse_values(text, "--mus").astype(float))
    checks.Range("--mus", 0, 1, False, "momentum is the share of the velocity that is kept").check(values)
    return values


def _step_sizes(text: str | None) -> np.ndarray | None:
    if text is None:
        return None
    values = np.unique(parse_values(text, "--etas").astype(float))
    checks.Range("--etas", 0, np.inf, True, "give positive step sizes").check(values)
    return values


def _check_folder(out: Path, force: bool) -> None:
    """ValueError for a file, and for a folder that is not empty."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a folder, {out} is a file; give another --out")
    if not force and out.exists() and any(out.iterdir()):
        raise ValueError(f"{out} is not empty; --force overwrites an earlier diagnosis in it, or give another --out")


def _what_is_read(path: Path, table: tables.Table, target: str | None) -> str:
    parts = [f"input{'s' * (len(table.names) > 1)} {_listed(table.names)}"]
    if target is not None:
        parts.append(f"target {target}")
    if table.left_out:
        parts.append(f"left out, without numbers: {_listed(table.left_out)}")
    return f"{path}: {'; '.join(parts)}"


def _listed(names: tuple[str, ...], most: int = 12) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _inputs(table: tables.Table, scale: Scale | None) -> pd.DataFrame:
    """With their names, which errors then mention."""
    x = table.inputs if scale is None else ((table.inputs - scale.mean) / scale.deviation).astype(np.float32)
    return pd.DataFrame(x, columns=list(table.names), copy=False)


def _scale(pieces: Iterable[tables.Table]) -> Scale:
    """Mean and deviation over all pieces, each shifted by the mean of the first so that no digits are lost."""
    count, shift, names = 0, 0.0, ()
    total = squares = np.zeros(1)
    for piece in pieces:
        x = piece.inputs.astype(float)
        if not count:
            shift, names = x.mean(axis=0), piece.names
        x -= shift
        count, total, squares = count + len(x), total + x.sum(axis=0), squares + (x**2).sum(axis=0)
    mean = total / count
    deviation = np.sqrt(np.maximum(squares / count - mean**2, 0))
    constant = [name for name, each in zip(names, deviation, strict=True) if each == 0]
    if constant:
        raise ValueError(f"column {constant[0]!r} is constant and cannot be standardised; leave it out of --features")
    return Scale(shift + mean, deviation)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """The warning of the library about uneven columns is printed as one line, at once."""
    with warnings.catch_warnings():
        warnings.filterwarnings("always", "columns have deviations")
        warnings.showwarning = lambda message, *_, **__: say(f"warning: {str(message).replace(*AS_OPTION)}")
        yield


# What is written


def _write_all(out: Path, found: Diagnosis, read: str, facts: dict[str, Any]) -> None:
    _write(out / "diagnosis.txt", lambda path: path.write_text(f"{read}\n{found}\n", encoding="utf-8"))
    _write(out / "diagnosis.nc", lambda path: _with_facts(found, facts).to_netcdf(path, engine="scipy"))
    table = found.data[list(COLUMNS)].to_dataframe().reset_index()
    table["verdict"] = [NAMES[int(each)] for each in table["verdict"]]
    _write(
        out / "table.csv",
        lambda path: table[["mu", "eta", *COLUMNS]].to_csv(path, index=False, float_format="%.9g"),
    )
    _write(out / "diagnosis.png", lambda path: found.plot().savefig(path, dpi=150, format="png"))
    say(f"{out}: diagnosis.txt, diagnosis.png, diagnosis.nc, table.csv")


def _with_facts(found: Diagnosis, facts: dict[str, Any]) -> Any:
    """The dataset with the rest of the diagnosis as attributes; NetCDF knows texts and numbers only."""
    attrs = facts | {"stream": found.what, "verdict": found.verdict, "resonance_jax": rj.__version__}
    if found.mu is not None and found.eta is not None:
        attrs |= {"mu": found.mu, "eta": found.eta, "own_setting": int(found.own)}
    if found.returns_at is not None:
        attrs["returns_at"] = found.returns_at
    return found.data.assign_attrs(
        attrs | {f"remedy_{each.name.replace(' ', '_')}": each.value for each in found.remedies}
    )


def _write(path: Path, write: Callable[[Path], Any]) -> None:
    """A file is there whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    with _writing(path):
        write(partial)
        partial.replace(path)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn errors of the disk into one ValueError that names the file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(f"cannot write {path}: {reason}; make room or give another --out") from error
