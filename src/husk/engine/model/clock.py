"""Times as the API writes them: RFC 3339 in UTC with nanoseconds, and Go durations for people."""

import re
import time
from datetime import UTC, date, datetime

from husk.errors import InvalidParameter
from husk.text.patterns import pattern

_RFC3339 = pattern(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?)?([Zz]|[+-]\d\d:\d\d)?", re.ASCII
)
# The micro sign exists twice in Unicode; Go takes both.
_DURATION = pattern(r"(\d{0,18})(?:\.(\d*))?(ns|us|µs|\u03bcs|ms|s|m|h)", re.ASCII)
_UNIT_NS = {
    "ns": 1, "us": 10**3, "µs": 10**3, "\u03bcs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9,
}  # fmt: skip
_LONGEST = 2**63 - 1
# The last moment of the year 9999: later years have five digits, and texts would no longer sort as times do.
LATEST = 253_402_300_800 * 10**9 - 1


def now_ns() -> int:
    return time.time_ns()


def rfc3339(ns: int) -> str:
    """`2026-01-02T03:04:05.000000006Z`: nine digits always, so that texts sort as times do."""
    seconds, rest = divmod(ns, 10**9)
    return "{:04d}-{:02d}-{:02d}T{:02d}:{:02d}:{:02d}.{:09d}Z".format(*time.gmtime(seconds)[:6], rest)


def shortest_rfc3339(ns: int) -> str:
    """The same without zeros at the end, as Go writes times into documents that have a digest."""
    moment, _, fraction = rfc3339(ns).removesuffix("Z").partition(".")
    fraction = fraction.rstrip("0")
    return f"{moment}.{fraction}Z" if fraction else f"{moment}Z"


def parse_rfc3339(text: str) -> int:
    """Nanoseconds since the epoch; zone and time of day may lack (UTC, midnight). The year 1 counts as 0."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise InvalidParameter(f"invalid time {text!r}: expected RFC 3339, such as 2006-01-02T15:04:05Z")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    fields = (int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))
    hours, minutes = (0, 0) if not zone or zone in "Zz" else (int(zone[1:3]), int(zone[4:6]))
    if not (_is_date(*fields[:3]) and max(fields[3], hours) < 24 and max(fields[4], fields[5], minutes) < 60):
        raise InvalidParameter(f"invalid time {text!r}: a part is out of range")
    if fields[0] <= 1:
        return 0
    moment = datetime(*fields, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    ns = (moment.days * 86400 + moment.seconds) * 10**9 + _nanoseconds(fraction or "")
    offset = (hours * 3600 + minutes * 60) * 10**9
    return ns + offset if zone and zone[0] == "-" else ns - offset


def _is_date(year: int, month: int, day: int) -> bool:
    try:
        date(max(year, 1), month, day)
    except ValueError:
        return False
    return True


def _nanoseconds(fraction: str) -> int:
    return int(fraction[:9].ljust(9, "0"))


def parse_timestamp(text: str) -> int | None:
    """Parse a client's since/until: seconds with a fraction, RFC 3339, or a duration back from now. Empty: None."""
    if not text:
        return None
    if re.fullmatch(r"-?\d{1,18}(\.\d+)?", text, re.ASCII):
        whole, _, fraction = text.partition(".")
        return min(int(whole) * 10**9 + _nanoseconds(fraction), LATEST)
    if (duration := parse_duration(text)) is not None:
        return now_ns() - duration
    try:
        return parse_rfc3339(text)
    except InvalidParameter:
        raise InvalidParameter(f'failed to parse value as time or duration: "{text}"') from None


def parse_moment(text: str) -> int:
    """The same where a moment has to be named: neither empty nor before the epoch."""
    moment = None if re.fullmatch(r"-[\d.]*", text, re.ASCII) else parse_timestamp(text)
    if moment is None:
        raise InvalidParameter(f'failed to parse value as time or duration: "{text}"')
    return moment


def parse_duration(text: str) -> int | None:
    """Go's duration syntax (`1h30m`, `1.5s`) in nanoseconds; None if it is not one."""
    sign, rest = (-1 if text.startswith("-") else 1), text[text.startswith(("-", "+")) :]
    if rest == "0":
        return 0
    total, position = 0, 0
    while match := _DURATION.match(rest, position):
        whole, fraction, unit = match[1], (match[2] or "")[:18], match[3]
        if not (whole or fraction):
            return None
        total += int(whole or "0") * _UNIT_NS[unit] + int(fraction or "0") * _UNIT_NS[unit] // 10 ** len(fraction)
        position = match.end()
    return sign * total if 0 < position == len(rest) and total <= _LONGEST else None


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


def lasts(seconds: float) -> float:
    """For how many seconds `human_duration` has the same words from now on, at least."""
    step = 1 if seconds < 60 else 60 if seconds < 3600 else 1800
    return step - max(0.0, seconds) % step
