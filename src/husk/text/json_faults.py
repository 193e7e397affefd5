"""Faults of a text that is no JSON, in Go's words, which clients of dockerd read and match.

msgspec has read the text and says where it stopped: what Go calls that is told by the byte there and those right before
it. Nothing is read a second time.
"""

import re

from husk.text.patterns import pattern

_PLACE = pattern(r" \(byte (\d+)\)$")
_KEY, _VALUE = "looking for beginning of object key string", "looking for beginning of value"
_PAIR, _ELEMENT = "after object key:value pair", "after array element"
_NUMBER = "in numeric literal"
# What msgspec calls a fault; how far behind the byte in question it stands then; what Go says of that byte.
_FAULTS = (
    ("trailing comma in object", 0, _KEY),
    ("trailing comma in array", 0, _VALUE),
    ("object keys must be strings", 0, _KEY),
    ("expected ':'", 0, "after object key"),
    ("expected ',' or '}'", 0, _PAIR),
    ("expected ',' or ']'", 0, _ELEMENT),
    ("invalid escape character in string", 1, "in string escape code"),
    ("invalid character in unicode escape", 1, r"in \u hexadecimal character escape"),
)
_LITERALS = (b"true", b"false", b"null")
_BEGUN = pattern(rb"(?<![a-z])[tfn][a-z]{0,4}+.?\Z", re.DOTALL)
_LEADING_ZERO = pattern(rb"([:,\[])[ \t\r\n]*-?0\Z")
_ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", "\\": r"\\"}
# More than any literal, and white space before a number.
_LOOK_BACK = 64


def in_go_words(body: bytes, told: str) -> str:
    """`told` is what msgspec says of a body; what it says of nothing that Go knows stays."""
    if told == "Input data was truncated":
        return "invalid JSON: unexpected EOF"
    if (found := _PLACE.search(told)) is None:
        return f"invalid JSON: {told}"
    place = int(found[1])
    if "trailing characters" in told:
        return "unexpected content after JSON"
    for words, behind, meaning in _FAULTS:
        if words in told:
            return _invalid(body, place - behind, meaning)
    if "invalid number" in told:
        return _invalid(body, place, _after_number(body[max(0, place - _LOOK_BACK) : place]))
    return _unexpected(body, place) if "invalid character" in told else f"invalid JSON: {told}"


def _after_number(before: bytes) -> str:
    """A number ends behind a zero in front; elsewhere it is what is wrong."""
    zero = _LEADING_ZERO.search(before)
    return _NUMBER if zero is None else _PAIR if zero[1] == b":" else _ELEMENT


def _unexpected(body: bytes, place: int) -> str:
    before = body[max(0, place - _LOOK_BACK) : place]
    if (literal := _BEGUN.search(before)) is not None:
        wanted = next(word for word in _LITERALS if word[0] == literal[0][0])
        begin = place - len(literal[0])
        for number, letter in enumerate(wanted):
            if body[begin + number : begin + number + 1] != bytes((letter,)):
                expected = f"in literal {wanted.decode()} (expecting {_quoted(letter)})"
                return _invalid(body, begin + number, expected)
    if before.endswith(b"-"):
        return _invalid(body, place, _NUMBER)
    in_string = body[place : place + 1] < b" " and before.rstrip()[-1:] not in (b"", b":", b",", b"[")
    return _invalid(body, place, "in string literal" if in_string else _VALUE)


def _invalid(body: bytes, place: int, meaning: str) -> str:
    if place >= len(body):
        return "invalid JSON: unexpected EOF"
    return f"invalid JSON: invalid character {_quoted(body[place])} {meaning}"


def _quoted(byte: int) -> str:
    character = chr(byte)
    if character == "'":
        return r"'\''"
    if character.isprintable() and character != "\\":
        return f"'{character}'"
    escape = "\\x%02x" if byte < 0x80 else "\\u%04x"
    return f"'{_ESCAPES.get(character) or escape % byte}'"
