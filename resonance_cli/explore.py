"""A sweep as a page: read from a store or run from its file, written to HTML or served."""

import sys
from collections.abc import Sequence
from pathlib import Path

import jax

import resonance_jax as rj
from resonance_cli.commands import load_whole
from resonance_cli.printing import say, size
from resonance_cli.values import with_settings
from resonance_jax.explorer.page import Page, require_bokeh
from resonance_jax.jobs import sweepfile


def explore(
    source: Path,
    out: Path | None,
    *,
    live: bool,
    port: int,
    value: str | None,
    x: str | None,
    y: str | None,
    scale: str,
    settings: Sequence[str],
    variant: str | None,
    dtype: str | None,
    cache: bool,
) -> None:
    try:
        require_bokeh()
    except ImportError as error:
        raise ValueError(str(error)) from None
    if source.is_dir():
        if live:
            raise ValueError(f"--live computes runs and needs a sweep file, got the store {source}; give FILE.py")
        if settings or variant or dtype:
            raise ValueError(f"{source} is a store, which is read as it is; --set, --variant and --dtype need FILE.py")
        _write(
            rj.explore(load_whole(source), value=value, x=x, y=y, title=source.stem), out or source.with_suffix(".html")
        )
        return
    rj.use_compilation_cache(cache)
    swept = sweepfile.load(source, variant)
    jax.config.update("jax_enable_x64", (dtype or swept.dtype) == "float64")
    axes = with_settings(swept.axes(scale), settings)
    data = sweepfile.within(source, rj.sweep, swept.point, axes, progress=sys.stderr.isatty())
    title = next(iter(swept.text.splitlines()), source.stem)
    if not live:
        _write(rj.explore(data, value=value, x=x, y=y, title=title), out or source.with_suffix(".html"))
        return
    from resonance_jax.explorer.live import serve

    server = serve(swept.point, axes, data, value=value, x=x, y=y, title=title, port=port)
    say(f"http://localhost:{server.port}: click to compute; Ctrl-C ends it")
    server.run_until_shutdown()


def _write(page: Page, out: Path) -> None:
    page.save(out)
    say(f"{out}: {size(out.stat().st_size)}, opens in any browser")
    if page.left_out:
        say(f"left out, to keep it small: {', '.join(page.left_out)}; rj.explore of a part of the dataset has them")
