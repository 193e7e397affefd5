"""Words of a line that are read the same everywhere: filters and lengths of time. Pure."""

import re
from collections.abc import Iterable
from datetime import datetime

import click

from husk.errors import InvalidParameter

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]{1,19}(?:\.[0-9]{0,19})?|\.[0-9]{1,19})(ns|us|µs|ms|s|m|h)")


def filters_of(given: Iterable[str]) -> dict[str, list[str]]:
    """`name=value` of each; a name may be given again and again."""
    found: dict[str, list[str]] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise click.BadParameter(f"invalid argument {each!r} for --filter: expected NAME=VALUE")
        found.setdefault(name.strip().lower(), []).append(value.strip())
    return found


def seconds(text: str, flag: str) -> float:
    """A length of time as Go writes it: `1m30s`."""
    if text == "0":
        return 0.0
    parts = list(_PART.finditer(text))
    if not parts or "".join(part[0] for part in parts) != text:
        raise click.BadParameter(f"invalid argument {text!r} for {flag}: expected for example 30s or 1m30s")
    return sum(float(part[1]) * _UNITS[part[2]] for part in parts)


def mapping(flag: str, given: Iterable[str], bare: bool = False) -> dict[str, str]:
    """`NAME=VALUE` of each; a `bare` name has an empty value."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not (equals or bare):
            raise InvalidParameter(f'invalid argument "{text}" for "--{flag}" flag: expected NAME=VALUE')
        found[name] = value
    return found


def moment_of(text: object) -> datetime | None:
    """A moment as the API writes it, with up to nine digits behind the point; None where nothing is said."""
    said = re.sub(r"\.([0-9]{1,6})[0-9]*", r".\1", str(text or ""))
    try:
        found = datetime.fromisoformat(said)
    except ValueError:
        return None
    return found if found.year > 1 else None
