"""Sizes, times and names as docker writes them for people. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from husk.text.terminals import coloured as coloured
from husk.text.terminals import in_line as in_line
from husk.text.terminals import json_text as json_text
from husk.text.terminals import visible as visible

_DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\a": "\\a", "\b": "\\b"}


def size(count: float, digits: int = 3) -> str:
    """`1.98MB`"""
    return _sized(count, 1000.0, _DECIMAL, digits)


def binary_size(count: float) -> str:
    """`61.9MiB`"""
    return _sized(count, 1024.0, _BINARY, 4)


def _sized(count: float, base: float, units: Sequence[str], digits: int) -> str:
    place = 0
    while count >= base and place < len(units) - 1:
        count /= base
        place += 1
    return f"{count:.{digits}g}{units[place]}"


def duration(seconds: float) -> str:
    """`About a minute`, `3 hours`"""
    minutes, hours = int(seconds / 60), int(seconds / 3600 + 0.5)
    if seconds < 1:
        return "Less than a second"
    if seconds < 2:
        return "1 second"
    for below, count, unit in (
        (seconds < 60, int(seconds), "seconds"),
        (minutes == 1, 0, "About a minute"),
        (minutes < 60, minutes, "minutes"),
        (hours == 1, 0, "About an hour"),
        (hours < 48, hours, "hours"),
        (hours < 24 * 14, hours // 24, "days"),
        (hours < 24 * 60, hours // 24 // 7, "weeks"),
        (hours < 24 * 365 * 2, hours // 24 // 30, "months"),
    ):
        if below:
            return f"{count} {unit}" if count else unit
    return f"{int(seconds / 3600) // 24 // 365} years"


def ago(since: float, now: float) -> str:
    return f"{duration(now - since)} ago"


def moment(at: float) -> str:
    """`2026-01-02 03:04:05 +0000 UTC`"""
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S %z %Z")


def rfc3339(at: float) -> str:
    """`2026-01-02T03:04:05Z`, or with the offset of a zone of ours."""
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds").replace("+00:00", "Z")


def shortened(text: str, most: int) -> str:
    """At most so many characters, the last of them an ellipsis where something is left out."""
    return text if len(text) <= most else text[: most - 1] + "…"


def quoted(text: str) -> str:
    """A string as Go writes it in its source."""
    return '"' + "".join(_ESCAPES.get(letter, letter) for letter in text) + '"'


def short_id(identity: str) -> str:
    return identity.removeprefix("sha256:")[:12]


def pairs(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{name}={value}" for name, value in (labels or {}).items())


def ports(given: Iterable[Mapping[str, Any]]) -> str:
    """`0.0.0.0:8080->80/tcp, 9000-9001/tcp`: neighbours that lead to themselves are written as a range."""
    begun: dict[str, tuple[int, int]] = {}
    ranges: list[str] = []
    mappings: list[str] = []
    for port in sorted(given, key=_order):
        inside, outside = int(port["PrivatePort"]), int(port.get("PublicPort") or 0)
        address, kind = str(port.get("IP") or ""), str(port.get("Type") or "tcp")
        key = kind
        if address:
            if outside != inside:
                mappings.append(f"{_host(address, outside)}->{inside}/{kind}")
                continue
            key = f"{address}/{kind}"
        first, last = begun.get(key, (0, 0))
        if not first:
            begun[key] = (inside, inside)
        elif inside == last + 1:
            begun[key] = (first, inside)
        else:
            ranges.append(_range(key, first, last))
            begun[key] = (inside, inside)
    ranges.extend(_range(key, first, last) for key, (first, last) in begun.items())
    return ", ".join([*ranges, *mappings])


def _order(port: Mapping[str, Any]) -> tuple[int, str, int, str]:
    public = int(port.get("PublicPort") or 0)
    return int(port["PrivatePort"]), str(port.get("IP") or ""), public, str(port.get("Type") or "")


def _range(key: str, first: int, last: int) -> str:
    address, _, kind = key.rpartition("/")
    shown = str(first) if first == last else f"{first}-{last}"
    return f"{_host(address, shown)}->{shown}/{kind}" if address else f"{shown}/{kind}"


def _host(address: str, port: int | str) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
