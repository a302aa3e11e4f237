"""A bar of cells on the terminal, or nothing."""

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class Bar:
    """A bar of cells on the terminal, or nothing."""

    def __init__(self, total: int, show: bool) -> None:
        self._progress = None
        if show:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("cells"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
            )
            self._progress = Progress(*columns)
            self._task = self._progress.add_task("", total=total)

    def say(self, what: str) -> None:
        if self._progress:
            self._progress.update(self._task, description=what)

    def advance(self, cells: int) -> None:
        if self._progress:
            self._progress.advance(self._task, cells)

    def __enter__(self) -> "Bar":
        if self._progress:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress:
            self._progress.stop()
