"""Where compiled programs are kept on disk, for later processes; JAX's own settings are left alone."""

import contextlib
import os
from pathlib import Path
from typing import Any

import jax

LEAST_SECONDS = 0.5  # programs that compile faster are not stored
MOST_BYTES = 2**30  # of the folder
VARIABLE = "RESONANCE_CACHE"  # environment: a folder, or "off"

_chosen: Path | bool = True


def use_compilation_cache(path: str | os.PathLike[str] | bool = True) -> Path | None:
    """Choose where compiled programs are kept, or keep none.

    They are kept by default, so that the same sweep starts at once in a later process. A program is found by what it
    computes, the versions of JAX, the processor and the device, so an outdated one is never used. The folder holds at
    most 1 GiB; what was not used for the longest time goes first. To empty it, delete it. Like code, take programs only
    from a folder that nobody else can write to. The environment variable
    `RESONANCE_CACHE` names another folder, or turns the cache off with `off`. Where JAX's own cache is set up
    (`jax_compilation_cache_dir`), that one is used, and this one is not.

    Args:
        path: the folder; True: that of the variable or, without it, `resonance_jax` in the user's cache,
            `XDG_CACHE_HOME` or `~/.cache`; False: none.

    Returns:
        The folder; None if programs are not kept.

    >>> print(use_compilation_cache(False))
    None
    >>> folder = use_compilation_cache()  # as it was
    """
    global _chosen  # noqa: PLW0603  one for the process, as the folder is
    _chosen = path if isinstance(path, bool) else Path(path)
    return folder()


def folder() -> Path | None:
    """The folder of the programs; None if they are not kept."""
    config: Any = jax.config
    if config.jax_compilation_cache_dir:  # what JAX loads from there cannot be stored a second time
        return None
    if isinstance(_chosen, Path):
        return _chosen
    named = os.environ.get(VARIABLE, "")
    if not _chosen or named.lower() in ("off", "0", "false"):
        return None
    if named:
        return Path(named)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "resonance_jax"
    except RuntimeError:  # a user without a home, as in some containers
        return None


def make_room(folder: Path, most: int | None = None) -> None:
    """Delete the programs that were not used for the longest time, until the others fit."""
    files = []
    for file in (*folder.glob("*.program"), *folder.glob("*.partial")):  # a killed process leaves half a file
        with contextlib.suppress(OSError):  # another process deleted it
            found = file.stat()
            files.append((found.st_mtime, found.st_size, file))
    left = sum(size for _, size, _ in files)
    for _, size, file in sorted(files):
        if left <= (MOST_BYTES if most is None else most):
            return
        with contextlib.suppress(OSError):
            file.unlink()
        left -= size
