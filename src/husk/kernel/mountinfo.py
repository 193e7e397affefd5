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
    for line in table.splitlines():
        fields = line.split(b" ")
        kind = fields[fields.index(b"-", 6) + 1]
        options = frozenset(os.fsdecode(word) for word in fields[5].split(b","))
        found.append(
            Mounted(unescape(fields[4]), os.fsdecode(kind), os.fsdecode(fields[2]), unescape(fields[3]), options)
        )
    return found


def unescape(field: bytes) -> str:
    return os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), field))
