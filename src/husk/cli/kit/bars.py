"""Bars of layers at a terminal, by rich, which is loaded for nobody else."""

import sys
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, Task, TaskID, TextColumn
from rich.text import Text

from husk.cli.kit.words import coloured, in_line
from husk.client.progress import BuildProgress, PullProgress

# A line that is longer is cut in pieces.
_LONGEST_LINE = 1 << 16
_DONE = ("Pull complete", "Already exists", "Pushed", "Layer already exists", "Mounted")


class _Amount(DownloadColumn):
    """Bytes of layers, and how many steps of a build are done."""

    def render(self, task: Task) -> Text:
        if not task.fields.get("steps"):
            return super().render(task)
        return Text(f"{int(task.completed)}/{int(task.total or 0)} steps", style="progress.download")


class Bars:
    """A line for each layer with its bar, and what is told of the whole above them."""

    def __init__(self, descriptor: int, console: Console | None = None) -> None:
        stream = sys.stderr if descriptor == 2 else sys.stdout
        self._console = console or Console(file=stream, highlight=False)
        self._progress = Progress(
            # What is told is no markup.
            TextColumn("{task.description}:", markup=False),
            TextColumn("{task.fields[status]:22}", markup=False),
            BarColumn(),
            _Amount(),
            console=self._console,
        )
        self._rows: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def tell(self, step: PullProgress) -> None:
        if not step.id or step.status.startswith("Pulling from"):
            told = f"{step.id}: {step.status}" if step.id else step.status
            self._progress.console.print(in_line(told), markup=False)
            return
        status = in_line(step.status)
        if step.id not in self._rows:
            self._rows[step.id] = self._progress.add_task(in_line(step.id), total=None, status=status)
        row = self._rows[step.id]
        done = step.status.startswith(_DONE)
        self._progress.update(row, status=status)
        if step.total:
            self._progress.update(row, total=step.total, completed=step.current)
        elif done:
            size = self._progress.tasks[self._progress.task_ids.index(row)].total or 1
            self._progress.update(row, total=size, completed=size)


class BuildBars(Bars):
    """The output of a build, and below it a bar of its steps, with those of layers that are on their way."""

    def __init__(self, descriptor: int, console: Console | None = None) -> None:
        super().__init__(descriptor, console)
        self._steps: TaskID | None = None
        self._begun = ""

    def __exit__(self, *_: object) -> None:
        if self._begun:
            self._print(self._begun)
        super().__exit__()

    def step(self, told: BuildProgress) -> None:
        if told.pull is not None:
            self.tell(told.pull)
            return
        if told.step:
            if self._steps is None:
                self._steps = self._progress.add_task("Build", total=told.steps, status="", steps=True)
            self._progress.update(self._steps, total=told.steps, completed=told.step - 1, status=f"step {told.step}")
        if told.image and self._steps is not None:
            total = self._progress.tasks[self._progress.task_ids.index(self._steps)].total
            self._progress.update(self._steps, completed=total, status="done")
        *lines, self._begun = (self._begun + told.text).split("\n")
        for line in lines:
            self._print(line)
        if len(self._begun) > _LONGEST_LINE:
            # A step that never ends its line.
            self._print(self._begun)
            self._begun = ""

    def _print(self, line: str) -> None:
        """Print a line of a step with colours of its own, and without anything else that a terminal obeys."""
        self._progress.console.print(Text.from_ansi(coloured(line.rstrip("\r").rsplit("\r", 1)[-1])), soft_wrap=True)
