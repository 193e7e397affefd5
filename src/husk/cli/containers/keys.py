"""The keys that detach from a container, as docker writes them: `ctrl-p,ctrl-q`. Pure."""

from husk.errors import InvalidParameter

DEFAULT = "ctrl-p,ctrl-q"
_MARKS = {"@": 0, "[": 27, "\\": 28, "]": 29, "^": 30, "_": 31}


def sequence(text: str) -> bytes:
    """The bytes that a terminal sends for them."""
    found = bytearray()
    for key in text.split(","):
        if len(key) == 1:
            found += key.encode()
        elif key.upper() == "DEL":
            found.append(127)
        elif key.startswith("ctrl-") and len(key) == 6 and "a" <= key[5].lower() <= "z":
            found.append(ord(key[5].lower()) - ord("a") + 1)
        elif key.startswith("ctrl-") and key[5:] in _MARKS:
            found.append(_MARKS[key[5:]])
        else:
            raise InvalidParameter(f"invalid detach keys {text!r}: unknown character: '{key}'; expected {DEFAULT!r}")
    return bytes(found)


class KeyWatch:
    """Passes on what is typed, but for the keys. Those that were begun and not ended are passed on, too."""

    def __init__(self, keys: bytes) -> None:
        self._keys = keys
        self._held = b""
        self.detached = False

    def feed(self, typed: bytes) -> bytes:
        """Return the bytes to pass on. A beginning of the keys is held back until more is typed."""
        passed = bytearray()
        for byte in typed:
            self._held += bytes([byte])
            while self._held and not self._keys.startswith(self._held):
                passed.append(self._held[0])
                self._held = self._held[1:]
            if self._keys and self._held == self._keys:
                self.detached = True
                break
        return bytes(passed)
