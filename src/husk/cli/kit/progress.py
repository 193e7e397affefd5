"""What pulls and pushes tell as they go on: bars at a terminal, plain lines in a pipe, documents with --json."""

from typing import TYPE_CHECKING, Protocol, Self

from husk.cli.kit.writing import at_terminal, line, write

if TYPE_CHECKING:
    from husk.client.progress import PullProgress


class Teller(Protocol):
    """Told of each step, inside its block."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def tell(self, step: "PullProgress") -> None: ...


class Silence:
    """Nothing is told."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def tell(self, step: "PullProgress") -> None:
        return


class Documents(Silence):
    """One line of JSON for each step."""

    def tell(self, step: "PullProgress") -> None:
        known = {"Id": step.id, "Status": step.status, "Current": step.current, "Total": step.total}
        line({name: value for name, value in known.items() if value})


class Lines(Silence):
    """Plain lines, without those that only tell how far something is."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def tell(self, step: "PullProgress") -> None:
        if not step.current and not step.total:
            told = f"{step.id}: {step.status}" if step.id else step.status
            write(self._descriptor, f"{told}\n".encode())


def teller(descriptor: int, as_json: bool = False) -> Teller:
    """How it is told on stdout (1) or stderr (2)."""
    if as_json:
        return Documents()
    if not at_terminal(descriptor):
        return Lines(descriptor)
    from husk.cli.kit.bars import Bars

    return Bars(descriptor)
