"""The errors of Dockerfiles, and the places in the file where they stand."""

from collections.abc import Iterable, Sequence

from husk.builder.dockerfile.rules import Span, Warning

_FAR = 3
# What is told of a text that is longer: people read the beginning.
_LONGEST_MESSAGE = 4096
# Among so many names nobody looks for one that may have been meant.
_MOST_NAMES = 300


class DockerfileError(ValueError):
    """Something in a Dockerfile that cannot be built; `span` is known once the line is.

    A line that cannot be read says so, as BuildKit does. All else is told by what it is (`plain`, if it is found while
    a line is read): clients show the lines.
    """

    def __init__(
        self, message: str, span: Span | None = None, *, unreadable: bool = False, plain: bool = False
    ) -> None:
        message = shortened(message)
        super().__init__(message)
        self.message = message
        self.span = span
        self.warnings: Sequence[Warning] = ()  # of the file, where they are known
        self._unreadable = unreadable and not plain
        self._plain = plain

    def at(self, span: Span, *, unreadable: bool = False) -> "DockerfileError":
        """The same error, with its place unless it has one already."""
        return self if self.span else DockerfileError(self.message, span, unreadable=unreadable, plain=self._plain)

    def __str__(self) -> str:
        if self.span is None or not self._unreadable:
            return self.message
        return f"dockerfile parse error on line {self.span.start}: {self.message}"


def shortened(message: str) -> str:
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}..."


def suggestion(word: str, known: Iterable[str], *, fold_case: bool = True) -> str:
    """` (did you mean X?)` if a known word is one or two letters away, else nothing."""
    known = set(known)
    if len(known) > _MOST_NAMES:
        return ""
    fold = str.lower if fold_case else str
    near = [(_distance(fold(word), fold(candidate)), candidate) for candidate in sorted(known)]
    distance, candidate = min(near, default=(_FAR, ""))
    return f" (did you mean {candidate}?)" if distance < _FAR and candidate != word else ""


def _distance(first: str, second: str) -> int:
    """Count the letters to add, drop or change (Levenshtein's distance), up to `_FAR`: whatever is further from the
    diagonal of the table than that is not looked at."""
    if abs(len(first) - len(second)) >= _FAR:
        return _FAR
    row = dict(enumerate(range(_FAR)))
    for number, letter in enumerate(first, 1):
        above, row = row, {}
        for place in range(max(0, number - _FAR + 1), min(len(second), number + _FAR - 1) + 1):
            near = min(above.get(place, _FAR), row.get(place - 1, _FAR)) + 1
            if place:
                near = min(near, above.get(place - 1, _FAR) + (letter != second[place - 1]))
            row[place] = near
        if min(row.values()) >= _FAR:
            return _FAR
    return min(row[len(second)], _FAR)
