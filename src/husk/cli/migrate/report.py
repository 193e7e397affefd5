"""Reports of a migration's progress: a bar at a terminal, by rich; in a pipe a line for each thing that is done."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

from husk.cli.kit.words import in_line
from husk.cli.kit.writing import at_terminal, say


def _bar() -> Progress:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
    return Progress(*columns, console=Console(highlight=False))


class MigrationReport:
    """`begin` a thing, `advance` it by bytes, then it is `done`, `skipped` or `failed`, which is counted, as are
    containers of which something is `lost`."""

    def __init__(self) -> None:
        self.failures = 0
        self.losses = 0
        self._progress = _bar() if at_terminal() else None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def begin(self, what: str, size: int = 0) -> None:
        if self._progress is not None:
            self._end()
            self._task = self._progress.add_task(in_line(what), total=size or None)

    def advance(self, size: int) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task, size)

    def done(self, what: str) -> None:
        self._say(what)

    def skipped(self, what: str, why: str) -> None:
        self._say(f"{what}: {why}")

    def failed(self, what: str, why: str) -> None:
        self.failures += 1
        self._say(f"{what}: FAILED: {why}")

    def lost(self, name: str, settings: Sequence[str]) -> None:
        self.losses += 1
        self._say(f"{name}: not carried: {', '.join(settings)}")

    def _say(self, text: str) -> None:
        self._end()
        if self._progress is not None:
            self._progress.console.print(in_line(text), markup=False)
        else:
            say(in_line(text))

    def _end(self) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None
