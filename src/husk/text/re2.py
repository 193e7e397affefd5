"""Regular expressions as Go has them (RE2's syntax), matched in linear time: they come from clients.

`re` backtracks: `(a+)+_$` takes it a minute for a name of 30 letters, and nothing else runs meanwhile. Here an
expression becomes a small program whose states are followed all at once, and what was found for a set of states and a
character is kept. The work is counted, too, and what would take too much of it is refused with `TooMuch`.

    Finder(["^web", "db$"]).finds("webserver")

Whether something matches is all that is told, so it does not matter what is greedy. Of `\\p{...}` the general
categories are known, not the scripts.
"""

import unicodedata
from collections.abc import Callable, Iterable
from typing import NamedTuple

from husk.errors import InvalidParameter

Test = Callable[[str], bool]

# Steps for one finder, in all: some tenths of a second at most.
STEPS = 500_000
# As in Go, repetitions multiplied. A program is at most so long, a group at most so deep.
_MOST_REPEATED, _LONGEST, _DEEPEST = 1000, 10_000, 100
_KEPT = 4096
# What it takes to read a character of an expression, and how many it has at most.
_READING = 40
_LONGEST_TEXT = STEPS // _READING
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-/")


def _named(kinds: str) -> set[str]:
    """L, Ll, Lm ... of Llmo..."""
    return {kinds[0], *(kinds[0] + kind for kind in kinds[1:])}


_ASCII: dict[str, Test] = {
    "d": lambda c: "0" <= c <= "9",
    "w": lambda c: c.isascii() and (c.isalnum() or c == "_"),
    "s": lambda c: c in "\t\n\f\r ",
}
_POSIX: dict[str, Test] = {
    "alnum": lambda c: c.isascii() and c.isalnum(),
    "alpha": lambda c: c.isascii() and c.isalpha(),
    "ascii": str.isascii,
    "blank": lambda c: c in "\t ",
    "cntrl": lambda c: c < " " or c == "\x7f",
    "digit": _ASCII["d"],
    "graph": lambda c: "!" <= c <= "~",
    "lower": lambda c: "a" <= c <= "z",
    "print": lambda c: " " <= c <= "~",
    "punct": lambda c: "!" <= c <= "~" and not c.isalnum(),
    "space": lambda c: c in "\t\n\v\f\r ",
    "upper": lambda c: "A" <= c <= "Z",
    "word": _ASCII["w"],
    "xdigit": lambda c: c in "0123456789abcdefABCDEF",
}
_CATEGORIES = frozenset(
    name for kinds in ("Ccfnos", "Llmotu", "Mcen", "Ndlo", "Pcdefios", "Sckmo", "Zlps") for name in _named(kinds)
)
_LETTERS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


class BadExpression(ValueError):
    """It is none: the message says why, in Go's words."""


class TooMuch(InvalidParameter):
    """It, or what it is to be found in, is too large."""


class _Take(NamedTuple):
    """Take a character that passes."""

    test: Test


class _Assert(NamedTuple):
    """Go on where the place is of that kind: one of A z ^ $ b B."""

    kind: str


class _Split(NamedTuple):
    """Go on at each of these places, counted from here."""

    to: tuple[int, ...]


_Step = _Take | _Assert | _Split | None
_Program = list[_Step]


