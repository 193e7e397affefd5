"""The level of a line of a log, as programs write it: in JSON, as `level=error`, as a word in front. Pure."""

import re
from functools import cache

from husk.errors import InvalidParameter

# From the least to the most serious; what programs call them.
LEVELS = ("trace", "debug", "info", "warning", "error", "fatal")
_WORDS = {
    "trace": "trace", "trc": "trace", "finest": "trace",
    "debug": "debug", "dbg": "debug", "dbug": "debug", "fine": "debug",
    "info": "info", "inf": "info", "information": "info", "notice": "info", "log": "info",
    "warn": "warning", "warning": "warning", "wrn": "warning",
    "error": "error", "err": "error", "eror": "error", "severe": "error", "fail": "error",
    "fatal": "fatal", "ftl": "fatal", "critical": "fatal", "crit": "fatal", "panic": "fatal", "alert": "fatal",
    "emerg": "fatal", "emergency": "fatal",
}  # fmt: skip
# bunyan's and pino's numbers.
_NUMBERS = {"10": "trace", "20": "debug", "30": "info", "40": "warning", "50": "error", "60": "fatal"}
# A level stands near the beginning of a line.
_LOOKED_AT = 400
_FIELD = r"""\b(?:level|lvl|severity|levelname|log\.level)["']?\s{0,9}[=:]\s{0,9}["']?([A-Za-z]{1,20}|[1-6]0\b)"""
_MARK = r"[\[<(|]\s{0,9}([A-Za-z]{3,11})\s{0,9}[\]>)|:]"
_WORD = r"(?:^|[\s\d:.\]Z-])(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|SEVERE|FATAL|CRITICAL|PANIC|EMERG|LOG)\b"
_FIRST = r"^\s*(trace|debug|info|notice|warn|warning|error|err|fatal|critical|panic)\b\s*:"
_KLOG = r"^([IWEF])\d{4} \d\d:"
_KLOGS = {"I": "info", "W": "warning", "E": "error", "F": "fatal"}


def require(level: str) -> None:
    """Raise InvalidParameter for what is neither a level nor empty."""
    if level and level not in LEVELS:
        raise InvalidParameter(f"invalid level {level!r}: expected one of {', '.join(LEVELS)}")


@cache
def _compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a pattern when it is wanted: a command that lists containers does not wait for it."""
    return re.compile(pattern, flags)


def level_of(line: str) -> str:
    """The level that a line says it has: one of `LEVELS`, or empty where it says none."""
    text = line[:_LOOKED_AT]
    if found := _compiled(_FIELD, re.IGNORECASE).search(text):
        word = found[1].lower()
        if level := _NUMBERS.get(word) or _WORDS.get(word):
            return level
    if found := _compiled(_KLOG).match(text):
        return _KLOGS[found[1]]
    for found in _compiled(_MARK).finditer(text):
        if level := _WORDS.get(found[1].lower()):
            return level
    found = _compiled(_FIRST, re.IGNORECASE).match(text) or _compiled(_WORD).search(text)
    return _WORDS[found[1].lower()] if found else ""


def at_least(level: str, wanted: str) -> bool:
    """Tell whether a level is as serious as the wanted one; a line that says none is only where none is wanted."""
    if not wanted:
        return True
    return bool(level) and LEVELS.index(level) >= LEVELS.index(wanted)
