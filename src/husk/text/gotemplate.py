"""Go's template language (`{{…}}`), as far as services and `--format` use it. Pure: words in, text out.

`parse` reads a text into nodes, `Template.render` writes it with a dot and functions: values, fields, variables,
pipelines, `if`, `with`, `range`, trimming and comments. `define`, `block` and `template` are refused. A field or an
entry that is not there is an error, as Docker has it for services, or what the caller says (`Missing`).
"""

import re
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from husk.errors import InvalidParameter
from husk.text.gofunctions import ABSENT, BUILTINS, is_true, printed
from husk.text.patterns import pattern

DEEPEST = 50
# Loops in loops could go on for ever, and what they say is kept in memory.
MOST_STEPS = 100_000
# Letters of one action: nobody else has a turn while it is matched.
LONGEST = 1 << 16
# So many letters, or entries, that a function is given count as one more step.
_LETTERS, _ENTRIES = 1024, 8
MOST_SAID = 8 << 20
_MOST_DIGITS = 100
# What has matched is not looked at again (`*+`, `(?>`): a text of forty quotes could be read in a million ways.
_ACTION = pattern(
    r"\{\{(?P<left>-(?=\s))?(?:(?P<comment>\s*+/\*(?>.*?\*/)\s*+)|"
    r"(?P<code>(?:\"(?:\\.|[^\"\\\n])*+\"|`[^`]*+`|'(?:\\.|[^'\\\n])*+'|(?!\}\}|(?<=\s)-\}\}).)*+))(?P<right>(?<=\s)-)?\}\}",
    re.DOTALL,
)
_TOKEN = pattern(
    r"\s+|(?P<text>\"(?:\\.|[^\"\\])*\"|`[^`]*`)|(?P<number>[-+]?\d+(?:\.\d+)?\b)|(?P<variable>\$\w*)|"
    r"(?P<field>\.\w*)|(?P<sign>:=|=|\||\(|\)|,)|(?P<word>[A-Za-z_]\w*)"
)
_LETTER = pattern(
    r"([^\\]+)|\\(?:([abfnrtv\\\"])|([0-7]{3})|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|)", re.DOTALL
)
_CONTROLS = dict(zip('abfnrtv\\"', (bytes([byte]) for byte in b'\a\b\f\n\r\t\v\\"'), strict=True))
_CONSTANTS: dict[str, object] = {"true": True, "false": False, "nil": None}


class Structure(dict[str, object]):
    """Words by name, of which there are no others."""


def wrong(reason: str) -> InvalidParameter:
    return InvalidParameter(f"template: expansion: {reason}")


class TemplateToken(NamedTuple):
    kind: str
    text: str
    # Is there nothing between it and the one before?
    adjacent: bool


class Operand(NamedTuple):
    """A value: what it begins with, and the fields that are taken of it."""

    kind: str
    value: object
    fields: tuple[str, ...] = ()


class Pipeline(NamedTuple):
    commands: tuple[tuple[Operand, ...], ...]
    variables: tuple[str, ...] = ()
    declares: bool = False


class Branch:
    """`if`, `with` and `range`."""

    def __init__(self, word: str, pipeline: Pipeline) -> None:
        self.word = word
        self.pipeline = pipeline
        self.body: list[Node] = []
        self.otherwise: list[Node] = []


Node = str | Pipeline | Branch
Function = Callable[..., object]
# Gives the value of a field that a value does not have, or raises.
Missing = Callable[[object, str], object]
Scope = ChainMap[str, object]


