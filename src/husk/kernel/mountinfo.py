"""What is mounted in the namespace of a process: `/proc/<pid>/mountinfo`, read into entries."""

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


def mounted(pid: int | str = "self") -> list[Mounted]:
    with open(f"/proc/{pid}/mountinfo", "rb") as table:
        return parse(table.read())


def parse(table: bytes) -> list[Mounted]:
    found = []
    # Decoded as a whole, and at line feeds alone: a host may have thousands of lines, and each start looks at some.
    for line in os.fsdecode(table).split("\n"):
        if not line:
            continue
        fields = line.split(" ")
        kind = fields[fields.index("-", 6) + 1]
        point, root = (unescape(os.fsencode(each)) if "\\" in each else each for each in (fields[4], fields[3]))
        found.append(Mounted(point, kind, fields[2], root, frozenset(fields[5].split(","))))
    return found


def unescape(field: bytes) -> str:
    if b"\\" in field:
        field = re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), field)
    return os.fsdecode(field)
