"""Shell patterns in `${name#pattern}` and its relatives: `*`, `?` and escapes, without brackets.

A pattern is a list of pieces between its stars. Pieces are looked for one after the other, so that matching takes time
in proportion to the text, whatever the pattern: a regular expression of the same meaning can take exponential time.
"""

import re

from husk.builder.dockerfile.errors import DockerfileError

ESCAPABLE = "*?\\"


class Pattern:
    def __init__(self, source: str) -> None:
        self._pieces = [re.compile(piece) for piece in _pieces(source)]

    def prefix(self, text: str, *, longest: bool) -> int | None:
        """Return the end of the shortest or longest start of `text` that matches; None if none does."""
        first = self._pieces[0].match(text)
        return None if first is None else self._end(text, first.end(), longest=longest)

    def find(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """The leftmost match from `start` on, as long as possible."""
        position = start
        while first := self._pieces[0].search(text, position):
            end = self._end(text, first.end(), longest=True)
            if end is not None:
                return first.start(), end
            # What is missing further right in this line is missing behind every later place in it, too.
            line_end = text.find("\n", first.end())
            if line_end < 0:
                return None
            position = line_end + 1
        return None

    def _end(self, text: str, position: int, *, longest: bool) -> int | None:
        if len(self._pieces) == 1:
            return position
        # No star reaches over the end of a line.
        limit = text.find("\n", position)
        limit = len(text) if limit < 0 else limit
        for piece in self._pieces[1:-1]:
            found = piece.search(text, position, limit)
            if found is None:
                return None
            position = found.end()
        last = self._pieces[-1]
        if not longest:
            found = last.search(text, position, limit)
            return found.end() if found else None
        return _last_end(last, text, position, limit)


def _last_end(piece: re.Pattern[str], text: str, start: int, limit: int) -> int | None:
    for position in range(limit, start - 1, -1):
        found = piece.match(text, position, limit)
        if found:
            return found.end()
    return None


def _pieces(source: str) -> list[str]:
    pieces = [""]
    position = 0
    while position < len(source):
        letter = source[position]
        position += 1
        if letter == "*":
            pieces.append("")
        elif letter == "?":
            pieces[-1] += "."
        elif letter == "\\":
            letter = source[position : position + 1]
            position += 1
            # A brace or slash is escaped for the sake of ${...} around it.
            if letter not in ("}", "/") and (letter == "" or letter not in ESCAPABLE):
                raise DockerfileError(f"invalid pattern ({source}) in substitution: invalid escape '\\{letter}'")
            pieces[-1] += re.escape(letter)
        else:
            pieces[-1] += re.escape(letter)
    return pieces


def without_prefix(text: str, pattern: str, *, longest: bool) -> str:
    end = Pattern(pattern).prefix(text, longest=longest)
    return text if end is None else text[end:]


def without_suffix(text: str, pattern: str, *, longest: bool) -> str:
    """A suffix is a prefix of everything read backwards."""
    end = Pattern(_backwards(pattern)).prefix(text[::-1], longest=longest)
    return text if end is None else text[: len(text) - end]


def replaced(text: str, pattern: str, replacement: str, *, everywhere: bool) -> str:
    compiled = Pattern(pattern)
    parts: list[str] = []
    copied = position = 0
    while position <= len(text) and (found := compiled.find(text, position)):
        start, end = found
        # Nothing is found a second time right behind what was found.
        if end > start or start > copied or not parts:
            parts += [text[copied:start], replacement]
            copied = end
        position = end if end > start else end + 1
        if not everywhere:
            break
    return "".join([*parts, text[copied:]])


def _backwards(pattern: str) -> str:
    """The pattern for the reversed text: an escape still stands before what it escapes."""
    tokens = re.findall(r"\\.|.", pattern, re.DOTALL)
    return "".join(reversed(tokens))
