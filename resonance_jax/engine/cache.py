"""Compiled programs kept on disk, for scripts that run the same sweep again in a new process."""

import os
from pathlib import Path

import jax

LEAST_SECONDS = 0.5  # programs that compile faster are not stored


def use_compilation_cache(path: str | os.PathLike[str] | None = None) -> Path:
    """Store compiled programs in a folder, and reuse those that an earlier process stored there.

    It changes `jax.config` for the whole process; call it before the first sweep. Programs are keyed by their code, the
    version of JAX and the device, so an outdated one is never used. To empty the cache, delete the folder.

    Args:
        path: the folder; None takes that of the environment variable `JAX_COMPILATION_CACHE_DIR` or, without it,
            `resonance_jax` in the user's cache, `XDG_CACHE_HOME` or `~/.cache`.

    Returns:
        The folder.

    >>> import tempfile
    >>> names = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"
    >>> before = {name: getattr(jax.config, name) for name in names}
    >>> use_compilation_cache(tempfile.gettempdir()) == Path(tempfile.gettempdir())
    True
    >>> for name, value in before.items():  # and off again
    ...     jax.config.update(name, value)
    """
    user_cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(path or os.environ.get("JAX_COMPILATION_CACHE_DIR") or user_cache / "resonance_jax")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)
    return folder