class _Tokens:
    """The tokens of one action, read from left to right."""

    def __init__(self, code: str, functions: Collection[str] | None) -> None:
        self._tokens = list(_tokens(code))
        self._functions = functions
        self._place = 0

    def peek(self, kind: str, text: str | None = None) -> TemplateToken | None:
        if self._place == len(self._tokens):
            return None
        token = self._tokens[self._place]
        return token if token.kind == kind and text in (None, token.text) else None

    def take(self, kind: str, text: str | None = None) -> TemplateToken | None:
        if (token := self.peek(kind, text)) is not None:
            self._place += 1
        return token

    @property
    def done(self) -> bool:
        return self._place == len(self._tokens)

    def end(self) -> None:
        if not self.done:
            raise wrong(f"unexpected {self._tokens[self._place].text!r} in command")

    def pipeline(self, depth: int = 0) -> Pipeline:
        if depth > DEEPEST:
            raise wrong("too many parentheses")
        variables, declares = self._variables()
        commands = [self._command(depth)]
        while self.take("sign", "|"):
            commands.append(self._command(depth))
        return Pipeline(tuple(commands), variables, declares)

    def _variables(self) -> tuple[tuple[str, ...], bool]:
        start, names = self._place, []
        while (token := self.take("variable")) is not None:
            names.append(token.text)
            if self.take("sign", ",") is None:
                break
        if names and (sign := self.take("sign", ":=") or self.take("sign", "=")) is not None:
            return tuple(names), sign.text == ":="
        self._place = start
        return (), False

    def _command(self, depth: int) -> tuple[Operand, ...]:
        operands = []
        while (operand := self._operand(depth)) is not None:
            operands.append(operand)
        if not operands:
            raise wrong("missing value for command")
        if len(operands) > 1 and operands[0].kind != "function":
            raise wrong("can't give argument to non-function")
        return tuple(operands)

    def _operand(self, depth: int) -> Operand | None:
        kind: str
        value: object
        fields: list[str] = []
        if (token := self.take("text")) is not None:
            kind, value = "value", _unquoted(token.text)
        elif (token := self.take("number")) is not None:
            kind, value = "value", _number(token.text)
        elif (token := self.take("variable")) is not None:
            kind, value = "variable", token.text
        elif (token := self.take("field")) is not None:
            kind, value = "dot", None
            fields += [token.text[1:]] if token.text != "." else []
        elif (token := self.take("word")) is not None:
            kind, value = ("value", _CONSTANTS[token.text]) if token.text in _CONSTANTS else ("function", token.text)
            if kind == "function" and self._functions is not None and token.text not in self._functions:
                raise wrong(f'function "{token.text}" not defined')
        elif self.take("sign", "("):
            kind, value = "pipeline", self.pipeline(depth + 1)
            if not self.take("sign", ")"):
                raise wrong("unclosed left paren")
        else:
            return None
        while (token := self.peek("field")) is not None and token.adjacent and token.text != ".":
            fields.append(token.text[1:])
            self._place += 1
        return Operand(kind, value, tuple(fields))


def _tokens(code: str) -> Iterator[TemplateToken]:
    place, spaced = 0, True
    while place < len(code):
        if (match := _TOKEN.match(code, place)) is None:
            raise wrong(f"unexpected {code[place]!r} in command")
        place = match.end()
        if match.lastgroup is None:
            spaced = True
            continue
        yield TemplateToken(match.lastgroup, match[0], not spaced)
        spaced = False


def _number(text: str) -> int | float:
    if "." in text:
        return float(text)
    if len(text) > _MOST_DIGITS or not -(2**63) <= (value := int(text)) < 2**63:
        raise wrong(f"integer overflow: {text[:100]}")
    return value


def _unquoted(text: str) -> str:
    if text[0] == "`":
        return text[1:-1]
    try:
        # Bytes may be written one by one; half of a surrogate pair is no character.
        return b"".join(_bytes_of(found) for found in _LETTER.finditer(text[1:-1])).decode()
    except (ValueError, OverflowError) as error:
        raise wrong(f"bad text {text}") from error


def _bytes_of(letter: re.Match[str]) -> bytes:
    plain, control, octal, byte, *characters = letter.groups()
    if plain:
        return plain.encode()
    if control:
        return _CONTROLS[control]
    if octal or byte:
        return bytes([int(octal, 8) if octal else int(byte, 16)])
    if character := characters[0] or characters[1]:
        return chr(int(character, 16)).encode()
    raise ValueError(letter[0])


