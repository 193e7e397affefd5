"""Heredocs: `<<EOT`, `<<-EOT` and `<<"EOT"` in RUN, COPY and ADD, whose text stands in the lines that follow."""

import re

from msgspec import Struct

from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.words import WordRules, expand

_FORM = re.compile(r"([0-9]{0,9})<<(-?)\s*([^<]*)")
_LEADING_TABS = re.compile(r"^\t+", re.MULTILINE)
_IN_LINE = WordRules(keep_quotes=True, keep_escapes=True, keep_unset=True)
_NAME = WordRules(keep_unset=True)
_QUOTED_NAME = WordRules(keep_unset=True, keep_quotes=True)


class Heredoc(Struct, frozen=True):
    name: str
    expand: bool  # False if its name was quoted
    strip_tabs: bool  # <<-
    descriptor: int = 0
    content: str = ""

    @property
    def text(self) -> str:
        """The text that the file is to have, without leading tabs where they are stripped."""
        return _LEADING_TABS.sub("", self.content) if self.strip_tabs else self.content

    def ends_with(self, line: str) -> bool:
        """Return True if this line is the one that ends the heredoc."""
        line = line.rstrip("\r\n")
        return (line.lstrip("\t") if self.strip_tabs else line) == self.name


def parse(word: str) -> Heredoc | None:
    """The heredoc that a word announces, or None if it is an ordinary word."""
    found = _FORM.fullmatch(word)
    if found is None or not found[3]:
        return None
    names = expand(found[3], {}, _NAME).words
    if len(names) != 1:
        return None
    (name,) = names
    quoted = expand(found[3], {}, _QUOTED_NAME).words[0]
    return Heredoc(
        name=name,
        expand=_quotes(name) == _quotes(quoted),
        strip_tabs=found[2] == "-",
        descriptor=int(found[1] or 0),
    )


def in_line(line: str) -> list[Heredoc]:
    try:
        words = expand(line, {}, _IN_LINE).words
    except DockerfileError:
        # A shell may make sense of it.
        return []
    return [heredoc for word in words if (heredoc := parse(word))]


def _quotes(word: str) -> int:
    return word.count("'") + word.count('"')
