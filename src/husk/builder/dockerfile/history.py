"""The texts that an image's history has for instructions, in the form that Docker's builders give them."""

import json
from collections.abc import Iterable, Mapping

from husk.engine.model.container_config import HealthConfig

COMMENT = "buildkit.dockerfile.v0"
_UNITS = ((3_600_000_000_000, "h"), (60_000_000_000, "m"))


def quoted(words: Iterable[str]) -> str:
    """`["sh" "-c" "echo hi"]`"""
    return "[" + " ".join(json.dumps(word, ensure_ascii=False) for word in words) + "]"


def plain(words: Iterable[str]) -> str:
    """`[/a /b]`"""
    return "[" + " ".join(words) + "]"


def health_check(check: HealthConfig) -> str:
    """`HEALTHCHECK &{["CMD" "true"] "5m0s" "0s" "0s" "0s" '\\x03'}`: BuildKit's text has the number as a letter."""
    times = (check.interval, check.timeout, check.start_period, check.start_interval)
    told = " ".join(f'"{duration(value)}"' for value in times)
    return f"HEALTHCHECK &{{{quoted(check.test)} {told} {_letter(check.retries)}}}"


def _letter(number: int) -> str:
    """A number as Go quotes the letter that it stands for: `'\\x03'`, `'A'`."""
    if number < 128 and not chr(number).isprintable():
        named = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r"}
        return f"'\\{named.get(number) or f'x{number:02x}'}'"
    letter = chr(number) if number < 0xD800 else "\ufffd"
    return "'" + {"'": "\\'", "\\": "\\\\"}.get(letter, letter) + "'"


def duration(nanoseconds: int) -> str:
    """Go's form: `1m30s`, `1.5s`, `3ms`, `0s`."""
    for unit, name in ((1, "ns"), (1_000, "µs"), (1_000_000, "ms")):
        if 0 < nanoseconds < unit * 1_000 and nanoseconds < 1_000_000_000:
            return _decimal(nanoseconds, unit) + name
    text = ""
    for unit, name in _UNITS:
        if nanoseconds >= unit or text:
            text += f"{nanoseconds // unit}{name}"
            nanoseconds %= unit
    return f"{text}{_decimal(nanoseconds, 1_000_000_000)}s"


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    digits = str(rest).zfill(len(str(unit)) - 1).rstrip("0") if unit > 1 else ""
    return f"{whole}.{digits}" if digits else str(whole)


def run(words: list[str], args: list[tuple[str, str]], env: Mapping[str, str]) -> str:
    """`RUN |1 V=1 /bin/sh -c make # buildkit`: build arguments, their number first, then the command.

    Arguments have the values that the command sees.
    """
    named = {name: env.get(name, value) for name, value in args}
    told = [f"|{len(named)}", *(f"{name}={value}" for name, value in named.items())] if named else []
    return "RUN " + " ".join([*told, *words]) + " # buildkit"
