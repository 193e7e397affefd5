"""Go templates, as far as people use them with `--format`: fields, pipes, `json`, `range`, `if`, `index` and the like.

A template is taken apart once into pieces that each write something of a document. Pure.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from husk.cli.kit.words import json_text
from husk.errors import InvalidParameter
from husk.text.digits import read_number

_ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`|\(|\)|[^\s()]+')
_MISSING = "<no value>"
# What documents of the API have only where there is something to tell. Others that are missing are misspelt.
_MAY_BE_OMITTED = frozenset({
    "Architecture", "Author", "Comment", "Config", "ConfigFrom", "Container", "ContainerConfig", "Containers",
    "Created", "CreatedAt", "Descriptor", "DockerVersion", "Endpoint", "GraphDriver", "ImageManifestDescriptor",
    "JobStatus", "Labels", "ManagerStatus", "Manifests", "Metadata", "NetworksAttachments", "Options", "OsVersion",
    "Parent", "Peers", "PreviousSpec", "RepoDigests", "RepoTags", "ServiceStatus", "Services", "SizeRootFs",
    "SizeRw", "Status", "UpdateStatus", "UsageData", "Variant", "VirtualSize",
})  # fmt: skip
# Writes something, given the document and the place in it that `.` means.
Piece = Callable[[Any, Any], str]


class Template:
    """A template that can be filled again and again; InvalidParameter says what of it is not understood."""

    def __init__(self, text: str) -> None:
        parts = _ACTION.split(_trimmed(text))
        # Every second part is an action.
        self._tokens = list(enumerate(parts))
        self._next = 0
        self._pieces, end = self._block()
        if end:
            raise _not_understood(end)

    def fill(self, document: Any) -> str:
        return "".join(piece(document, document) for piece in self._pieces)

    def _block(self) -> tuple[list[Piece], str]:
        """Pieces up to `end` or `else`, and which of them it was."""
        pieces: list[Piece] = []
        while self._next < len(self._tokens):
            place, text = self._tokens[self._next]
            self._next += 1
            if place % 2 == 0:
                if text:
                    pieces.append(_literal(text))
            elif text == "end" or text.split(" ")[0] == "else":
                return pieces, text
            elif text.split(" ")[0] in ("range", "if", "with"):
                pieces.append(self._branch(*text.partition(" ")[::2]))
            elif not text.startswith("/*"):
                pieces.append(_shown(_pipeline(text)))
        return pieces, ""

    def _branch(self, kind: str, condition: str) -> Piece:
        value = _pipeline(condition)
        body, end = self._block()
        other: list[Piece] = []
        if end.startswith("else if "):
            other = [self._branch("if", end.removeprefix("else if "))]
        elif end == "else":
            other, end = self._block()
        if not end:
            raise InvalidParameter(f"template: '{{{{{kind}}}}}' without '{{{{end}}}}'")
        return _branching(kind, value, body, other)


def _trimmed(text: str) -> str:
    """`{{-` and `-}}` take the white space before and behind them away."""
    return re.sub(r"-\}\}\s+", "-}}", re.sub(r"\s+\{\{-", "{{-", text))


def _literal(text: str) -> Piece:
    return lambda root, here: text


def _shown(value: Callable[[Any, Any], Any]) -> Piece:
    return lambda root, here: printed(value(root, here))


def _branching(kind: str, value: Callable[[Any, Any], Any], body: Sequence[Piece], other: Sequence[Piece]) -> Piece:
    def write(root: Any, here: Any) -> str:
        found = value(root, here)
        if not found or found == _MISSING:
            return "".join(piece(root, here) for piece in other)
        if kind == "range":
            each = list(found.values()) if isinstance(found, Mapping) else list(found)
            return "".join(piece(root, item) for item in each for piece in body)
        return "".join(piece(root, found if kind == "with" else here) for piece in body)

    return write


def printed(value: Any) -> str:
    """As Go prints it."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return str(value).lower()
        case Mapping():
            return f"map[{' '.join(f'{key}:{printed(value[key])}' for key in sorted(value))}]"
        case str():
            return value
        case Sequence():
            return f"[{' '.join(map(printed, value))}]"
    return str(value)


