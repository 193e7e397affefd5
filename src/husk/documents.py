"""JSON that somebody else has written: a client, an image, a registry, another node, or a disk that was damaged.

msgspec fails in several ways at it, among them RecursionError, which nobody expects, and what it takes without a type
may be nested deeper than Python can walk through afterwards. Here a document has a bounded size and depth, and what is
not of the type that was asked for is `Malformed`, whatever is wrong with it.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar, overload

import msgspec

T = TypeVar("T")

# Bytes: what is read in 100 ms, and twice of what a registry takes for a manifest.
LARGEST: Final = 8 << 20
# Levels of objects and arrays in each other.
DEEPEST: Final = 100


class Malformed(msgspec.DecodeError):
    """It is no such document. Its text says why, for whoever has sent it."""


@overload
def decode(data: bytes | str, *, largest: int = LARGEST) -> object: ...


@overload
def decode(data: bytes | str, type: type[T], *, largest: int = LARGEST) -> T: ...


@overload
def decode(data: bytes | str, type: Any, *, largest: int = LARGEST) -> Any: ...


def decode(data: bytes | str, type: object = object, *, largest: int = LARGEST) -> object:
    """A value of the type, of plain ones without a type. Malformed for anything else."""
    if len(data) > largest:
        raise Malformed(f"it is longer than {largest} bytes")
    try:
        value = msgspec.json.decode(data, type=type)
    except RecursionError:
        raise Malformed("it is nested too deeply") from None
    except UnicodeError:
        raise Malformed("it is not UTF-8") from None
    except msgspec.DecodeError as error:
        raise Malformed(str(error)) from None
    if type is object and _deeper(value, DEEPEST):
        raise Malformed("it is nested too deeply")
    return value


def reader(type: type[T]) -> Callable[[bytes], T]:
    """`decode` for one type."""
    return lambda data: decode(data, type)


def _deeper(value: object, levels: int) -> bool:
    """Level by level: what is deep need not be wide, and what is wide is seldom deep."""
    here = [value]
    for _ in range(levels):
        inner: list[object] = []
        for one in here:
            if isinstance(one, dict):
                inner += [item for item in one.values() if isinstance(item, dict | list)]
            elif isinstance(one, list):
                inner += [item for item in one if isinstance(item, dict | list)]
        if not inner:
            return False
        here = inner
    return True
