"""The detach keys in a terminal's input, which is followed without holding back more of it than must be."""

import re
from typing import NamedTuple

from husk.errors import InvalidParameter
from husk.text.patterns import pattern

DEFAULT_KEYS = b"\x10\x11"  # ctrl-p, ctrl-q

_CONTROL = {**{chr(ord("a") + i): i + 1 for i in range(26)}, "@": 0, "[": 27, "\\": 28, "]": 29, "^": 30, "_": 31}
_KEY = pattern(r"(?:ctrl-(.)|([\x00-\x7f])|(DEL))", re.DOTALL)


def parse_keys(text: str, what: str = "detach") -> bytes:
    """`ctrl-p,ctrl-q` or `ctrl-a,x` as bytes; empty means the default. `what` is what an error calls them."""
    if not text:
        return DEFAULT_KEYS
    keys = bytearray()
    for word in text.split(","):
        match = _KEY.fullmatch(word)
        if match is None or (match[1] is not None and match[1] not in _CONTROL):
            raise InvalidParameter(f"Invalid {what} keys ({text}) provided")
        keys.append(_CONTROL[match[1]] if match[1] is not None else ord(match[2] or "\x7f"))
    return bytes(keys)


class Fed(NamedTuple):
    data: bytes
    detached: bool


class DetachMatcher:
    """Feed it input; it gives back what belongs to the container, and says when the keys were complete."""

    def __init__(self, keys: bytes) -> None:
        self._keys = keys
        self._matched = 0

    def feed(self, data: bytes) -> Fed:
        """Bytes that may be the beginning of the keys stay here until the next ones decide."""
        if not self._matched and self._keys[:1] not in data:
            return Fed(data, False)
        held = self._keys[: self._matched] + data
        found = held.find(self._keys)
        if found >= 0:
            self._matched = 0
            return Fed(held[:found], True)
        keep = min(len(held), len(self._keys) - 1)
        while keep and not self._keys.startswith(held[len(held) - keep :]):
            keep -= 1
        self._matched = keep
        return Fed(held[: len(held) - keep], False)

    def flush(self) -> bytes:
        """The input has ended: what was held back was no detaching after all."""
        held, self._matched = self._keys[: self._matched], 0
        return held
