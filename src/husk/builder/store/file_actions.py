"""The actions of a build on files: copy, make, link and remove them; and its selections of files that matter to it.

The words are BuildKit's. Paths are absolute in the file system that they belong to. An input is named by its place
among the inputs, `NONE` where there is none.
"""

from collections.abc import Sequence

from msgspec import Struct

NONE = -1


class Owner(Struct, frozen=True):
    """A user or group: by number, or by a name that is looked up in the file system of an input."""

    number: int | None = None
    name: str = ""
    input: int = NONE


_HIGHEST_ID = 0xFFFFFFFF


def id_of(text: str) -> int | None:
    """Read the number of a user or group; None for a text that is no such number."""
    if not text.isascii() or not text.isdigit() or len(text.lstrip("0")) > len(str(_HIGHEST_ID)):
        return None
    return number if (number := int(text.lstrip("0") or "0")) <= _HIGHEST_ID else None


class Copy(Struct, frozen=True, kw_only=True, tag="copy"):
    source: str
    destination: str
    user: Owner | None = None
    group: Owner | None = None
    mode: int | None = None
    symbolic_mode: str = ""  # u+x
    follow_links: bool = False
    contents_only: bool = False  # of a directory
    unpack: bool = False
    make_parents: bool = False
    wildcards: bool = False
    may_match_nothing: bool = False
    timestamp: int | None = None  # nanoseconds
    include: list[str] = []
    exclude: list[str] = []
    replace: bool = False  # what is in the way, though of another kind
    required: list[str] = []


class MakeFile(Struct, frozen=True, kw_only=True, tag="make-file"):
    path: str
    mode: int
    data: bytes
    user: Owner | None = None
    group: Owner | None = None
    timestamp: int | None = None


class MakeDirectory(Struct, frozen=True, kw_only=True, tag="make-directory"):
    path: str
    mode: int
    make_parents: bool = False
    user: Owner | None = None
    group: Owner | None = None
    timestamp: int | None = None


class Symlink(Struct, frozen=True, kw_only=True, tag="symlink"):
    target: str
    path: str
    user: Owner | None = None
    group: Owner | None = None
    timestamp: int | None = None


class Remove(Struct, frozen=True, kw_only=True, tag="remove"):
    path: str
    may_be_missing: bool = False
    wildcards: bool = False


class FileAction(Struct, frozen=True, kw_only=True):
    """One step of a file operation. It may begin with what an earlier one made: inputs count on with those."""

    action: Copy | MakeFile | MakeDirectory | Symlink | Remove
    input: int = NONE
    second_input: int = NONE  # what is copied from
    output: int = NONE


class Selection(Struct, frozen=True, kw_only=True):
    """The files of an input that matter, and the ways to find them."""

    path: str = "/"
    wildcards: bool = False
    follow_links: bool = False
    include: list[str] = []
    exclude: list[str] = []
    required: list[str] = []


def can_be_told(actions: Sequence[FileAction]) -> bool:
    """Tell if the tar of the result can be written while that is made. So it is with one copy of whatever is there."""
    action = actions[0].action if len(actions) == 1 else None
    if not isinstance(action, Copy) or action.unpack or action.replace or action.timestamp is not None:
        return False
    return not action.include and not action.exclude
