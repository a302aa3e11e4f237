"""Compiled programs, found again by what they compute: in this process, and on disk by later ones.

The key is the program as it is lowered, not the function it was traced from. A cell of a notebook that is run again
defines its functions anew, traces and lowers them anew, and compiles nothing.
"""

import contextlib
import functools
import hashlib
import os
import pickle
import platform
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental import serialize_executable

from resonance_jax.engine import cache
from resonance_jax.engine.arrays import digest_of
from resonance_jax.engine.constants import is_key
from resonance_jax.engine.devices import Device

MOST = 256  # programs in memory
CALLBACK = "callback"  # in the name of a call back to Python, whose text does not say to which function
PATIENCE = 2.0  # seconds of compiling, after which a person is told

_in_memory: OrderedDict[str, Any] = OrderedDict()
_lock = threading.Lock()


class Compiled(NamedTuple):
    executable: Any
    seconds: float  # that compiling or loading took; 0 if it was in memory


def compiled(lowered: Any, *, constants: Iterable[Any], devices: Sequence[Device], what: str) -> Compiled:
    """The executable of a lowered program: from memory, from disk, or from the compiler.

    Args:
        lowered: from `jax.jit(...).lower(...)`.
        constants: small arrays of the program, which its text may leave out.
        devices: that it runs on.
        what: is compiled, for the line that is printed if it takes long.
    """
    text = lowered.as_text()
    begin = time.perf_counter()
    if CALLBACK in text:
        with _told_if_slow(what):
            return Compiled(lowered.compile(), time.perf_counter() - begin)
    key = _key(text, constants, devices)
    with _lock:
        if key in _in_memory:
            _in_memory.move_to_end(key)
            return Compiled(_in_memory[key], 0.0)
    executable = _from_disk(key, devices)
    if executable is None:
        with _told_if_slow(what):
            executable = lowered.compile()
        if time.perf_counter() - begin > cache.LEAST_SECONDS:
            _to_disk(key, executable)
    with _lock:
        _in_memory[key] = executable
        while len(_in_memory) > MOST:
            _in_memory.popitem(last=False)
    return Compiled(executable, time.perf_counter() - begin)


def _key(text: str, constants: Iterable[Any], devices: Sequence[Device]) -> str:
    small = [digest_of(np.asarray(jax.random.key_data(each) if is_key(each) else each)) for each in constants]
    where = [f"{device.platform} {device.device_kind} {device.id}" for device in devices]
    facts = [jax.__version__, version("jaxlib"), os.environ.get("XLA_FLAGS", ""), _processor(), *where, *small, text]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


@functools.cache
def _processor() -> str:
    """What machine code may use: a home folder may be shared by machines of several kinds."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.lower().startswith(("flags", "features")):
                return f"{platform.machine()} {line}"
    return f"{platform.machine()} {platform.processor()} {platform.node()}"


def _from_disk(key: str, devices: Sequence[Device]) -> Any:
    """The executable that an earlier process stored; None if there is none that loads."""
    folder = cache.folder()
    if folder is None:
        return None
    file = folder / f"{key}.program"
    try:
        stored = pickle.loads(file.read_bytes())
        executable = serialize_executable.deserialize_and_load(*stored, execution_devices=list(devices))
        file.touch()  # the least recently used go first
    except Exception:  # half a file, another format, no rights: compiling helps in every case
        return None
    return executable


def _to_disk(key: str, executable: Any) -> None:
    """Store it under another name and rename it, then make room. A disk that is full only means compiling again."""
    folder = cache.folder()
    config: Any = jax.config
    if folder is None or config.jax_use_simplified_jaxpr_constants:  # JAX would leave the constants out
        return
    partial = folder / f"{key}.{os.getpid()}.partial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(pickle.dumps(serialize_executable.serialize(executable)))
        partial.replace(folder / f"{key}.program")
        cache.make_room(folder)
    except Exception:  # not every executable can be serialized
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


@contextlib.contextmanager
def _told_if_slow(what: str) -> Iterator[None]:
    """Tell a person who waits at a terminal or in a notebook what is being compiled."""
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        yield
        return
    timer = threading.Timer(PATIENCE, lambda: print(f"resonance_jax: compiling {what} ...", file=sys.stderr))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
