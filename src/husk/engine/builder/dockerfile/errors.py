"""What can be wrong with a Dockerfile, and where in the file it stands."""

import difflib
from collections.abc import Iterable

from msgspec import Struct


class Span(Struct, frozen=True):
    """Lines of the file, counted from one, both included."""

    start: int
    end: int


class DockerfileError(ValueError):
    """Something in a Dockerfile that cannot be built; `span` is known once the line is."""

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span

    def at(self, span: Span) -> "DockerfileError":
        """The same error, with its place unless it has one already."""
        return self if self.span else DockerfileError(self.message, span)

    def __str__(self) -> str:
        if self.span is None:
            return self.message
        return f"dockerfile parse error on line {self.span.start}: {self.message}"


def suggestion(word: str, known: Iterable[str], *, fold_case: bool = True) -> str:
    """` (did you mean X?)` if a known word is one or two letters away, else nothing."""
    candidates = sorted(known)
    looked_for = word.lower() if fold_case else word
    by_form = {(candidate.lower() if fold_case else candidate): candidate for candidate in candidates}
    near = difflib.get_close_matches(looked_for, by_form, n=1, cutoff=0.7)
    return f" (did you mean {by_form[near[0]]}?)" if near else ""
