"""Mounts in the namespace of a process: `/proc/<pid>/mountinfo`, read into entries."""

import os
import re

import msgspec


class Mounted(msgspec.Struct, frozen=True):
    """One line: where it is in the view of the process, and what."""

    point: str
    kind: str
    device: str
    root: str
    options: frozenset[str]


def mounted(pid: int | str = "self", below: str = "") -> list[Mounted]:
    """All, or those at and below a place."""
    with open(f"/proc/{pid}/mountinfo", "rb", buffering=0) as table:
        return parse(table.readall(), below)


def parse(table: bytes, below: str = "") -> list[Mounted]:
    found = []
    sought, inside = f" {below}", f"{below}/"
    # Decoded as a whole, and at line feeds alone: a host may have thousands of lines, and each start looks at some.
    for line in os.fsdecode(table).split("\n"):
        if not line or sought not in line:
            continue
        fields = line.split(" ")
        kind = fields[fields.index("-", 6) + 1]
        point, root = (unescape(os.fsencode(each)) if "\\" in each else each for each in (fields[4], fields[3]))
        if below and point != below and not point.startswith(inside):
            continue
        found.append(Mounted(point, kind, fields[2], root, frozenset(fields[5].split(","))))
    return found


def unescape(field: bytes) -> str:
    if b"\\" in field:
        field = re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), field)
    return os.fsdecode(field)
