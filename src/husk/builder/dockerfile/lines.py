"""From the text of a Dockerfile to its lines: comments, continuations, heredocs and flags.

A line here is what the author sees as one: continuations are joined, heredocs hang on it, and it knows where it came
from. What its words mean is not known here.
"""

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from husk.builder.dockerfile import heredocs
from husk.builder.dockerfile.arguments import BLANKS, json_array
from husk.builder.dockerfile.directives import Directive, escape_of
from husk.builder.dockerfile.directives import read as read_directives
from husk.builder.dockerfile.errors import DockerfileError, Span
from husk.builder.dockerfile.heredocs import Heredoc

WITH_HEREDOCS = ("add", "copy", "run")
BYTE_ORDER_MARK = "\ufeff"


class Line(Struct, frozen=True):
    keyword: str  # as written
    flags: list[str]
    rest: str
    original: str
    span: Span
    comments: list[str]  # right above it
    heredocs: list[Heredoc]


class DockerfileLines(Struct, frozen=True):
    directives: list[Directive]
    escape: str
    lines: list[Line]
    empty_continuations: list[Span]  # which will be errors one day, and are told


def split(text: str) -> DockerfileLines:
    text = text.removeprefix(BYTE_ORDER_MARK)
    directives = list(read_directives(text))
    reader = _Reader(text, escape_of(directives), {directive.line for directive in directives})
    lines = list(reader.read())
    if not lines:
        raise DockerfileError("file with no instructions", Span(reader.number, reader.number))
    return DockerfileLines(directives, reader.escape, lines, reader.empty_continuations)


class _Reader:
    def __init__(self, text: str, escape: str, directive_lines: set[int]) -> None:
        self._source: list[str] = re.findall(r"[^\n]*\n|[^\n]+", text)
        self._directive_lines = directive_lines
        self.escape = escape
        # Not where it is escaped itself.
        self._continues = re.compile(rf"(?:(?<=[^{re.escape(escape)}])|^){re.escape(escape)}[ \t]*$")
        self.number = 0
        self.empty_continuations: list[Span] = []

    def _next(self) -> str | None:
        if self.number == len(self._source):
            return None
        self.number += 1
        return self._source[self.number - 1]

    def read(self) -> Iterator[Line]:
        comments: list[str] = []
        while (raw := self._next()) is not None:
            start = self.number
            line = raw.strip("\r\n").lstrip()
            if line.startswith("#"):
                comment = line[1:].strip()
                if not comment:
                    comments = []
                elif start not in self._directive_lines:
                    comments.append(comment)
                continue
            if not line:
                continue
            statement = self._join(line)
            try:
                yield self._line(statement, start, comments)
            except DockerfileError as error:
                raise error.at(Span(start, self.number)) from None
            comments = []

    def _join(self, line: str) -> str:
        """A line with those that continue it; comments and empty lines in between fall out."""
        parts: list[str] = []
        empty = False
        while self._continues.search(line):
            parts.append(self._continues.sub("", line))
            line = ""
            while (raw := self._next()) is not None:
                line = raw.rstrip("\r\n")
                if line.lstrip().startswith("#"):
                    line = ""
                    continue
                if line.strip():
                    break
                empty = True
        if empty:
            self.empty_continuations.append(Span(self.number, self.number))
        return "".join([*parts, line])

    def _line(self, statement: str, start: int, comments: list[str]) -> Line:
        keyword, flags, rest = split_statement(statement, self.escape)
        announced = heredocs.in_line(statement) if _may_have_heredocs(keyword, rest, self.escape) else []
        texts = [self._read_heredoc(heredoc, start) for heredoc in announced]
        return Line(keyword, flags, rest, statement, Span(start, self.number), comments, texts)

    def _read_heredoc(self, heredoc: Heredoc, start: int) -> Heredoc:
        content: list[str] = []
        while (raw := self._next()) is not None:
            if heredoc.ends_with(raw):
                return replace(heredoc, content="".join(content))
            content.append(raw)
        raise DockerfileError("unterminated heredoc", Span(start, self.number))


def _may_have_heredocs(keyword: str, rest: str, escape: str) -> bool:
    if "<<" not in rest:
        return False
    if keyword.lower() == "onbuild":
        keyword, _, rest = split_statement(rest, escape)
    # The words of a JSON array are what they are.
    return keyword.lower() in WITH_HEREDOCS and json_array(rest) is None


def split_statement(statement: str, escape: str) -> tuple[str, list[str], str]:
    """Keyword, flags and the rest: `COPY --from=x a b` is `COPY`, [`--from=x`], `a b`."""
    keyword, *behind = BLANKS.split(statement.strip(), maxsplit=1)
    if not behind:
        return keyword, [], ""
    flags, rest = _split_flags(behind[0], escape)
    return keyword, flags, rest.strip()


def _split_flags(text: str, escape: str) -> tuple[list[str], str]:
    """The words that begin with `--`; their quotes and escapes are gone. A bare `--` ends them."""
    flags: list[str] = []
    position = 0
    while True:
        while position < len(text) and text[position].isspace():
            position += 1
        if not text.startswith("--", position):
            return flags, text[position:]
        word, position = _flag(text, position, escape)
        if word == "--":
            return flags, text[position:]
        flags.append(word)


def _flag(text: str, position: int, escape: str) -> tuple[str, int]:
    letters: list[str] = []
    quote = ""
    while position < len(text):
        letter = text[position]
        position += 1
        if letter == escape:
            letters.append(text[position : position + 1])
            position += 1
        elif quote:
            if letter == quote:
                quote = ""
            else:
                letters.append(letter)
        elif letter in "'\"":
            quote = letter
        elif letter.isspace():
            break
        else:
            letters.append(letter)
    return "".join(letters), position
