"""Times as the API writes them: RFC 3339 in UTC with nanoseconds, and Go durations for people."""

import calendar
import re
import time

from husk.errors import InvalidParameter

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?([Zz]|[+-]\d\d:\d\d)?", re.ASCII
)
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_UNIT_NS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


def now_ns() -> int:
    return time.time_ns()


def rfc3339(ns: int) -> str:
    """`2026-01-02T03:04:05.000000006Z`: nine digits always, so that texts sort as times do."""
    seconds, rest = divmod(ns, 10**9)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:09d}Z"


def parse_rfc3339(text: str) -> int:
    """Nanoseconds since the epoch; zone and time of day may lack (UTC, midnight). The year 1 counts as 0."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise InvalidParameter(f"invalid time {text!r}: expected RFC 3339, such as 2006-01-02T15:04:05Z")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    fields = (int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))
    if not (1 <= fields[1] <= 12 and 1 <= fields[2] <= 31 and fields[3] < 24 and fields[4] < 60 and fields[5] <= 60):
        raise InvalidParameter(f"invalid time {text!r}: a part is out of range")
    if fields[0] <= 1:
        return 0
    ns = calendar.timegm((*fields, 0, 0, 0)) * 10**9 + int((fraction or "0").ljust(9, "0"))
    if zone and zone not in "Zz":
        offset = (int(zone[1:3]) * 3600 + int(zone[4:6]) * 60) * 10**9
        ns += offset if zone[0] == "-" else -offset
    return ns


def parse_timestamp(text: str) -> int | None:
    """What clients send as since/until: seconds with a fraction, RFC 3339, or a duration back from now. Empty: None."""
    if text in ("", "0"):
        return None
    if re.fullmatch(r"-?\d{1,18}(\.\d+)?", text, re.ASCII):
        whole, _, fraction = text.partition(".")
        return int(whole) * 10**9 + int((fraction or "0")[:9].ljust(9, "0"))
    if (duration := parse_duration(text)) is not None:
        return now_ns() - duration
    return parse_rfc3339(text)


def parse_duration(text: str) -> int | None:
    """Go's duration syntax (`1h30m`, `1.5s`) in nanoseconds; None if it is not one."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text)
    if not rest or _DURATION.sub("", rest):
        return None
    return sign * sum(int(float(number) * _UNIT_NS[unit]) for number, unit in _DURATION.findall(rest))


def human_duration(seconds: float) -> str:
    """The words of `docker ps` for how long ago something was."""
    whole = int(seconds)
    if whole < 1:
        return "Less than a second"
    if whole == 1:
        return "1 second"
    if whole < 60:
        return f"{whole} seconds"
    minutes = whole // 60
    if minutes == 1:
        return "About a minute"
    if minutes < 60:
        return f"{minutes} minutes"
    hours = int(seconds / 3600 + 0.5)
    if hours == 1:
        return "About an hour"
    if hours < 48:
        return f"{hours} hours"
    if hours < 24 * 7 * 2:
        return f"{hours // 24} days"
    if hours < 24 * 30 * 2:
        return f"{hours // 24 // 7} weeks"
    if hours < 24 * 365 * 2:
        return f"{hours // 24 // 30} months"
    return f"{int(seconds / 3600) // 24 // 365} years"
