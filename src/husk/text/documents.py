"""JSON that somebody else has written: a client, an image, a registry, another node, or a disk that was damaged.

msgspec fails in several ways at it, among them RecursionError, which nobody expects, and what it takes without a type
may be nested deeper than Python can walk through afterwards. Here a document has a bounded size and depth, one without
a type a bounded number of values too, and what is not of the type that was asked for is `MalformedDocument`,
whatever is wrong.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar, overload

import msgspec

T = TypeVar("T")

# Bytes: what is read in 100 ms, and twice of what a registry takes for a manifest.
LARGEST: Final = 8 << 20
# Values of a document without a type: all ports of TCP that a client publishes one by one are 330,000. 8 MiB may be
# millions, which took 8 s to read, and 600 MiB.
MOST_VALUES: Final = 1 << 19
# Levels of objects and arrays in each other.
DEEPEST: Final = 100

_NESTED = frozenset({dict, list})


class MalformedDocument(msgspec.DecodeError):
    """It is no such document. Its text says why, for whoever has sent it."""


@overload
def decode(data: bytes | str, *, largest: int = LARGEST, most: int = 0) -> object: ...


@overload
def decode(data: bytes | str, type: type[T], *, largest: int = LARGEST, most: int = 0) -> T: ...


@overload
def decode(data: bytes | str, type: Any, *, largest: int = LARGEST, most: int = 0) -> Any: ...


def decode(data: bytes | str, type: object = object, *, largest: int = LARGEST, most: int = 0) -> object:
    """A value of the type, of plain ones without a type. Malformed for anything else.

    With `most`, one with a type may have no more values than that either.
    """
    if len(data) > largest:
        raise MalformedDocument(f"it is longer than {largest} bytes")
    if type is object:
        most = most or MOST_VALUES
    if most and _values(data) > most:
        raise MalformedDocument(f"it has more than {most} values")
    try:
        value = msgspec.json.decode(data, type=type)
    except RecursionError:
        raise MalformedDocument("it is nested too deeply") from None
    except UnicodeError:
        raise MalformedDocument("it is not UTF-8") from None
    except msgspec.DecodeError as error:
        raise MalformedDocument(str(error)) from None
    if type is object and _deeper(value, DEEPEST):
        raise MalformedDocument("it is nested too deeply")
    return value


def reader(type: type[T]) -> Callable[[bytes], T]:
    """`decode` for one type."""
    return lambda data: decode(data, type)


def _values(data: bytes | str) -> int:
    """As many values as can be in it: one, and one behind each of these signs. Those that are in texts count too."""
    if isinstance(data, str):
        return 1 + data.count(",") + data.count("[") - data.count("[]") + data.count("{") - data.count("{}")
    return 1 + data.count(b",") + data.count(b"[") - data.count(b"[]") + data.count(b"{") - data.count(b"{}")


def _deeper(value: object, levels: int) -> bool:
    """Level by level: what is deep need not be wide, and what is wide is seldom deep."""
    here = [value]
    for _ in range(levels):
        inner: list[object] = []
        for one in here:
            if isinstance(one, dict):
                inner += [item for item in one.values() if type(item) in _NESTED]
            elif isinstance(one, list):
                inner += [item for item in one if type(item) in _NESTED]
        if not inner:
            return False
        here = inner
    return True
