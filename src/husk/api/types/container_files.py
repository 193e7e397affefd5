"""A container's files on the wire."""

from msgspec import Struct


class PathStat(Struct, kw_only=True, rename="camel"):
    """The file that a path names; `mode` has Go's bits."""

    name: str
    size: int
    mode: int
    mtime: str
    link_target: str


class Change(Struct, kw_only=True, rename="pascal"):
    path: str
    kind: int
