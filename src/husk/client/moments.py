"""Moments, as the API takes them: seconds since 1970."""

import re
import time
from datetime import datetime

from husk.errors import InvalidParameter

# A moment: a time, seconds since 1970, or what docker takes: `10m` for ten minutes ago, `2026-01-02T03:04:05Z`.
Moment = datetime | float | str | None

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_LENGTH = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,19})?)(ns|us|µs|ms|s|m|h)")
_LENGTHS = re.compile(rf"(?:{_LENGTH.pattern})+")


def moment(given: Moment) -> str | None:
    """Seconds since 1970 with their fraction; InvalidParameter for what is no moment. A time of no zone is ours."""
    if given is None or given == "":
        return None
    if isinstance(given, datetime):
        return f"{given.timestamp():.6f}"
    if isinstance(given, int | float):
        return f"{given:.9f}".rstrip("0").rstrip(".")
    if re.fullmatch(r"[0-9]{1,19}(\.[0-9]{1,19})?", given):
        return given
    if _LENGTHS.fullmatch(given):
        ago = sum(float(number) * _UNITS[unit] for number, unit in _LENGTH.findall(given))
        return f"{time.time() - ago:.6f}"
    try:
        return f"{datetime.fromisoformat(given).timestamp():.6f}"
    except ValueError:
        raise InvalidParameter(
            f"invalid moment: {given!r}: expected seconds since 1970, a time ago like 10m, or 2026-01-02T03:04:05Z"
        ) from None
