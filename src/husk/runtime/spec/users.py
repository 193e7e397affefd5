"""The user that a container's process runs as: the client's `user[:group]`, by the image's own passwd and group."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from husk.errors import InvalidParameter

_MAX_ID = 2**31 - 1
_LONGEST = len(str(_MAX_ID))


class ProcessUser(Struct, frozen=True):
    uid: int = 0
    gid: int = 0
    additional_gids: tuple[int, ...] = ()
    listed: bool = True
    """True if it is in the passwd file: the runtime looks for its home there."""


def resolve_user(text: str, passwd: str, group: str, group_add: Sequence[str] = ()) -> ProcessUser:
    """Resolve as Docker does: names and numbers for both parts, an empty text is root.

    Without an explicit group, the user's groups in the group file are added. A number needs no entry, a name does.
    """
    user_text, _, group_text = text.partition(":")
    uid, gid, name = _find_user(user_text, passwd)
    supplementary: list[int] = []
    if group_text:
        gid = _find_group(group_text, group)
    elif name:
        supplementary = [_in_range(number) for _, number, members in _groups(group) if name in members]
    supplementary += [_find_group(item, group) for item in group_add]
    # The primary group is listed too: otherwise a process could drop it and escape a group's lack of rights.
    return ProcessUser(uid, gid, tuple(dict.fromkeys([gid, *supplementary])), bool(name))


def _find_user(text: str, passwd: str) -> tuple[int, int, str]:
    wanted = text or "0"
    for name, uid, gid in _users(passwd):
        if (text and name == text) or str(uid) == wanted:
            return _in_range(uid), _in_range(gid), name
    number = _number(wanted)
    if number is None:
        raise InvalidParameter(f"unable to find user {text}: no matching entries in passwd file")
    return number, 0, ""


def _find_group(text: str, group: str) -> int:
    for name, gid, _ in _groups(group):
        if name == text or str(gid) == text:
            return _in_range(gid)
    number = _number(text)
    if number is None:
        raise InvalidParameter(f"unable to find group {text}: no matching entries in group file")
    return number


def _number(text: str) -> int | None:
    if not (text.isascii() and text.removeprefix("-").isdigit()):
        return None
    return _in_range(-1 if text.startswith("-") else _decimal(text) or 0)


def _in_range(number: int) -> int:
    if not 0 <= number <= _MAX_ID:
        raise InvalidParameter(f"uids and gids must be in range 0-{_MAX_ID}")
    return number


def _decimal(digits: str) -> int | None:
    """None for what is no number. A file of an image may have thousands of digits, which Python refuses to convert: a
    number beyond the range is one as good as another."""
    if not (digits.isascii() and digits.isdigit()):
        return None
    significant = digits.lstrip("0")
    return int(significant or "0") if len(significant) <= _LONGEST else _MAX_ID + 1


def _users(passwd: str) -> Iterator[tuple[str, int, int]]:
    for fields in _entries(passwd):
        if len(fields) >= 4 and (uid := _decimal(fields[2])) is not None:
            yield fields[0], uid, _decimal(fields[3]) or 0


def _groups(group: str) -> Iterator[tuple[str, int, list[str]]]:
    for fields in _entries(group):
        if len(fields) >= 3 and (gid := _decimal(fields[2])) is not None:
            yield fields[0], gid, fields[3].split(",") if len(fields) > 3 else []


def _entries(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.strip().split(":")
