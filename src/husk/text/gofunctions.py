"""The functions that every Go template has, and how values are written. Pure; part of `gotemplate`."""

import json
import re
import urllib.parse
from collections.abc import Callable, Mapping

from husk.text.patterns import pattern

_VERB = pattern(r"%(?P<flags>[-+# 0]*)(?P<width>\d{0,3})(?:\.(?P<precision>\d{1,3}))?(?P<verb>.)", re.DOTALL)

_HTML = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;", "'": "&#39;", '"': "&#34;"})
_KINDS = {str: "string", int: "int", bool: "bool", float: "float64"}


class Absent:
    """The value of what is not there, where that is no error."""

    def __bool__(self) -> bool:
        return False


ABSENT = Absent()


def is_true(value: object) -> bool:
    return bool(value)


def printed(value: object) -> str:
    """A value as `{{.}}` writes it."""
    if value is None:
        return "<nil>"
    if value is ABSENT:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{printed(item)}" for key, item in sorted(value.items())) + "]"
    if isinstance(value, list):
        return f"[{' '.join(map(printed, value))}]"
    return str(value)


def _print(*values: object) -> str:
    """As Go's: a space between two values of which neither is text."""
    result = ""
    for number, value in enumerate(values):
        apart = number and not isinstance(value, str) and not isinstance(values[number - 1], str)
        result += (" " if apart else "") + printed(value)
    return result


def _printf(form: object, *values: object) -> str:
    left = list(values)

    def write(match: re.Match[str]) -> str:
        verb = match["verb"]
        if verb == "%":
            return "%"
        if not left:
            return f"%!{verb}(MISSING)"
        text = _formatted(verb, left.pop(0), match["precision"])
        if "+" in match["flags"] and verb == "d" and not text.startswith(("-", "%")):
            text = "+" + text
        width = int(match["width"] or 0)
        if "-" in match["flags"]:
            return text.ljust(width)
        return text.zfill(width) if "0" in match["flags"] and verb != "s" else text.rjust(width)

    text = _VERB.sub(write, str(form))
    extra = ", ".join(f"{_KINDS.get(type(value), 'map[string]string')}={printed(value)}" for value in left)
    return text + (f"%!(EXTRA {extra})" if extra else "")


def _formatted(verb: str, value: object, precision: str | None) -> str:
    if verb == "v" or (verb == "s" and isinstance(value, str)):
        return printed(value)[: int(precision) if precision and verb == "s" else None]
    if verb == "q":
        return json.dumps(printed(value), ensure_ascii=False)
    if verb == "t" and isinstance(value, bool):
        return printed(value)
    if verb in "dxXob" and isinstance(value, int) and not isinstance(value, bool):
        return format(value, verb)
    if verb in "xX" and isinstance(value, str):
        return value.encode(errors="surrogateescape").hex()
    if verb in "feEgG" and isinstance(value, float):
        return format(value, f".{precision or 6}{verb}")
    return f"%!{verb}({_KINDS.get(type(value), 'map[string]string')}={printed(value)})"


def _index(value: object, *keys: object) -> object:
    for key in keys:
        if isinstance(value, dict):
            value = value.get(key, "")
        elif isinstance(value, list) and isinstance(key, int) and key >= 0:
            value = value[key]
        elif isinstance(value, str) and isinstance(key, int):
            value = value.encode(errors="surrogateescape")[key]
        else:
            raise TypeError(f"can't index item {printed(value)}")
    return value


def _slice(value: object, *bounds: object) -> str:
    if not isinstance(value, str) or len(bounds) > 2:
        raise TypeError("can't slice item")
    places = [bound for bound in bounds if isinstance(bound, int) and 0 <= bound <= len(value)]
    if len(places) < len(bounds):
        raise TypeError("slice index out of range")
    return value[slice(*(*places, None)[:2])] if places else value


def _and(*values: object) -> object:
    return next((value for value in values if not is_true(value)), values[-1])


def _or(*values: object) -> object:
    return next((value for value in values if is_true(value)), values[-1])


def _compared(test: Callable[[object, object], bool]) -> Callable[[object, object], bool]:
    def compare(left: object, right: object) -> bool:
        if isinstance(left, bool) or type(left) is not type(right):
            raise TypeError("incompatible types for comparison")
        return test(left, right)

    return compare


def _eq(first: object, *others: object) -> bool:
    if not others:
        raise TypeError("missing argument for comparison")
    if any(type(first) is not type(other) and not _is_nothing(first, other) for other in others):
        raise TypeError("incompatible types for comparison")
    return first in others


def _is_nothing(*values: object) -> bool:
    """Return True where one of the values is none: it equals no other."""
    return any(value is None or value is ABSENT for value in values)


def _len(value: object) -> int:
    if isinstance(value, str):
        return len(value.encode(errors="surrogateescape"))
    if isinstance(value, dict | list):
        return len(value)
    raise TypeError(f"len of {printed(value)}")


def _join(separator: str, *texts: str) -> str:
    """Docker's own."""
    return separator.join(texts)


BUILTINS: Mapping[str, Callable[..., object]] = {
    "and": _and,
    "or": _or,
    "not": lambda value: not is_true(value),
    "eq": _eq,
    "ne": lambda left, right: not _eq(left, right),
    "lt": _compared(lambda left, right: left < right),  # type: ignore[operator]
    "le": _compared(lambda left, right: left <= right),  # type: ignore[operator]
    "gt": _compared(lambda left, right: left > right),  # type: ignore[operator]
    "ge": _compared(lambda left, right: left >= right),  # type: ignore[operator]
    "index": _index,
    "slice": _slice,
    "len": _len,
    "print": _print,
    "printf": _printf,
    "println": lambda *values: " ".join(map(printed, values)) + "\n",
    "html": lambda *values: _print(*values).translate(_HTML),
    "urlquery": lambda *values: urllib.parse.quote_plus(_print(*values)),
    "join": _join,
}
