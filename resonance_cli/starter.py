"""`resonance init`: a sweep file to begin with."""

from importlib import resources
from pathlib import Path

from resonance_cli.printing import say

TEMPLATE = "my_sweep.py"


def init(out: Path, force: bool) -> None:
    if out.exists() and not force:
        raise ValueError(f"{out} exists; give another name, or --force to overwrite it")
    out.write_text(resources.files("resonance_cli").joinpath(TEMPLATE).read_text(encoding="utf-8"), encoding="utf-8")
    say(f"{out}: a sweep that runs; `resonance run {out} --out {out.with_suffix('.zarr')}`, then change it")
