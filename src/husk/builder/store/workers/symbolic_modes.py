"""Symbolic modes, as `chmod` takes them: `u+x`, `go=u-w,a+X`. No mask of the process counts."""

import stat

_ALL = 0o777
_WHO = {"u": 0o4700, "g": 0o2070, "o": 0o007, "a": 0o6777}
_SHIFTS = {"u": 6, "g": 3, "o": 0}
_BITS = {"r": 0o444, "w": 0o222, "x": 0o111}
_STICKY = 0o1000
_SET_ID = 0o6000


def apply(text: str, mode: int) -> int:
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
