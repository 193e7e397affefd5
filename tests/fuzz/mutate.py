"""Hostile neighbours of valid examples. The same chance gives the same ones."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

# Inputs are no longer than this: what reads them has 100 ms for each.
LARGEST = 1 << 16

_NUMBERS = (0, 1, -1, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30, 1e308, 0.1)
_TEXTS = (
    *("", " ", "\0", "/", "..", "../../etc/passwd", "-", "--help", "%s%n", "\u0661", "\ufeff", "\U0001f433", "\r\n"),
    *("$(id)", "${A:-${A:-x}}", "[" * 50, "\x1b[2J", "a" * 300, "0" * 5000, "9" * 400, "1-65535", "sha256:", "\\"),
)
_BYTES = (
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b"\n",
    b"\r\n\r\n",
    b"\x80" * 10,
    b"\x7f",
    b"0",
    b"9" * 30,
    b"/../",
    b'"',
    b"\\",
)


def mutated(chance: random.Random, examples: Sequence[bytes]) -> bytes:
    """Bytes: some are flipped, cut, doubled, replaced, or come from another example."""
    data = bytearray(chance.choice(examples))
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        _CHANGES[chance.randrange(len(_CHANGES))](chance, data, examples)
    return bytes(data[:LARGEST])


def _place(chance: random.Random, data: bytearray) -> int:
    return chance.randrange(len(data) + 1)


def _flip(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _set(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[chance.randrange(len(data))] = chance.randrange(256)


def _cut(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    del data[_place(chance, data) :]


def _remove(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    start = _place(chance, data)
    del data[start : start + chance.choice((1, 2, 8, 100))]


def _insert(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    start = _place(chance, data)
    data[start:start] = chance.choice(_BYTES)


def _text(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    start = _place(chance, data)
    data[start:start] = chance.choice(_TEXTS).encode()


def _double(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    start = _place(chance, data)
    end = start + chance.choice((1, 4, 30, 500))
    times = min(chance.choice((1, 2, 10, 1000)), LARGEST // (len(data) + 1))
    data[start:start] = bytes(data[start:end]) * times


def _splice(chance: random.Random, data: bytearray, examples: Sequence[bytes]) -> None:
    other = chance.choice(examples)
    data[_place(chance, data) :] = other[chance.randrange(len(other) + 1) :]


_CHANGES: tuple[Callable[[random.Random, bytearray, Sequence[bytes]], None], ...] = (
    *(_flip, _set, _cut, _remove, _insert, _text, _double, _splice),
)


def mutated_json(chance: random.Random, examples: Sequence[bytes]) -> bytes:
    """A document with other values, types and depths at a few places; now and then its text is changed as bytes are."""
    if chance.random() < 0.2:
        return mutated(chance, examples)
    tree: Any = [json.loads(chance.choice(examples))]
    for _ in range(chance.choice((1, 1, 2, 4))):
        _change(chance, tree)
    return _written(tree[0], ascii=chance.random() < 0.5).encode(errors="surrogatepass")[:LARGEST]


def _written(tree: Any, *, ascii: bool = True) -> str:
    try:
        return json.dumps(tree, ensure_ascii=ascii)
    except RecursionError:
        return "[" * LARGEST


def _change(chance: random.Random, tree: Any) -> None:
    """At a place that is deeper or less deep."""
    inside, key = tree, 0
    while isinstance(inside[key], dict | list) and inside[key] and chance.random() < 0.8:
        inside = inside[key]
        key = chance.choice(list(inside)) if isinstance(inside, dict) else chance.randrange(len(inside))
    match chance.randrange(8):
        case 0:
            inside[key] = odd(chance)
        case 1:
            # Many copies of many copies would be more than anybody can write.
            most = max(1, LARGEST // len(_written(inside[key])))
            inside[key] = [inside[key]] * min(chance.choice((1, 3, 300)), most)
        case 2:
            inside[key] = {chance.choice(_TEXTS): inside[key]}
        case 3:
            for _ in range(chance.choice((5, 90, 400))):
                inside[key] = [inside[key]] if chance.random() < 0.5 else {"a": inside[key]}
        case 4 if isinstance(inside, dict):
            del inside[key]
        case 5 if isinstance(inside, dict):
            inside[chance.choice(_TEXTS)] = odd(chance)
        case 6 if isinstance(inside[key], str):
            inside[key] = mutated(chance, [inside[key].encode(errors="surrogatepass")]).decode(errors="replace")[:3000]
        case _:
            inside[key] = odd(chance)


def odd(chance: random.Random) -> Any:
    """A value that nobody expects."""
    return chance.choice((None, True, False, [], {}, [[]], [None], {"": None}, chance.choice(_NUMBERS), text(chance)))


def text(chance: random.Random) -> str:
    return chance.choice(_TEXTS)
