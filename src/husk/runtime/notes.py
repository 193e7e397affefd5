"""The note in a runtime's root, beside the directories of its containers: which program it is, and what it told.

A container may outlive the settings that name its runtime. And a program that is still the same file need not be asked
for its version at every start of the daemon. All functions block: call them from a thread.
"""

import os
from pathlib import Path

import msgspec

from husk.text.documents import MalformedDocument, decode

_NAME = ".program"


class Note(msgspec.Struct, frozen=True):
    path: str
    args: tuple[str, ...] = ()
    file: tuple[int, ...] = ()
    version: str = ""


def read(root: Path) -> Note | None:
    """None without a note that can be read."""
    try:
        return decode((root / _NAME).read_bytes(), Note)
    except (OSError, MalformedDocument):
        return None


def write(root: Path, path: str, args: tuple[str, ...], version: str = "") -> Note:
    """Note which program it is. What was told before still holds if the program is the same file."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    before, file = read(root), identity(path)
    if not version and before is not None and file and before.file == file:
        version = before.version
    note = Note(path, args, file, version)
    if note != before:
        fresh = root / f"{_NAME}.new"
        fresh.write_bytes(msgspec.json.encode(note))
        fresh.replace(root / _NAME)
    return note


def identity(path: str) -> tuple[int, ...]:
    """Return numbers that a file is known by; empty if it is none, or a script: what that calls may change unseen."""
    try:
        with open(path, "rb") as program:
            status = os.fstat(program.fileno())
            compiled = program.read(4) == b"\x7fELF"
    except OSError:
        return ()
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns) if compiled else ()


def names(path: str, word: str) -> bool:
    """Return True if the program's own file has this word in it. A script that calls the program has not."""
    try:
        return word.encode() in Path(path).read_bytes()
    except OSError:
        return False
