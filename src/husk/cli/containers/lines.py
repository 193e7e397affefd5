"""Lines of logs as they are told: their level, the fields of those that are JSON, and whose they are. Pure.

Lines come as bytes of strangers and are read with a bound: a line that is longer is not looked into.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from husk.cli.kit.words import in_line

# From the loudest to the quietest; words that mean the same stand together.
LEVELS = ("fatal", "error", "warning", "info", "debug", "trace")
_WORDS = {
    **dict.fromkeys(("fatal", "panic", "critical", "crit", "emerg", "emergency", "alert"), "fatal"),
    **dict.fromkeys(("error", "err", "eror", "severe"), "error"),
    **dict.fromkeys(("warning", "warn"), "warning"),
    **dict.fromkeys(("info", "information", "notice", "log"), "info"),
    **dict.fromkeys(("debug", "dbg", "fine"), "debug"),
    **dict.fromkeys(("trace", "verbose", "finest"), "trace"),
}
# Numbers that loggers of JavaScript write.
_NUMBERS = {60: "fatal", 50: "error", 40: "warning", 30: "info", 20: "debug", 10: "trace"}
_FIELDS = ("level", "severity", "lvl", "log.level", "levelname", "loglevel")
_LONGEST = 1 << 16
# Where a level stands in lines that are no JSON: `level=warn`, `[error]`, `ERROR:`, a word in capitals.
_ASSIGNED = re.compile(rb"\b(?:level|severity|lvl)[=:]\s?\"?([A-Za-z]{3,11})")
_MARKED = re.compile(rb"[\[<(]\s?([A-Za-z]{3,11})\s?[\])>]")
_SPOKEN = re.compile(
    rb"\b(FATAL|PANIC|CRITICAL|CRIT|EMERG|ALERT|ERROR|ERR|SEVERE|WARNING|WARN|INFO|NOTICE|DEBUG|TRACE)\b"
)
_BEGIN = 200
_TRACEBACK = b"Traceback (most recent call last)"
_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)


def level_of(line: bytes) -> str:
    """Tell how loud a line is; empty where it does not say."""
    if (document := parsed(line)) is not None:
        for name in _FIELDS:
            value = document.get(name)
            if isinstance(value, str) and value.lower() in _WORDS:
                return _WORDS[value.lower()]
            if isinstance(value, int) and value in _NUMBERS:
                return _NUMBERS[value]
        return ""
    begin = line[:_BEGIN]
    if begin.startswith(_TRACEBACK):
        return "error"
    for pattern in (_ASSIGNED, _MARKED):
        for found in pattern.finditer(begin):
            if level := _WORDS.get(found[1].decode().lower()):
                return level
    spoken = _SPOKEN.search(begin)
    return _WORDS[spoken[1].decode().lower()] if spoken else ""


def parsed(line: bytes) -> dict[str, Any] | None:
    """Read a line that is a JSON object; None for all others."""
    if not line.startswith(b"{") or len(line) > _LONGEST:
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


class LevelFilter:
    """Lines of a level and louder ones; a line that says none belongs to the one before, as those of tracebacks do."""

    def __init__(self, level: str) -> None:
        self._most = LEVELS.index(_WORDS[level])
        self._before: dict[str, int] = {}

    def keeps(self, line: bytes, stream: str) -> bool:
        """Tell if a line of a stream is to be shown."""
        found = level_of(line)
        if found:
            self._before[stream] = LEVELS.index(found)
        return self._before.get(stream, LEVELS.index("info")) <= self._most


def is_level(word: str) -> bool:
    return word in _WORDS


def fields_of(line: bytes, names: Sequence[str]) -> bytes:
    """Return these fields of a line that is JSON, `http.status` for one inside another; other lines as they are."""
    if (document := parsed(line)) is None:
        return line
    found = [_field(document, name) for name in names]
    return " ".join(text for text in found if text).encode(errors="replace")


def _field(document: Mapping[str, Any], name: str) -> str:
    value: Any = document.get(name)
    if value is None:
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else document.get(part) if value is None else None
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "…"  # it is read however deep it is, and cannot be written so


class Prefixes:
    """`web-1  | ` before each line of several containers, in a colour of its own at a terminal."""

    def __init__(self, names: Sequence[str], coloured: bool) -> None:
        width = max(map(len, names), default=0)
        self._prefixes = {}
        for place, name in enumerate(names):
            text = in_line(f"{name:<{width}} | ")
            colour = _COLOURS[place % len(_COLOURS)]
            self._prefixes[name] = (f"\x1b[{colour}m{text}\x1b[0m" if coloured else text).encode()

    def put(self, name: str, line: bytes) -> bytes:
        return self._prefixes[name] + line
