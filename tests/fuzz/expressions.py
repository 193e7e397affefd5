"""Every regular expression of the sources, and texts that make one slow which is not linear.

Python's own expressions go back and try again: `(a+)+$` takes exponential time, `\\s+$` quadratic time where it is
searched. The texts are made of what an expression has in it: the beginning of what it matches, a piece of it many
times, and something that it cannot match.
"""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

import husk

_SOURCES = Path(husk.__file__).parent
_METHODS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
_OWN = ("cli", "client")
_ENDS = ("", "\n", "\0", "\u00e9!")
_REPEATS = (re._constants.MAX_REPEAT, re._constants.MIN_REPEAT, re._constants.POSSESSIVE_REPEAT)  # type: ignore[attr-defined]
# Characters that stand for the others of their kind.
_ALPHABET = "a0 \t\n-_.:/\\\"'=,A{([*\x1b\u00e9"


class Expression(msgspec.Struct, frozen=True):
    """One that stands at `place`, and how it is used."""

    place: str
    compiled: Any
    method: str

    def use(self, text: str) -> None:
        subject = text.encode("latin-1") if isinstance(self.compiled.pattern, bytes) else text
        match self.method:
            case "sub" | "subn":
                self.compiled.sub(lambda found: found[0], subject)
            case "finditer":
                for _ in self.compiled.finditer(subject):
                    pass
            case method:
                getattr(self.compiled, method)(subject)


def expressions() -> Iterator[Expression]:
    """Those of the daemon; who types a command is nobody's enemy but their own."""
    for path in sorted(_SOURCES.rglob("*.py")):
        place = path.relative_to(_SOURCES).as_posix()
        if place.split("/")[0] not in _OWN:
            yield from _expressions_of(place, ast.parse(path.read_text()))


def _expressions_of(place: str, tree: ast.Module) -> Iterator[Expression]:
    used: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in _METHODS:
            used.setdefault(node.value.id, set()).add(node.attr)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _makes_one(node.value) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            for method in sorted(used.get(name, ())):
                yield Expression(f"{place} {name}", getattr(_module(place), name), method)
        elif isinstance(node, ast.Call) and (method := _direct(node)) and isinstance(node.args[0], ast.Constant):
            flags = re.DOTALL if any("DOTALL" in ast.unparse(word) for word in node.keywords) else 0
            source: Any = node.args[0].value
            yield Expression(f"{place} {source!r}", re.compile(source, flags), method)


def _module(place: str) -> object:
    return import_module("husk." + place.removesuffix(".py").removesuffix("/__init__").replace("/", "."))


def _makes_one(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return ast.unparse(node.func) in ("re.compile", "pattern", "patterns.pattern")


def _direct(node: ast.Call) -> str:
    name = ast.unparse(node.func)
    return name[3:] if name.startswith("re.") and name[3:] in _METHODS else ""


def texts(expression: Expression, length: int) -> Iterator[str]:
    """Texts of about this length."""
    source = expression.compiled.pattern
    parsed = re._parser.parse(source, expression.compiled.flags & ~re.UNICODE)  # type: ignore[attr-defined]
    begins: set[str] = {""}
    pieces: set[str] = set()
    _collect(parsed, "", begins, pieces)
    letters = [one for one in _ALPHABET if isinstance(source, str) or ord(one) < 256]
    for piece in sorted(pieces.union(letters)):
        for begin in sorted(begins):
            for end in _ENDS:
                yield begin + piece * (length // max(1, len(piece))) + end


def _collect(parsed: Any, before: str, begins: set[str], pieces: set[str]) -> str:
    """Add the beginnings in front of what is repeated, and what is; the shortest text that all of it matches."""
    text = ""
    for kind, value in parsed:
        if kind in _REPEATS:
            least, most, inner = value
            one = _collect(inner, before + text, begins, pieces)
            if most > 20:
                begins.update((before + text, before + text + one))
            pieces.update((one, text + one))
            text += one * min(least, 2)
        else:
            text += _shortest(kind, value, before + text, begins, pieces)
    pieces.add(text)
    pieces.discard("")
    return text


def _shortest(kind: Any, value: Any, before: str, begins: set[str], pieces: set[str]) -> str:
    match str(kind):
        case "LITERAL":
            return chr(value)
        case "NOT_LITERAL":
            return "a" if chr(value) != "a" else "b"
        case "ANY":
            return "a"
        case "IN":
            return next((one for one in _ALPHABET if _is_in(one, value)), "") or _first_of(value)
        case "SUBPATTERN":
            return _collect(value[3], before, begins, pieces)
        case "ATOMIC_GROUP":
            return _collect(value, before, begins, pieces)
        case "BRANCH":
            return next(iter([_collect(one, before, begins, pieces) for one in value[1]]))
        case _:  # places, and what looks around
            return ""


def _is_in(letter: str, kinds: Any) -> bool:
    source = re._parser.State()  # type: ignore[attr-defined]
    code = re._parser.SubPattern(source, [(re._constants.IN, kinds)])  # type: ignore[attr-defined]
    return re._compiler.compile(code).match(letter) is not None  # type: ignore[attr-defined]


def _first_of(kinds: Any) -> str:
    for kind, value in kinds:
        if str(kind) == "LITERAL":
            return chr(value)
        if str(kind) == "RANGE":
            return chr(value[0])
    return ""
