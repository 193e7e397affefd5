"""Challenges in a WWW-Authenticate header: the kinds of authorization that a server asks for.

Pure. One header may hold several challenges, and quoted values may hold commas, so the header is read token by token.
"""

from collections.abc import Iterable, Mapping

import msgspec

from husk.text.patterns import pattern

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = pattern(rf'({_TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))')
_SCHEME = pattern(rf"({_TOKEN})(?=\s|,|$)")
_WORD = pattern(_TOKEN)
# Behind so much no other header is read; a registry has one challenge.
_LONGEST = 16 << 10
_ESCAPE = pattern(r"\\(.)")


class Challenge(msgspec.Struct, frozen=True):
    """One way to authenticate: the scheme (`basic`, `bearer`) and its parameters, names in lower case."""

    scheme: str
    parameters: Mapping[str, str]


def parse_challenges(headers: Iterable[str]) -> list[Challenge]:
    """The challenges of all WWW-Authenticate headers of an answer; what cannot be read, or is too long, is skipped."""
    found: list[Challenge] = []
    left = _LONGEST
    for header in headers:
        if left <= 0:
            break
        left -= len(header)
        parameters: dict[str, str] | None = None
        position = 0
        while position < len(header):
            if (pair := _PARAMETER.match(header, position)) and parameters is not None:
                quoted, bare = pair[2], pair[3]
                parameters.setdefault(pair[1].lower(), _ESCAPE.sub(r"\1", quoted) if quoted is not None else bare)
                position = pair.end()
            elif scheme := _SCHEME.match(header, position):
                parameters = {}
                found.append(Challenge(scheme[1].lower(), parameters))
                position = scheme.end()
            else:
                # Of a word that is neither all is skipped: it would be read again from each of its letters.
                word = _WORD.match(header, position)
                position = word.end() if word else position + 1
    return found