class Finder:
    """Looks for any of several expressions. One that is none is looked for as it is written."""

    def __init__(self, expressions: Iterable[str], steps: int = STEPS) -> None:
        self._steps = steps
        self._plain: list[str] = []
        programs: list[_Program] = []
        for text in dict.fromkeys(expressions):
            self._count(_READING * len(text))
            if _PLAIN.issuperset(text):
                self._plain.append(text)
                continue
            try:
                programs.append(parse(text))
            except BadExpression:
                self._plain.append(text)
        self._program: _Program = []
        self._starts = []
        for program in programs:
            self._starts.append(len(self._program))
            self._program += [*program, None]
            if len(self._program) > 2 * _LONGEST:
                raise TooMuch("too many regular expressions, or too large ones")
        # By what leads there, the set of states behind each character; None where something was found.
        self._known: dict[tuple[frozenset[int], str, str], frozenset[int] | None] = {}
        self._sets: dict[frozenset[int], frozenset[int]] = {}

    def finds(self, text: str) -> bool:
        """Tell if any of the expressions is in the text."""
        self._count(1 + len(self._plain))
        if any(plain in text for plain in self._plain):
            return True
        states: frozenset[int] = frozenset()
        before = ""
        for here in (*text, ""):
            after = self._after(states, before, here)
            if after is None:
                return True
            states, before = after, here
        return False

    def _after(self, states: frozenset[int], before: str, here: str) -> frozenset[int] | None:
        self._count(1)
        key = (states, before, here)
        if key not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
                self._sets.clear()
            after = self._step(states, before, here)
            # Each set once: to compare equal ones takes longer than all else.
            self._known[key] = None if after is None else self._sets.setdefault(after, after)
        return self._known[key]

    def _step(self, states: frozenset[int], before: str, here: str) -> frozenset[int] | None:
        """Follow what takes no character, then take one. Each expression may begin anywhere."""
        taken: set[int] = set()
        seen: set[int] = set()
        waiting = [*self._starts, *states]
        while waiting:
            place = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            step = self._program[place]
            if step is None:
                return None
            if isinstance(step, _Split):
                waiting += [place + distance for distance in step.to]
            elif isinstance(step, _Assert):
                if _holds(step.kind, before, here):
                    waiting.append(place + 1)
            elif here and step.test(here):
                taken.add(place + 1)
        self._count(len(seen))
        return frozenset(taken)

    def _count(self, steps: int) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise TooMuch("the regular expressions are too complex for what they are to be found in")


def _holds(kind: str, before: str, here: str) -> bool:
    match kind:
        case "A":
            return not before
        case "z":
            return not here
        case "^":
            return before in ("", "\n")
        case "$":
            return here in ("", "\n")
    return (_is_word(before) != _is_word(here)) == (kind == "b")


def _is_word(character: str) -> bool:
    return bool(character) and _ASCII["w"](character)


def parse(text: str) -> _Program:
    """The program of an expression. BadExpression says what is wrong with it; TooMuch is for one that is too long."""
    if len(text) > _LONGEST_TEXT:
        raise TooMuch(f"a regular expression has {len(text)} characters, {_LONGEST_TEXT} is the most")
    parser = _Parser(text)
    program, _ = parser.alternatives(frozenset(), 0)
    if parser.at < len(text):
        raise BadExpression(f"unexpected ): `{text}`")
    return program


