"""The forms that the arguments of instructions have: JSON arrays, words, `name=value` pairs."""

import json
import re

from msgspec import Struct

from husk.builder.dockerfile.errors import DockerfileError

BLANKS = re.compile(r"[\t\v\f\r ]+")


class Pair(Struct, frozen=True):
    name: str
    value: str
    legacy: bool = False  # written as `ENV name value`


def json_array(text: str) -> list[str] | None:
    """The strings of a JSON array; None if it is none, which makes it a text for a shell."""
    if not text.lstrip().startswith("["):
        return None
    try:
        found: list[object] = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    words = [word for word in found if isinstance(word, str)]
    if len(words) != len(found):
        raise DockerfileError("when using JSON array syntax, arrays must be comprised of strings only")
    return words


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN and Infinity are Python's own


def blank_separated(text: str) -> list[str]:
    return BLANKS.split(text) if text else []


def words(text: str, escape: str) -> list[str]:
    """Words with the quotes and escapes that they were written with: the expansion of variables needs them."""
    found: list[str] = []
    letters: list[str] = []
    quote = ""
    empty_counts = False
    position = 0
    while position < len(text):
        letter = text[position]
        position += 1
        if letter == escape and quote != "'":
            follower = text[position : position + 1]
            position += 1
            # At the very end it is nothing.
            letters.append(letter + follower if follower else "")
            continue
        if not quote and letter.isspace():
            if letters or empty_counts:
                found.append("".join(letters))
            letters, empty_counts = [], False
            continue
        if letter == quote:
            quote = ""
        elif not quote and letter in "'\"":
            quote, empty_counts = letter, True
        letters.append(letter)
    if "".join(letters) or empty_counts:
        found.append("".join(letters))
    return found


def pairs(text: str, escape: str, keyword: str) -> list[Pair]:
    """`name=value ...`, or the old form with one name and the rest of the line."""
    found = words(text, escape)
    if not found:
        raise DockerfileError(f"{keyword} requires at least one argument")
    if "=" not in found[0]:
        name, *value = BLANKS.split(text, maxsplit=1)
        if not value:
            raise DockerfileError(f"{keyword} must have two arguments", plain=True)
        return [Pair(name, value[0], legacy=True)]
    return [_pair(word, keyword) for word in found]


def _pair(word: str, keyword: str) -> Pair:
    name, equals, value = word.partition("=")
    if not equals:
        message = f'Syntax error - can\'t find = in "{word}". Must be of the form: name=value'
        raise DockerfileError(message, plain=True)
    if not name:
        raise DockerfileError(f"{keyword} names can not be blank")
    return Pair(name, value)
