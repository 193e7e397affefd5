"""Patterns of paths as `.dockerignore`, `--exclude` and wildcards have them.

`*`, `?` and `[a-z]` match within one part of a path, `**` over any number of parts. In a list of patterns `!` brings
back what an earlier one took, and the last that matches decides. What lies below a directory that matches, matches too.
"""

import re
from collections.abc import Iterable

BOUNDARY = r"(?=/|\Z)"  # the path itself, or anything below it
MOST_STARS = 4
_PARTS = re.compile(r"(?:\\.|[^/\\]|\\$)+")


class BadPattern(ValueError):
    """A pattern that means nothing."""


class Patterns:
    """Decides about paths, which are relative and have no leading slash."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._rules: list[tuple[bool, re.Pattern[str]]] = []
        for pattern in patterns:
            negated = pattern.startswith("!")
            bare = pattern[negated:]
            if negated and not bare.strip("/"):
                raise BadPattern('illegal exclusion pattern: "!"')
            if bare != ".":
                self._rules.append((negated, _compile(bare)))
        self.brings_back = any(negated for negated, _ in self._rules)

    def matches(self, path: str) -> bool:
        matched = False
        for negated, rule in self._rules:
            # Asking is dear; what would change nothing is not asked.
            if negated is matched and rule.match(path):
                matched = not negated
        return matched


def name_pattern(part: str) -> re.Pattern[str]:
    """Matches one whole name."""
    try:
        return re.compile(_part(part) + r"\Z", re.DOTALL)
    except re.error as error:
        raise BadPattern(f'syntax error in pattern "{part}": {error}') from None


def has_wildcards(part: str) -> bool:
    """Tell if there is a `*`, `?` or `[` that is not escaped."""
    return re.search(r"[*?[]", re.sub(r"\\.", "", part, flags=re.DOTALL)) is not None


def _compile(pattern: str) -> re.Pattern[str]:
    parts = _PARTS.findall(pattern)
    if any("**" in part and part != "**" for part in parts):
        if pattern.count("*") > MOST_STARS:
            raise BadPattern(
                f'the pattern "{pattern}" has more than {MOST_STARS} stars beside a "**" that is no part of its own'
            )
        source = _free_form(pattern)
    else:
        source = _by_parts(parts)
    try:
        return re.compile(source + BOUNDARY, re.DOTALL)
    except re.error as error:
        raise BadPattern(f'syntax error in pattern "{pattern}": {error}') from None


def _by_parts(parts: list[str]) -> str:
    """`**` stands for any number of whole parts.

    What comes after one is looked for at the first place that fits, and nowhere else (an atomic group): what lies
    behind it is matched as well as it would be behind a later one. So a hostile pattern cannot make matching slow.
    """
    runs: list[list[str]] = [[]]
    for part in parts:
        if part == "**":
            runs.append([])
        else:
            runs[-1].append(_part(part))
    source = "/".join(runs[0])
    for position, run in enumerate(runs[1:], 1):
        if position == 1 and runs[0]:
            source += "/"
        if run:
            follows = position + 1 < len(runs)
            source += f"(?>(?:[^/]*/)*?{'/'.join(run)}{'/' if follows else BOUNDARY})"
        elif position + 1 == len(runs):
            source += ".*"
    return source


def _part(part: str) -> str:
    """One part of a path. Between stars the first place that fits is as good as any other."""
    first, *others = ["".join(piece) for piece in _pieces(part)]
    if not others:
        return first
    *middle, last = others
    return first + "".join(f"(?>[^/]*?{piece})" for piece in middle) + f"[^/]*{last}"


def _free_form(pattern: str) -> str:
    """`a**b`: not whole parts, so every place has to be tried."""
    source = ""
    for number, run in enumerate(pattern.split("**")):
        source += ("(?:.*/)?" if number else "") + "[^/]*".join(
            "".join(piece) for piece in _pieces(run.removeprefix("/"))
        )
    return source.removesuffix("(?:.*/)?") + ".*" if pattern.endswith("**") else source


def _pieces(text: str) -> list[list[str]]:
    """Regular expressions for what lies between the stars."""
    pieces: list[list[str]] = [[]]
    position = 0
    while position < len(text):
        letter = text[position]
        position += 1
        if letter == "*":
            pieces.append([])
        elif letter == "?":
            pieces[-1].append("[^/]")
        elif letter == "[":
            source, position = _class(text, position)
            pieces[-1].append(source)
        elif letter == "\\":
            if position == len(text):
                raise BadPattern(f'syntax error in pattern "{text}": nothing follows the escape')
            pieces[-1].append(re.escape(text[position]))
            position += 1
        else:
            pieces[-1].append(re.escape(letter))
    return pieces


def _class(text: str, position: int) -> tuple[str, int]:
    """`[a-z]`, `[^a-z]`; never a slash."""
    end = position
    while end < len(text) and text[end] != "]":
        end += 2 if text[end] == "\\" else 1
    content = text[position:end]
    negated = content.startswith("^")
    if end >= len(text) or len(content) == negated:
        raise BadPattern(f'syntax error in pattern "{text}": a bracket is not closed or empty')
    # Two of some signs are to mean something in a later Python; of two hyphens the first one makes a range.
    escaped = re.sub(
        r"\\(.)|([\[\]&~|]|(?<=[^\\]-)-)", lambda found: re.escape(found[1] or found[2]), content[negated:]
    )
    return f"(?!/)[{'^' if negated else ''}{escaped}]", end + 1