def _pipeline(text: str) -> Callable[[Any, Any], Any]:
    """Commands with `|` between them: what one gives is the last argument of the next."""
    commands: list[list[str]] = [[]]
    for word in _WORD.findall(text):
        if word == "|":
            commands.append([])
        else:
            commands[-1].append(word)
    if not all(commands):
        raise _not_understood(text)
    steps = [_command(iter(command), text) for command in commands]

    def value(root: Any, here: Any) -> Any:
        found: list[Any] = []
        for step in steps:
            found = [step(root, here, found)]
        return found[0]

    return value


def _command(words: Iterator[str], whole: str) -> Callable[[Any, Any, list[Any]], Any]:
    terms = list(_terms(words, whole))
    first = terms[0]
    if isinstance(first, str):
        function = _FUNCTIONS.get(first)
        if function is None:
            raise _not_understood(first)
        arguments = terms[1:]
        if any(isinstance(term, str) for term in arguments):
            raise _not_understood(whole)

        def called(root: Any, here: Any, piped: list[Any]) -> Any:
            given = [term(root, here) for term in arguments if not isinstance(term, str)]
            try:
                return function(*given, *piped)
            except (TypeError, ValueError, KeyError, IndexError) as error:
                raise InvalidParameter(f"template: {first} in '{whole}': {error}") from None

        return called
    if len(terms) > 1:
        raise _not_understood(whole)
    return lambda root, here, piped: first(root, here)


def _terms(words: Iterator[str], whole: str) -> Iterator[str | Callable[[Any, Any], Any]]:
    """Names of functions as they are; all else as what gives its value."""
    for word in words:
        if word == "(":
            inner: list[str] = []
            depth = 1
            for each in words:
                depth += {"(": 1, ")": -1}.get(each, 0)
                if depth == 0:
                    break
                inner.append(each)
            yield _pipeline(" ".join(inner))
        elif word.startswith(("'", '"', "`")):
            text = json.loads(word) if word.startswith('"') else word[1:-1]
            yield _constant(text)
        elif (number := read_number(word, -(1 << 63))) is not None:
            yield _constant(number)
        elif word in ("true", "false"):
            yield _constant(word == "true")
        elif word.startswith(("$", ".")):
            yield _path(word)
        elif word.isidentifier():
            yield word
        else:
            raise _not_understood(whole)


def _constant(value: Any) -> Callable[[Any, Any], Any]:
    return lambda root, here: value


def _path(word: str) -> Callable[[Any, Any], Any]:
    """`.State.Status`; `$` begins at the whole document."""
    from_root = word.startswith("$")
    names = [name for name in word.removeprefix("$").split(".") if name]

    def found(root: Any, here: Any) -> Any:
        value = root if from_root else here
        for name in names:
            if not isinstance(value, Mapping) or name not in value:
                if value is root and name not in _MAY_BE_OMITTED:
                    raise InvalidParameter(f"template: {word}: there is no {name!r}; --json shows what there is")
                return _MISSING
            value = value[name]
        return value

    return found


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        value = value.get(key, "") if isinstance(value, Mapping) else value[key]
    return value


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "json": lambda value: json_text(json.dumps(value, ensure_ascii=False, separators=(",", ":"))),
    "upper": lambda value: str(value).upper(),
    "lower": lambda value: str(value).lower(),
    "title": lambda value: str(value).title(),
    "len": len,
    "index": _index,
    "join": lambda values, separator: separator.join(values),
    "split": lambda value, separator: value.split(separator),
    "println": lambda *values: " ".join(map(printed, values)) + "\n",
    "print": lambda *values: "".join(map(printed, values)),
    "printf": lambda form, *values: form.replace("%v", "%s").replace("%q", '"%s"') % values,
    "truncate": lambda value, most: value[:most],
    "eq": lambda first, *others: first in others,
    "ne": lambda first, second: first != second,
    "not": lambda value: not value,
    "and": lambda *values: next((value for value in values if not value), values[-1]),
    "or": lambda *values: next((value for value in values if value), values[-1]),
}


def _not_understood(what: str) -> InvalidParameter:
    return InvalidParameter(
        f"template: {what!r} is not understood: use fields, range, if, {', '.join(_FUNCTIONS)}, or --json"
    )
