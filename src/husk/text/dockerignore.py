"""`.dockerignore`: which files of a context stay behind. Whoever sends a context reads it, and whoever builds from one.

A line is a pattern: `*`, `?`, `[a-z]` within one part of a path, `**` over any number of parts, `!` brings back what an
earlier line left out; the last line that matches a file decides. What lies below a directory that matches, matches too.
"""

import posixpath
from collections.abc import Iterable

from husk.text.globs import Patterns

BYTE_ORDER_MARK = "\ufeff"


def read(text: str) -> list[str]:
    """The patterns of a file: comments and empty lines are gone, paths are as short as can be."""
    patterns: list[str] = []
    for line in text.removeprefix(BYTE_ORDER_MARK).split("\n"):
        if line.startswith("#"):
            continue
        pattern = line.strip()
        negated = pattern.startswith("!")
        pattern = pattern[negated:].strip()
        if not pattern:
            # Nothing to bring back is no pattern, which `Ignore` says.
            patterns += ["!"] if negated else []
            continue
        pattern = posixpath.normpath(pattern)
        # A leading slash means the context itself.
        if len(pattern) > 1:
            pattern = pattern.lstrip("/") or "."
        patterns.append("!" + pattern if negated else pattern)
    return patterns


class Ignore:
    """Decides about paths, which are relative to the context and have no leading slash. BadPattern for what is none."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = Patterns(patterns)
        self.brings_back = self._patterns.brings_back

    def leaves_out(self, path: str) -> bool:
        return self._patterns.matches(path)

    def may_skip_directory(self, path: str) -> bool:
        """Tell if nothing below this directory is wanted."""
        return self.leaves_out(path) and not self.brings_back