def parse(text: str, functions: Collection[str] | None = None) -> "Template":
    """Read a text; InvalidParameter where it is no template. A function that is none of `functions` and not built in is
    refused here, or when it is called where they are not given."""
    known = None if functions is None else {*BUILTINS, *functions}
    nodes: list[Node] = []
    open_branches: list[tuple[Branch, list[Node], int]] = []
    place, trim = 0, False
    while (begin := text.find("{{", place)) >= 0:
        if (match := _ACTION.match(text, begin, begin + LONGEST)) is None:
            raise wrong(
                "unclosed action" if len(text) - begin <= LONGEST else f"an action is longer than {LONGEST} bytes"
            )
        _add_literal(nodes, text[place:begin], trim, bool(match["left"]))
        place, trim = match.end(), bool(match["right"])
        if match["comment"] is None:
            nodes = _add_action(_Tokens(match["code"], known), nodes, open_branches)
    _add_literal(nodes, text[place:], trim, False)
    if open_branches:
        raise wrong("unexpected EOF")
    return Template(nodes)


def _add_literal(nodes: list[Node], text: str, trim_left: bool, trim_right: bool) -> None:
    text = text.lstrip(" \t\r\n") if trim_left else text
    text = text.rstrip(" \t\r\n") if trim_right else text
    if text:
        nodes.append(text)


def _add_action(tokens: _Tokens, nodes: list[Node], branches: list[tuple[Branch, list[Node], int]]) -> list[Node]:
    """Add what an action says; the list that the next one adds to."""
    for word in ("if", "with", "range"):
        if tokens.take("word", word):
            return _opened(word, tokens, nodes, branches, 1)
    if tokens.take("word", "else"):
        if not branches or nodes is branches[-1][0].otherwise:
            raise wrong("unexpected {{else}}")
        branch, outer, depth = branches[-1]
        for word in ("if", "with"):
            if tokens.take("word", word):
                # One `end` closes it all.
                branches[-1] = (branch, outer, 0)
                return _opened(word, tokens, branch.otherwise, branches, depth + 1)
        tokens.end()
        return branch.otherwise
    if tokens.take("word", "end"):
        tokens.end()
        if not branches:
            raise wrong("unexpected {{end}}")
        _, outer, depth = branches.pop()
        for _ in range(depth - 1):
            _, outer, _ = branches.pop()
        return outer
    if token := next((tokens.peek("word", word) for word in UNKNOWN if tokens.peek("word", word)), None):
        raise wrong(f"{{{{{token.text}}}}} is not known to Husk")
    pipeline = tokens.pipeline()
    tokens.end()
    nodes.append(pipeline)
    return nodes


UNKNOWN = ("define", "block", "template", "break", "continue")


def _opened(
    word: str, tokens: _Tokens, nodes: list[Node], branches: list[tuple[Branch, list[Node], int]], depth: int
) -> list[Node]:
    if len(branches) > DEEPEST:
        raise wrong("too deep")
    branch = Branch(word, tokens.pipeline())
    tokens.end()
    nodes.append(branch)
    branches.append((branch, nodes, depth))
    return branch.body


