"""Progress of a sweep: a bar on a terminal, a line of JSON for each chunk in the log of a job, or nothing."""

import json
import time
from typing import Any, Self


class Bar:
    """A bar of cells on the terminal, or nothing."""

    def __init__(self, total: int, *, show: bool) -> None:
        self._progress: Any = None
        if show:
            self._progress = _progress()
            self._task = self._progress.add_task("", total=total)

    def say(self, what: str) -> None:
        if self._progress:
            self._progress.update(self._task, description=what)

    def advance(self, cells: int, **facts: Any) -> None:
        if self._progress:
            self._progress.advance(self._task, cells)

    def __enter__(self) -> Self:
        if self._progress:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress:
            self._progress.stop()


def _progress() -> Any:
    """A progress bar that fits into 80 columns."""
    from rich import progress  # slow to import
    from rich.text import Text

    class Rate(progress.ProgressColumn):
        def render(self, task: progress.Task) -> Text:
            return Text(f"{task.speed:,.0f}/s" if task.speed else "")

    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=16),
        progress.MofNCompleteColumn(),
        progress.TextColumn("cells"),
        Rate(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
    )


class Lines:
    """One line of JSON for each chunk, flushed immediately."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._begin = total, 0, time.perf_counter()

    def say(self, what: str) -> None:
        print(json.dumps({"event": what, "cells": self._done, "of": self._total}), flush=True)
        if self._done == 0:
            self._begin = time.perf_counter()

    def advance(self, cells: int, **facts: Any) -> None:
        self._done += cells
        rate = self._done / (time.perf_counter() - self._begin)
        line = {
            "event": "chunk",
            **facts,
            "cells": self._done,
            "of": self._total,
            "cells_per_second": round(rate, 1),
            "seconds_left": round((self._total - self._done) / rate, 1),
        }
        print(json.dumps(line), flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass
