"""The look of copies: the options of `COPY` for owner, mode and time."""

import hashlib
import os
import stat

import msgspec

from husk.builder.store.sync_table import Brief
from husk.builder.store.workers.rooted_tree import Owner


class CopyLook:
    """The look of copies, where it is not that of what they are copied from."""

    def __init__(
        self,
        owner: Owner | None = None,
        mode: int | None = None,
        symbolic_mode: str = "",
        time: int | None = None,
    ) -> None:
        self.owner = owner
        self.time = time
        self._mode = mode
        self._symbolic_mode = symbolic_mode
        # Is it that of what is copied?
        self.is_same = owner is None and mode is None and not symbolic_mode and time is None

    def mode_of(self, status: os.stat_result) -> int:
        if self._symbolic_mode:
            return apply_symbolic_mode(self._symbolic_mode, status.st_mode)
        return stat.S_IMODE(status.st_mode) if self._mode is None else self._mode & 0o7777

    def owner_of(self, status: os.stat_result) -> Owner:
        return self.owner or (status.st_uid, status.st_gid)

    def times_of(self, status: os.stat_result) -> tuple[int, int]:
        return (status.st_atime_ns, status.st_mtime_ns) if self.time is None else (self.time, self.time)

    def key(self, target: str) -> str:
        """The same for all that look the same when they are copied to the same place from the same files."""
        said = msgspec.msgpack.encode((os.fsencode(target), self.owner, self.time, self._mode, self._symbolic_mode))
        return hashlib.sha256(said).hexdigest()

    def seen(self, brief: Brief) -> Brief:
        """The look of a copy, of what a table tells."""
        kind, mtime = stat.S_IFMT(brief.mode), brief.mtime if self.time is None else self.time
        status = os.stat_result((brief.mode, 0, 0, 1, brief.uid, brief.gid, brief.size, 0, 0, 0))
        # Links have all the same mode.
        mode = brief.mode if kind == stat.S_IFLNK else kind | self.mode_of(status)
        return Brief(mode, *self.owner_of(status), brief.size, mtime)


_ALL = 0o777
_WHO = {"u": 0o4700, "g": 0o2070, "o": 0o007, "a": 0o6777}
_SHIFTS = {"u": 6, "g": 3, "o": 0}
_BITS = {"r": 0o444, "w": 0o222, "x": 0o111}
_STICKY = 0o1000
_SET_ID = 0o6000


def apply_symbolic_mode(text: str, mode: int) -> int:
    """The permissions of a file of this mode (as `stat` tells it) after the changes."""
    executable = bool(mode & 0o111) or stat.S_ISDIR(mode)
    bits = stat.S_IMODE(mode)
    for clause in text.split(","):
        bits = _clause(clause, bits, executable)
    return bits


def _clause(clause: str, bits: int, executable: bool) -> int:
    rest = clause.lstrip("ugoa")
    named = clause[: len(clause) - len(rest)]
    who = 0
    for letter in named:
        who |= _WHO[letter]
    # Whoever names nobody means everybody, and the sticky bit as well.
    mask = who or _WHO["a"]
    while rest:
        operator, rest = rest[0], rest[1:]
        letters = rest[: len(rest) - len(rest.lstrip("rwxXstugo"))]
        rest = rest[len(letters) :]
        wanted = _wanted(letters, bits, executable, sets_id=not who or bool(who & ~0o007))
        allowed = mask | (_STICKY if "t" in letters and (not who or who & ~0o007) else 0)
        if operator == "+":
            bits |= wanted & allowed
        elif operator == "-":
            bits &= ~(wanted & allowed)
        else:
            # Who copies somebody's permissions leaves the special bits alone.
            cleared = mask & _ALL if letters and not letters.strip("ugo") else mask
            bits = bits & ~cleared | wanted & allowed
    return bits


def _wanted(letters: str, bits: int, executable: bool, sets_id: bool) -> int:
    """All bits that the letters name, for everybody."""
    wanted = 0
    for letter in letters:
        if letter in _BITS:
            wanted |= _BITS[letter]
        elif letter == "X":
            wanted |= 0o111 if executable else 0
        elif letter == "s":
            wanted |= _SET_ID if sets_id else 0
        elif letter == "t":
            wanted |= _STICKY
        else:
            one = bits >> _SHIFTS[letter] & 0o7
            wanted |= one << 6 | one << 3 | one
    return wanted
