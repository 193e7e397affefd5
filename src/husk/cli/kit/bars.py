"""Bars of layers at a terminal, by rich, which is loaded for nobody else."""

import sys
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

if TYPE_CHECKING:
    from husk.client.progress import PullProgress

_DONE = ("Pull complete", "Already exists", "Pushed", "Layer already exists", "Mounted")


class Bars:
    """A line for each layer with its bar, and what is told of the whole above them."""

    def __init__(self, descriptor: int, console: Console | None = None) -> None:
        stream = sys.stderr if descriptor == 2 else sys.stdout
        self._console = console or Console(file=stream, highlight=False)
        self._progress = Progress(
            TextColumn("{task.description}:"),
            TextColumn("{task.fields[status]:22}"),
            BarColumn(),
            DownloadColumn(),
            console=self._console,
        )
        self._rows: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def tell(self, step: "PullProgress") -> None:
        if not step.id or step.status.startswith("Pulling from"):
            told = f"{step.id}: {step.status}" if step.id else step.status
            self._progress.console.print(told, markup=False)
            return
        if step.id not in self._rows:
            self._rows[step.id] = self._progress.add_task(step.id, total=None, status=step.status)
        row = self._rows[step.id]
        done = step.status.startswith(_DONE)
        self._progress.update(row, status=step.status)
        if step.total:
            self._progress.update(row, total=step.total, completed=step.current)
        elif done:
            size = self._progress.tasks[self._progress.task_ids.index(row)].total or 1
            self._progress.update(row, total=size, completed=size)
