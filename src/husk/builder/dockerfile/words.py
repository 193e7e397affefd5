"""Words as a shell has them: quotes, escapes and variables, as Dockerfiles know them.

    expand("$HOME/${name:-x}", variables).text            one word, variables in their place
    expand('a "b c" $d', variables).words                 several, split at what is not quoted

Which modifiers there are: `${x}`, `${x:-y}`, `${x-y}`, `${x:+y}`, `${x+y}`, `${x:?y}`, `${x?y}`, `${x#p}`, `${x##p}`,
`${x%p}`, `${x%%p}`, `${x/p/y}`, `${x//p/y}`.
"""

import json
from collections.abc import Mapping

from msgspec import Struct

from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.patterns import replaced, without_prefix, without_suffix
from husk.builder.dockerfile.rules import Span

SPECIAL_PARAMETERS = "@*#?-$!0"  # of a shell; never set in a Dockerfile
DEEPEST = 50  # ${a:-${b:-...}}


class Expanded(Struct, frozen=True):
    text: str
    words: list[str]
    used: frozenset[str]  # variables that were set
    missing: frozenset[str]  # and those that were not


class UnexpandedWord(DockerfileError):
    """A word that is wrong; `missing` are the variables in it up to there that were not set."""

    def __init__(self, message: str, missing: frozenset[str], span: Span | None) -> None:
        super().__init__(message, span)
        self.missing = missing


class WordRules(Struct, frozen=True):
    """The rules by which a word is expanded; the defaults are for most instructions."""

    escape: str = "\\"
    quotes: bool = True  # False: quotes mean nothing
    keep_quotes: bool = False
    keep_escapes: bool = False
    keep_unset: bool = False  # $name stays if there is no such variable


DEFAULT = WordRules()
_NONE: frozenset[str] = frozenset()


def expand(source: str, variables: Mapping[str, str], rules: WordRules = DEFAULT) -> Expanded:
    if not any(letter in source for letter in f"$<{rules.escape}'\""):
        # What most words are: nothing in them means anything.
        return Expanded(source, source.split(), _NONE, _NONE)
    reader = _Reader(source, variables, rules)
    try:
        text, words = reader.read_until("", keep_escapes=rules.keep_escapes)
    except DockerfileError as error:
        shown = json.dumps(source, ensure_ascii=False)
        missing = frozenset(reader.missing)
        raise UnexpandedWord(f"failed to process {shown}: {error.message}", missing, error.span) from None
    return Expanded(text, words, frozenset(reader.used), frozenset(reader.missing))


class _Words(Struct):
    """Collects words: blanks part them, unless they were quoted."""

    done: list[str] = []
    letters: list[str] = []

    def add(self, text: str) -> None:
        for letter in text:
            if not letter.isspace():
                self.letters.append(letter)
            elif self.letters:
                self.end()

    def add_quoted(self, text: str) -> None:
        self.letters.append(text)

    def end(self) -> None:
        word = "".join(self.letters)
        if word:
            self.done.append(word)
        self.letters = []


