"""From the text of a Dockerfile to its lines: comments, continuations, heredocs and flags.

A line here is what the author sees as one: continuations are joined, heredocs hang on it, and it knows where it came
from. What its words mean is not known here.

Flags of instructions: `--from=x`, `--link`, `--exclude=a --exclude=b`.

Heredocs: `<<EOT`, `<<-EOT` and `<<"EOT"` in RUN, COPY and ADD, whose text stands in the lines that follow.

The forms that the arguments of instructions have: JSON arrays, words, `name=value` pairs.
"""

import json
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from husk.builder.dockerfile.directives import Directive, escape_of
from husk.builder.dockerfile.directives import read as read_directives
from husk.builder.dockerfile.errors import DockerfileError, suggestion
from husk.builder.dockerfile.rules import Span
from husk.builder.dockerfile.words import WordRules, expand

WITH_HEREDOCS = ("add", "copy", "run")
BYTE_ORDER_MARK = "\ufeff"
FLAG, VALUE, LIST = "flag", "value", "list"
_FORM = re.compile(r"([0-9]{0,9})<<(-?)\s*([^<]*)")
_LEADING_TABS = re.compile(r"^\t+", re.MULTILINE)
_IN_LINE = WordRules(keep_quotes=True, keep_escapes=True, keep_unset=True)
_NAME = WordRules(keep_unset=True)
_QUOTED_NAME = WordRules(keep_unset=True, keep_quotes=True)
BLANKS = re.compile(r"[\t\v\f\r ]+")


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


def heredoc_of(word: str) -> Heredoc | None:
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


def heredocs_in(line: str) -> list[Heredoc]:
    try:
        words = expand(line, {}, _IN_LINE).words
    except DockerfileError:
        # A shell may make sense of it.
        return []
    return [heredoc for word in words if (heredoc := heredoc_of(word))]


def _quotes(word: str) -> int:
    return word.count("'") + word.count('"')


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
        announced = heredocs_in(statement) if _may_have_heredocs(keyword, rest, self.escape) else []
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


class Flags:
    """The flags of one line, read by what its instruction knows."""

    def __init__(self, written: list[str], known: Mapping[str, str]) -> None:
        self._values: dict[str, list[str]] = {}
        for word in written:
            name, value = _read(word, known)
            if name in self._values and known[name] != LIST:
                raise DockerfileError(f"duplicate flag specified: --{name}")
            self._values.setdefault(name, []).append(value)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._values)

    def value(self, name: str) -> str:
        return self._values.get(name, [""])[0]

    def values(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def is_true(self, name: str) -> bool:
        return self.value(name) == "true"

    def maybe_true(self, name: str) -> bool | None:
        """Like `is_true`, and None if nothing was said."""
        return self.is_true(name) if name in self else None


def _read(word: str, known: Mapping[str, str]) -> tuple[str, str]:
    name, equals, value = word.removeprefix("--").partition("=")
    if name not in known:
        raise DockerfileError(f"unknown flag: --{name}{suggestion(name, known)}")
    if known[name] == FLAG:
        return name, _boolean(name, value, given=bool(equals))
    if not equals:
        raise DockerfileError(f"missing a value on flag: --{name}")
    return name, value


def _boolean(name: str, value: str, *, given: bool) -> str:
    if given and not value:
        raise DockerfileError(f"missing a value on flag: --{name}")
    value = value.lower() or "true"
    if value not in ("true", "false"):
        raise DockerfileError(f"expecting boolean value for flag --{name}, not: {value}")
    return value


class Pair(Struct, frozen=True):
    name: str
    value: str
    legacy: bool = False  # written as `ENV name value`


def json_array(text: str) -> list[str] | None:
    """The strings of a JSON array; None if it is none, which makes it a text for a shell."""
    if not text.lstrip().startswith("["):
        return None
    try:
        found: list[object] = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    words = [word for word in found if isinstance(word, str)]
    if len(words) != len(found):
        raise DockerfileError("when using JSON array syntax, arrays must be comprised of strings only")
    return words


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN and Infinity are Python's own


def blank_separated(text: str) -> list[str]:
    return BLANKS.split(text) if text else []


def argument_words(text: str, escape: str) -> list[str]:
    """Words with the quotes and escapes that they were written with: the expansion of variables needs them."""
    found: list[str] = []
    letters: list[str] = []
    quote = ""
    empty_counts = False
    position = 0
    while position < len(text):
        letter = text[position]
        position += 1
        if letter == escape and quote != "'":
            follower = text[position : position + 1]
            position += 1
            # At the very end it is nothing.
            letters.append(letter + follower if follower else "")
            continue
        if not quote and letter.isspace():
            if letters or empty_counts:
                found.append("".join(letters))
            letters, empty_counts = [], False
            continue
        if letter == quote:
            quote = ""
        elif not quote and letter in "'\"":
            quote, empty_counts = letter, True
        letters.append(letter)
    if "".join(letters) or empty_counts:
        found.append("".join(letters))
    return found


def pairs(text: str, escape: str, keyword: str) -> list[Pair]:
    """`name=value ...`, or the old form with one name and the rest of the line."""
    found = argument_words(text, escape)
    if not found:
        raise DockerfileError(f"{keyword} requires at least one argument")
    if "=" not in found[0]:
        name, *value = BLANKS.split(text, maxsplit=1)
        if not value:
            raise DockerfileError(f"{keyword} must have two arguments", plain=True)
        return [Pair(name, value[0], legacy=True)]
    return [_pair(word, keyword) for word in found]


def _pair(word: str, keyword: str) -> Pair:
    name, equals, value = word.partition("=")
    if not equals:
        message = f'Syntax error - can\'t find = in "{word}". Must be of the form: name=value'
        raise DockerfileError(message, plain=True)
    if not name:
        raise DockerfileError(f"{keyword} names can not be blank")
    return Pair(name, value)
