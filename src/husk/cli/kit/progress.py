"""Reports of pulls, pushes and builds as they go on: bars at a terminal, lines in a pipe, documents with --json."""

from typing import Protocol, Self

from husk.cli.kit.words import visible
from husk.cli.kit.writing import at_terminal, line, write
from husk.client.progress import BuildProgress, PullProgress


class Teller(Protocol):
    """Told of each step, inside its block."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def tell(self, step: PullProgress) -> None: ...


class Silence:
    """Nothing is told."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def tell(self, step: PullProgress) -> None:
        return


class Documents(Silence):
    """One line of JSON for each step."""

    def tell(self, step: PullProgress) -> None:
        known = {"Id": step.id, "Status": step.status, "Current": step.current, "Total": step.total}
        line({name: value for name, value in known.items() if value})


class BuildTeller(Protocol):
    """Told of each step of a build, inside its block."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def step(self, told: BuildProgress) -> None: ...


class BuildSilence(Silence):
    """Nothing is told of a build."""

    def step(self, told: BuildProgress) -> None:
        return


class BuildDocuments(Documents):
    """One line of JSON for each line that a build tells."""

    def step(self, told: BuildProgress) -> None:
        if told.text:
            known = {"Text": told.text, "Step": told.step, "Steps": told.steps}
            line({name: value for name, value in known.items() if value})
        if told.pull is not None and not told.pull.total:
            self.tell(told.pull)


class PlainLines(Silence):
    """Plain lines, without those that only tell how far something is."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def tell(self, step: PullProgress) -> None:
        if not step.current and not step.total:
            told = f"{step.id}: {step.status}" if step.id else step.status
            write(self._descriptor, f"{visible(told)}\n".encode())


class BuildLines(PlainLines):
    """The output of a build, as it is, and lines about its base images."""

    def step(self, told: BuildProgress) -> None:
        if told.text:
            write(self._descriptor, told.text.encode(errors="surrogateescape"))
        if told.pull is not None:
            self.tell(told.pull)


def build_teller(descriptor: int, as_json: bool = False, quiet: bool = False) -> BuildTeller:
    """Choose the teller of a build: documents, silence, lines, or bars at a terminal."""
    if as_json:
        return BuildDocuments()
    if quiet:
        return BuildSilence()
    if not at_terminal(descriptor):
        return BuildLines(descriptor)
    # A door: rich, which only a terminal wants.
    from husk.cli.kit.bars import BuildBars

    return BuildBars(descriptor)


def teller(descriptor: int, as_json: bool = False) -> Teller:
    """Choose the teller on stdout (1) or stderr (2): documents, lines, or bars at a terminal."""
    if as_json:
        return Documents()
    if not at_terminal(descriptor):
        return PlainLines(descriptor)
    # A door: rich, which only a terminal wants.
    from husk.cli.kit.bars import Bars

    return Bars(descriptor)