class Effort:
    """Bounds the work and the memory of renderings that share it."""

    def __init__(self, *, steps: int = MOST_STEPS, said: int = MOST_SAID) -> None:
        self._steps = steps
        self._size = said

    def step(self, count: int = 1) -> None:
        self._steps -= count
        if self._steps < 0:
            raise wrong("it does not come to an end")

    def look(self, value: object) -> None:
        """Count what it costs to go through all of a value."""
        if isinstance(value, str):
            self.step(len(value) // _LETTERS)
        elif isinstance(value, dict | list):
            self.step(len(value) // _ENTRIES)
            for inner in value.values() if isinstance(value, dict) else value:
                self.look(inner)

    def say(self, text: str) -> None:
        self._size -= len(text)
        if self._size < 0:
            raise wrong("it says too much")


def refuse(value: object, name: str) -> object:
    """Raise for a field that is not there."""
    known = isinstance(value, Structure) or not isinstance(value, dict)
    raise wrong(f"can't evaluate field {name}" if known else f'map has no entry for key "{name}"')


class Template:
    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes

    def render(
        self,
        dot: object,
        functions: Mapping[str, Function],
        effort: Effort | None = None,
        missing: Missing = refuse,
    ) -> str:
        run = _Run({**BUILTINS, **functions}, effort or Effort(), missing)
        run.write(self._nodes, dot, ChainMap({"$": dot}))
        return "".join(run.said)


class _Run:
    """One rendering. Variables are those of the block and of those around it; a name is looked up in `scope`."""

    def __init__(self, functions: Mapping[str, Function], effort: Effort, missing: Missing) -> None:
        self._functions = functions
        self._effort = effort
        self._missing = missing
        self.said: list[str] = []

    def write(self, nodes: list[Node], dot: object, scope: Scope) -> None:
        for node in nodes:
            self._effort.step()
            if isinstance(node, str):
                self._say(node)
            elif isinstance(node, Branch):
                self._branch(node, dot, scope)
            else:
                value = self._value(node, dot, scope)
                if not node.variables:
                    self._effort.look(value)
                    self._say(printed(value))

    def _say(self, text: str) -> None:
        self._effort.say(text)
        self.said.append(text)

    def _branch(self, branch: Branch, dot: object, outer: Scope) -> None:
        scope = outer.new_child()
        if branch.word == "range":
            self._range(branch, dot, scope)
        elif is_true(value := self._value(branch.pipeline, dot, scope)):
            self.write(branch.body, value if branch.word == "with" else dot, scope)
        else:
            self.write(branch.otherwise, dot, scope)

    def _range(self, branch: Branch, dot: object, scope: Scope) -> None:
        names = branch.pipeline.variables
        found = self._value(Pipeline(branch.pipeline.commands), dot, scope)
        if isinstance(found, dict):
            entries: list[tuple[object, object]] = sorted(found.items())
        elif isinstance(found, list):
            entries = list(enumerate(found))
        elif found is None or found is ABSENT:
            entries = []
        else:
            raise wrong(f"range can't iterate over {printed(found)}")
        self._effort.step(len(entries))
        for key, value in entries:
            given = (key, value) if len(names) == 2 else (value,)
            self.write(branch.body, value, scope.new_child(dict(zip(names, given, strict=False))))
        if not entries:
            self.write(branch.otherwise, dot, scope)

    def _value(self, pipeline: Pipeline, dot: object, scope: Scope) -> object:
        given: tuple[object, ...] = ()
        for command in pipeline.commands:
            given = (self._command(command, given, dot, scope),)
        for name in pipeline.variables:
            if not pipeline.declares and name not in scope:
                raise wrong(f'undefined variable "{name}"')
            owner = scope.maps[0] if pipeline.declares else next(names for names in scope.maps if name in names)
            owner[name] = given[0]
        return given[0]

    def _command(self, command: tuple[Operand, ...], given: tuple[object, ...], dot: object, scope: Scope) -> object:
        first = command[0]
        if first.kind != "function":
            if given:
                raise wrong("can't give argument to non-function")
            return self._operand(first, dot, scope)
        arguments = [self._operand(operand, dot, scope) for operand in command[1:]]
        return self._fields(self._call(str(first.value), (*arguments, *given)), first.fields)

    def _call(self, name: str, arguments: tuple[object, ...]) -> object:
        if (function := self._functions.get(name)) is None:
            raise wrong(f'function "{name}" not defined')
        self._effort.step()
        for argument in arguments:
            self._effort.look(argument)
        try:
            return function(*arguments)
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            raise wrong(f"error calling {name}: {error}") from error

    def _operand(self, operand: Operand, dot: object, scope: Scope) -> object:
        value: object
        match operand.kind:
            case "dot":
                value = dot
            case "variable":
                if operand.value not in scope:
                    raise wrong(f'undefined variable "{operand.value}"')
                value = scope[str(operand.value)]
            case "pipeline":
                assert isinstance(operand.value, Pipeline)
                value = self._value(operand.value, dot, scope)
            case "function":
                value = self._call(str(operand.value), ())
            case _:
                value = operand.value
        return self._fields(value, operand.fields)

    def _fields(self, value: object, names: tuple[str, ...]) -> object:
        for name in names:
            value = value[name] if isinstance(value, dict) and name in value else self._missing(value, name)
        return value