class _Reader:
    def __init__(self, source: str, variables: Mapping[str, str], rules: WordRules) -> None:
        self._source = source
        self._position = 0
        self._variables = variables
        self._rules = rules
        self._depth = 0
        self.used: set[str] = set()
        self.missing: set[str] = set()

    # --- letters -----------------------------------------------------------------------------------------------------

    def _peek(self) -> str:
        return self._source[self._position : self._position + 1]

    def _next(self) -> str:
        letter = self._peek()
        self._position += 1
        return letter

    # --- words -------------------------------------------------------------------------------------------------------

    def read_until(self, stop: str, *, keep_escapes: bool) -> tuple[str, list[str]]:
        """Read up to the letter `stop`, or to the end if that is empty."""
        text: list[str] = []
        words = _Words()
        while letter := self._peek():
            if letter == stop:
                self._next()
                break
            if letter == "$":
                value = self._variable()
                words.add(value)
                text.append(value)
            elif letter in "'\"" and self._rules.quotes:
                value = self._single_quoted() if letter == "'" else self._double_quoted(keep_escapes=keep_escapes)
                words.add_quoted(value)
                text.append(value)
            elif letter == "<":
                value = self._less_than()
                words.add_quoted(value)
                text.append(value)
            elif letter == self._rules.escape:
                value = self._escaped(keep_escapes=keep_escapes)
                words.add_quoted(value)
                text.append(value)
            else:
                self._next()
                words.add(letter)
                text.append(letter)
        else:
            if stop:
                raise DockerfileError(f"unexpected end of statement while looking for matching {stop}")
        words.end()
        return "".join(text), words.done

    def _escaped(self, *, keep_escapes: bool) -> str:
        escape = self._next()
        # Followed by nothing it is nothing.
        return (escape if keep_escapes else "") + self._next()

    def _less_than(self) -> str:
        """`<<` keeps the blanks behind it: `<< EOT` is one word."""
        self._next()
        if self._peek() != "<":
            return "<"
        self._next()
        blanks = ""
        while self._peek() and self._peek() in "\t\r ":
            blanks += self._next()
        return "<<" + blanks

    def _single_quoted(self) -> str:
        """Nothing means anything but the quote that ends it."""
        self._next()
        end = self._source.find("'", self._position)
        if end < 0:
            raise DockerfileError("unexpected end of statement while looking for matching single-quote")
        value = self._source[self._position : end]
        self._position = end + 1
        return f"'{value}'" if self._rules.keep_quotes else value

    def _double_quoted(self, *, keep_escapes: bool) -> str:
        self._next()
        quote = '"' if self._rules.keep_quotes else ""
        value = [quote]
        while letter := self._peek():
            if letter == '"':
                self._next()
                return "".join([*value, quote])
            if letter == "$":
                value.append(self._variable())
                continue
            self._next()
            if letter == self._rules.escape:
                if keep_escapes:
                    value.append(letter)
                follower = self._peek()
                if not follower:
                    break
                # Before any other letter an escape is a letter itself.
                if follower in ('"', "$", self._rules.escape):
                    letter = self._next()
            value.append(letter)
        raise DockerfileError("unexpected end of statement while looking for matching double-quote")

    # --- variables ---------------------------------------------------------------------------------------------------

    def _variable(self) -> str:
        self._next()
        if self._peek() != "{":
            name = self._name()
            if not name:
                return "$"
            value = self._value_of(name)
            return self._unset(f"${name}") if value is None else value
        self._depth += 1
        if self._depth > DEEPEST:
            raise DockerfileError(f"substitutions are nested more than {DEEPEST} deep")
        value = self._in_braces()
        self._depth -= 1
        return value

    def _in_braces(self) -> str:
        self._next()
        if not self._peek():
            raise DockerfileError("syntax error: missing '}'")
        if self._peek() in "{}:":
            raise DockerfileError("syntax error: bad substitution")
        name = self._name()
        modifier = self._next()
        if modifier == "}":
            value = self._value_of(name)
            return self._unset(f"${{{name}}}") if value is None else value
        if modifier == "/":
            return self._with_replacement(name)
        if modifier == ":":
            follower = self._next()
            if follower not in ("-", "+", "?"):
                raise DockerfileError(f"unsupported modifier (:{follower}) in substitution")
            return self._with_default(name, follower, empty_is_unset=True)
        if modifier in ("-", "+", "?"):
            return self._with_default(name, modifier, empty_is_unset=False)
        if modifier in ("#", "%"):
            return self._without_pattern(name, modifier)
        raise DockerfileError(
            f"unsupported modifier ({modifier}) in substitution" if modifier else "syntax error: missing '}'"
        )

    def _operand(self, stop: str, *, keep_escapes: bool, missing: str) -> str:
        try:
            text, _ = self.read_until(stop, keep_escapes=keep_escapes)
        except DockerfileError as error:
            if self._position >= len(self._source):
                raise DockerfileError(missing) from error
            raise
        return text

    def _with_default(self, name: str, modifier: str, *, empty_is_unset: bool) -> str:
        operand = self._operand("}", keep_escapes=False, missing="syntax error: missing '}'")
        value = self._value_of(name)
        if value is None and self._rules.keep_unset:
            return f"${{{name}{':' if empty_is_unset else ''}{modifier}{operand}}}"
        is_set = value is not None and not (empty_is_unset and value == "")
        if modifier == "+":
            return operand if is_set else ""
        if is_set:
            return value or ""
        if modifier == "-":
            return operand
        what = "is not allowed to be unset" if value is None else "is not allowed to be empty"
        raise DockerfileError(f"{name}: {operand or what}")

    def _without_pattern(self, name: str, modifier: str) -> str:
        pattern = self._operand("}", keep_escapes=True, missing="syntax error: missing '}'")
        value = self._value_of(name)
        if value is None and self._rules.keep_unset:
            return f"${{{name}{modifier}{pattern}}}"
        longest = pattern.startswith(modifier)
        cut = without_prefix if modifier == "#" else without_suffix
        return cut(value or "", pattern[1:] if longest else pattern, longest=longest)

    def _with_replacement(self, name: str) -> str:
        everywhere = self._peek() == "/"
        if everywhere:
            self._next()
        pattern = self._operand("/", keep_escapes=True, missing="syntax error: missing '/' in ${}")
        replacement = self._operand("}", keep_escapes=True, missing="syntax error: missing '}'")
        value = self._value_of(name)
        if value is None and self._rules.keep_unset:
            return f"${{{name}/{pattern}/{replacement}}}"
        return replaced(value or "", pattern, replacement, everywhere=everywhere)

    def _name(self) -> str:
        start = self._position
        letter = self._peek()
        if letter.isdecimal():
            while self._peek().isdecimal():
                self._position += 1
        elif letter and letter in SPECIAL_PARAMETERS:
            self._position += 1
        else:
            while self._peek().isalnum() or self._peek() == "_":
                self._position += 1
        return self._source[start : self._position]

    def _value_of(self, name: str) -> str | None:
        value = self._variables.get(name)
        (self.missing if value is None else self.used).add(name)
        return value

    def _unset(self, source: str) -> str:
        return source if self._rules.keep_unset else ""