class _Parser:
    """Reads an expression from left to right. `flags` are letters: i any case, s dots take line feeds, m lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._size = 0

    def alternatives(self, flags: frozenset[str], depth: int) -> tuple[_Program, int]:
        """Up to a parenthesis or the end; and how often its parts are repeated at most."""
        if depth > _DEEPEST:
            raise BadExpression(f"expression nests too deeply: `{self.text}`")
        branches: list[_Program] = []
        most = 1
        while True:
            branch, repeated, flags = self._branch(flags, depth)
            branches.append(branch)
            most = max(most, repeated)
            if not self._eats("|"):
                break
        return self._checked(self._either(branches)), most

    def _either(self, branches: list[_Program]) -> _Program:
        """Try one branch after the other: each but the last stands between a fork and the way past what follows."""
        left = sum(map(len, branches)) + 2 * (len(branches) - 1)
        if left > _LONGEST:
            raise TooMuch("a regular expression is too large")
        program: _Program = []
        for branch in branches[:-1]:
            left -= len(branch) + 2
            program += [_Split((1, len(branch) + 2)), *branch, _Split((left + 1,))]
        return program + branches[-1]

    def _branch(self, flags: frozenset[str], depth: int) -> tuple[_Program, int, frozenset[str]]:
        program: _Program = []
        most = 1
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            begun = self.at
            atom, repeated, changed = self._atom(flags, depth)
            if changed is not None:
                flags = changed
                if self._repetition() is not None:
                    raise BadExpression(f"missing argument to repetition operator: `{self.text[self.at - 1]}`")
                continue
            behind = self.at
            if (times := self._repetition()) is not None:
                least, last = times
                repeated *= max(least, last or 0, 1)
                if repeated > _MOST_REPEATED:
                    raise BadExpression(f"invalid repeat count: `{self.text[begun : self.at]}`")
                atom = self._repeated(atom, least, last)
                if self._repetition() is not None:
                    raise BadExpression(f"invalid nested repetition operator: `{self.text[behind : self.at]}`")
            most = max(most, repeated)
            program = self._checked(program + atom)
        return program, most, flags

    def _atom(self, flags: frozenset[str], depth: int) -> tuple[_Program, int, frozenset[str] | None]:
        """One thing that can be repeated, how often it is inside, and other flags from here on."""
        letter = self.text[self.at]
        self.at += 1
        match letter:
            case "(":
                return self._group(flags, depth)
            case "[":
                return [_Take(self._class(flags))], 1, None
            case ".":
                return [_Take((lambda _: True) if "s" in flags else (lambda c: c != "\n"))], 1, None
            case "^":
                return [_Assert("^" if "m" in flags else "A")], 1, None
            case "$":
                return [_Assert("$" if "m" in flags else "z")], 1, None
            case "\\":
                return self._escaped(flags), 1, None
            case "*" | "+" | "?":
                raise BadExpression(f"missing argument to repetition operator: `{letter}`")
        return [_literal(letter, flags)], 1, None

    def _group(self, flags: frozenset[str], depth: int) -> tuple[_Program, int, frozenset[str] | None]:
        inside = flags
        if self._eats("?"):
            if self._eats("P<") or self._eats("<"):
                name, closed, _ = self.text[self.at :].partition(">")
                if not closed or not name or not all(_ASCII["w"](c) for c in name):
                    raise BadExpression(f"invalid named capture: `{self.text}`")
                self.at += len(name) + 1
            else:
                inside, alone = self._flags(flags)
                if alone:
                    return [], 1, inside
        program, most = self.alternatives(inside, depth + 1)
        if not self._eats(")"):
            raise BadExpression(f"missing closing ): `{self.text}`")
        return program, most, None

    def _flags(self, flags: frozenset[str]) -> tuple[frozenset[str], bool]:
        """Those behind `(?`; and whether they are for what follows the parenthesis."""
        found, sets, said = set(flags), True, 0
        while self.at < len(self.text):
            letter = self.text[self.at]
            self.at += 1
            if letter in "imsU":
                (found.add if sets else found.discard)(letter)
                said += 1
            elif letter == "-" and sets:
                sets, said = False, 0
            elif letter in ":)" and (sets or said):
                return frozenset(found), letter == ")"
            else:
                break
        raise BadExpression(f"invalid or unsupported Perl syntax: `{self.text}`")

    def _escaped(self, flags: frozenset[str]) -> _Program:
        letter = self._next("trailing backslash at end of expression")
        if letter in "AzbB":
            return [_Assert(letter)]
        if letter == "Q":
            quoted, _, _ = self.text[self.at :].partition("\\E")
            self.at = min(self.at + len(quoted) + 2, len(self.text))
            return self._checked([_literal(c, flags) for c in quoted])
        if (test := self._set(letter)) is not None:
            return [_Take(test)]
        return [_literal(self._character(letter), flags)]

    def _set(self, letter: str) -> Test | None:
        """Read the set that `\\d`, `\\W` or `\\pL` stands for; None for another letter."""
        if (known := _ASCII.get(letter.lower())) is not None:
            return known if letter.islower() else _not(known)
        if letter not in "pP":
            return None
        name = self._next("invalid character class range")
        if name == "{":
            name, closed, _ = self.text[self.at :].partition("}")
            self.at += len(name) + 1
            if not closed:
                raise BadExpression(f"invalid character class range: `{self.text}`")
        refused = (letter == "P") != name.startswith("^")
        name = name.removeprefix("^")
        if name not in _CATEGORIES and name != "Any":
            raise BadExpression(f"invalid character class range: `\\{letter}{{{name}}}`")

        def test(character: str) -> bool:
            return name == "Any" or unicodedata.category(character).startswith(name)

        return _not(test) if refused else test

    def _character(self, letter: str) -> str:
        """Read the character that an escape stands for."""
        if letter in _LETTERS:
            return _LETTERS[letter]
        if letter == "x":
            return self._hexadecimal()
        if letter == "0" or (letter in "1234567" and self.text[self.at : self.at + 1] in tuple("01234567")):
            digits = letter
            while len(digits) < 3 and self.text[self.at : self.at + 1] in tuple("01234567"):
                digits += self.text[self.at]
                self.at += 1
            return chr(int(digits, 8))
        if letter in _PUNCTUATION:
            return letter
        raise BadExpression(f"invalid escape sequence: `\\{letter}`")

    def _hexadecimal(self) -> str:
        digits = self.text[self.at : self.at + 2]
        if self._eats("{"):
            digits, closed, _ = self.text[self.at :].partition("}")
            self.at += 1
            if not closed:
                digits = ""
        self.at += len(digits)
        if digits and len(digits) <= 6 and all(_POSIX["xdigit"](c) for c in digits) and int(digits, 16) <= 0x10FFFF:
            return chr(int(digits, 16))
        raise BadExpression("invalid escape sequence: `\\x`")

    def _class(self, flags: frozenset[str]) -> Test:
        """Read a character class: all that stands between square brackets."""
        begun = self.at - 1
        refused = self._eats("^")
        singles: set[str] = set()
        ranges: list[tuple[str, str]] = []
        tests: list[Test] = []
        first = True
        while first or not self._eats("]"):
            first = False
            if self._eats("[:"):
                name, closed, _ = self.text[self.at :].partition(":]")
                known = _POSIX.get(name.removeprefix("^"))
                if not closed or known is None:
                    raise BadExpression(f"invalid character class range: `[:{name[:20]}:]`")
                self.at += len(name) + 2
                tests.append(_not(known) if name.startswith("^") else known)
                continue
            letter = self._next(f"missing closing ]: `{self.text[begun:]}`")
            if letter == "\\":
                letter = self._next("trailing backslash at end of expression")
                if (test := self._set(letter)) is not None:
                    tests.append(test)
                    continue
                letter = self._character(letter)
            if self.text[self.at : self.at + 1] == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                last = self._next("missing closing ]")
                if last == "\\":
                    last = self._character(self._next("trailing backslash at end of expression"))
                if last < letter:
                    raise BadExpression(f"invalid character class range: `{letter}-{last}`")
                ranges.append((letter, last))
            else:
                singles.add(letter)

        def one(character: str) -> bool:
            return (
                character in singles
                or any(low <= character <= high for low, high in ranges)
                or any(test(character) for test in tests)
            )

        if len(ranges) + len(tests) > _DEEPEST:
            raise BadExpression("expression too large")
        either = (lambda c: any(one(each) for each in _cases(c))) if "i" in flags else one
        return _not(either) if refused else either

    def _repetition(self) -> tuple[int, int | None] | None:
        """(at least, at most) of what stands here; None where nothing is repeated."""
        for letter, times in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._eats(letter):
                self._eats("?")
                return times
        if self.text[self.at : self.at + 1] != "{":
            return None
        inside, closed, _ = self.text[self.at + 1 : self.at + 24].partition("}")
        least, comma, last = inside.partition(",")
        if not closed or not _number(least) or (last and not _number(last)):
            return None  # as Go has it, a brace like any other letter
        self.at += len(inside) + 2
        self._eats("?")
        low = int(least)
        high = int(last) if last else None if comma else low
        if low > _MOST_REPEATED or (high is not None and not low <= high <= _MOST_REPEATED):
            raise BadExpression(f"invalid repeat count: `{{{inside}}}`")
        return low, high

    def _repeated(self, atom: _Program, least: int, most: int | None) -> _Program:
        if len(atom) * max(least, most or 1) > _LONGEST:
            raise BadExpression(f"expression too large: `{self.text[:40]}`")
        program = atom * least
        if most is None:
            return [*program, _Split((1, len(atom) + 2)), *atom, _Split((-len(atom) - 1,))]
        rest = (most - least) * (len(atom) + 1)
        for number in range(most - least):
            program += [_Split((1, rest - number * (len(atom) + 1))), *atom]
        return program

    def _checked(self, program: _Program) -> _Program:
        # All that was ever put together, so that nothing is copied too often either.
        self._size += len(program)
        if len(program) > _LONGEST or self._size > 20 * _LONGEST:
            raise TooMuch("a regular expression is too large")
        return program

    def _eats(self, word: str) -> bool:
        if not self.text.startswith(word, self.at):
            return False
        self.at += len(word)
        return True

    def _next(self, complaint: str) -> str:
        if self.at >= len(self.text):
            raise BadExpression(complaint)
        self.at += 1
        return self.text[self.at - 1]


def _number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9 and (text == "0" or text[0] != "0")


def _not(test: Test) -> Test:
    return lambda character: not test(character)


def _cases(character: str) -> set[str]:
    return {character, character.lower(), character.upper()}


def _literal(character: str, flags: frozenset[str]) -> _Take:
    if "i" in flags:
        cases = _cases(character)
        return _Take(lambda c: bool(cases & _cases(c)))
    return _Take(lambda c: c == character)
