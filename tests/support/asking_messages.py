"""Messages of the source that ask their reader to do something: docs/howto/troubleshooting.md has to know them.

Looked at are texts that people get to read: errors that are raised, warnings and errors in the daemon's log, what
`husk doctor` finds, what `husk install` leaves out. A text asks for something when a clause of it begins with a verb
that tells what to do; a cure of `husk doctor` is nothing else. What lists the values that a setting may have is an
answer, and asks for nothing more.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_VERBS = (
    "add|choose|delete|enable|free|give|have|install|load|look|make|mount|move|open it|pull|put|raise|remove|run|say|"
    "see|set|start|stop|sudo|switch|try|unlock|upgrade|use|wait|write"
)
_ASKS = re.compile(
    rf"[:.;] (?i:`?(?:please |or )?(?:{_VERBS})\b)(?! (?:one of|\"|'|\{{\}}|nothing))|`husk doctor|: husk "
)
_CURE = re.compile(rf"(?i:{_VERBS}|docker|husk)\b")
_SAYING = ("warning", "error", "say", "complain", "failed", "Finding", "Reason")
_NAMES = ("cure", "advice", "told", "_ERRORS", "_NO_SYSTEMD")


class Message(NamedTuple):
    """A text with `{}` for what is known only when it is said."""

    place: str
    text: str


def asking(source: Path) -> Iterator[Message]:
    """Of all modules below a directory."""
    for path in sorted(source.rglob("*.py")):
        seen: set[int] = set()
        spots = list(filter(_says, ast.walk(ast.parse(path.read_text()))))
        # What is returned or yielded may be a finding, whose parts are told apart.
        for spot in sorted(spots, key=lambda each: isinstance(each, ast.Return | ast.Yield)):
            for node, text in _texts(spot, seen):
                if _ASKS.search(text) or (_is_cure(spot, node) and _CURE.match(text)):
                    yield Message(f"{path.relative_to(source)}:{node.lineno}", text)


def all_texts(source: Path) -> Iterator[str]:
    """Yield all texts that the source may say."""
    for path in source.rglob("*.py"):
        for _, text in _texts(ast.parse(path.read_text()), set()):
            yield text


def _says(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return _called(node) in _SAYING
    if isinstance(node, ast.Assign):
        return any(isinstance(each, ast.Name) and each.id in _NAMES for each in node.targets)
    return isinstance(node, ast.Raise | ast.Yield | ast.Return)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_cure(spot: ast.AST, node: ast.AST) -> bool:
    if isinstance(spot, ast.Assign):
        return True
    return isinstance(spot, ast.Call) and _called(spot) in ("Finding", "Reason") and node in spot.args[3:4]


def _texts(spot: ast.AST, seen: set[int]) -> Iterator[tuple[ast.expr, str]]:
    """Each text in there, as a whole."""
    for node in ast.walk(spot):
        if not isinstance(node, ast.expr) or id(node) in seen or (text := _text(node)) is None:
            continue
        seen.update(id(part) for part in ast.walk(node))
        yield node, " ".join(text.split())


def _text(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return None
