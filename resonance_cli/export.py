"""`resonance export`: a store as one file, in the format that its name asks for."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from resonance_cli.commands import load_whole
from resonance_cli.printing import say
from resonance_jax.jobs.layout import MISSING

if TYPE_CHECKING:
    import xarray as xr


def export(path: Path, out: Path) -> None:
    if out.suffix not in WRITERS:
        raise ValueError(f"cannot tell the format of {out}; give it one of the endings {', '.join(WRITERS)}")
    whole = load_whole(path)
    data = whole if out.suffix == ".nc" else of_cells(whole)
    partial = out.with_name(f".{out.name}.partial")
    WRITERS[out.suffix](data, partial)
    partial.replace(out)
    say(f"{out}: {' x '.join(f'{n} {name}' for name, n in data.sizes.items())}")
    if missing := int((whole.status == MISSING).sum()):
        say(f"{missing:,} of {whole.status.size:,} cells are not computed yet")
    if left_out := [str(name) for name in whole.data_vars if name not in data]:
        say(f"left out: {', '.join(left_out)}, of more than one number a cell; a file .nc has them")


def of_cells(data: "xr.Dataset") -> "xr.Dataset":
    """The outputs of one number a cell: a table has one row for each cell."""
    return data.drop_dims(set(data.dims) - set(data.status.dims))


def _netcdf(data: "xr.Dataset", out: Path) -> None:
    for name, value in data.attrs.items():
        if not isinstance(value, str | int | float):
            data.attrs[name] = json.dumps(value)
    data.to_netcdf(out, engine="scipy")


def _csv(data: "xr.Dataset", out: Path) -> None:
    data.to_dataframe().reset_index().to_csv(out, index=False)


def _parquet(data: "xr.Dataset", out: Path) -> None:
    try:
        data.to_dataframe().reset_index().to_parquet(out, index=False)
    except ImportError:
        raise ValueError("Parquet needs pyarrow; pip install 'resonance_jax[parquet]', or export to .csv") from None


WRITERS: dict[str, Callable[["xr.Dataset", Path], None]] = {".nc": _netcdf, ".csv": _csv, ".parquet": _parquet}
