"""Ending a process cleanly on SIGTERM, on Ctrl-C or at a deadline, and never in the middle of a write.

The main thread may be inside a compiler or a kernel for minutes, where Python runs no signal handler. The C handler
still writes the number of the signal into a pipe, and a thread that waits on the pipe ends the process.
"""

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Self

STOPPED = 75  # exit code, EX_TEMPFAIL: no error; run it again to go on
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Guard:
    """A context in which a signal or the deadline ends the process with exit code 75. For scripts, on the main thread.

    Args:
        minutes: until the deadline; None: no deadline.
        remedy: how to go on, the last part of the message.
    """

    def __init__(self, minutes: float | None = None, *, remedy: str = "resume=True goes on.") -> None:
        self.writing = threading.Lock()  # held during a write, which must not be interrupted
        self.farewell: Callable[[str], None] = lambda reason: None  # called with the reason before the process ends
        self._minutes = minutes
        self._remedy = remedy
        self._deadline = None if minutes is None else time.monotonic() + 60 * minutes

    def stop_unless_time_for(self, seconds: float) -> None:
        """End now if work of this many seconds would not finish before the deadline."""
        if self._deadline is not None and time.monotonic() + seconds > self._deadline:
            self._end(f"the next chunk would end after the limit of {self._minutes:g} minutes")

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._old_handlers: dict[int, Any] = {each: signal.signal(each, lambda *_: None) for each in SIGNALS}
        self._old_fd = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._old_fd)
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)
        os.write(self._writer, b"\0")  # no signal has this number
        self._thread.join()
        os.close(self._reader)
        os.close(self._writer)

    def _watch(self) -> None:
        while True:
            left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
            if not select.select([self._reader], [], [], left)[0]:
                self._end(f"the limit of {self._minutes:g} minutes is over")
            number = os.read(self._reader, 1)[0]
            if number == 0:
                return
            if number in SIGNALS:
                self._end(signal.Signals(number).name)

    def _end(self, reason: str) -> None:
        self.writing.acquire()  # and never released: nothing is written after this
        with contextlib.suppress(Exception):
            self.farewell(reason)
            print(f"stopped: {reason}. Finished chunks are kept; {self._remedy}", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(STOPPED)  # a normal exit would wait for the devices, possibly for minutes
