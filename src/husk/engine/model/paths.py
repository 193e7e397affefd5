"""Paths inside containers, as Docker reads them, and those of a container on its host, as they are shown."""

import posixpath

from msgspec import Struct

from husk.errors import InvalidParameter

_LONGEST_PATH, _LONGEST_NAME = 4095, 255


class HostPaths(Struct, frozen=True):
    """The paths of a container's things on the host. `lower` begins with what holds its mount points."""

    resolv_conf: str
    hostname: str
    hosts: str
    log: str
    lower: list[str]
    upper: str
    work: str
    merged: str


def clean(path: str) -> str:
    """The shortest form of an absolute path; unlike POSIX, Docker sees nothing special in two leading slashes."""
    return "/" + posixpath.normpath("/" + path).lstrip("/")


def check_length(path: str) -> None:
    """Raise for a path that the kernel would not take: it has at most 4,095 bytes, and each name in it 255."""
    size = len(path.encode(errors="surrogateescape"))
    if size <= _LONGEST_NAME:
        return
    if size > _LONGEST_PATH or any(len(n.encode(errors="surrogateescape")) > _LONGEST_NAME for n in path.split("/")):
        raise InvalidParameter(f"file name too long: {path[:100]}... has {size} bytes")
