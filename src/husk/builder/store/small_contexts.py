"""Contexts of builds that are archives of a few small files: unpacked without a worker, which takes longer to begin.

Whatever is not plainly such an archive is left to the worker (`context`), which has the words for what is wrong, too.
"""

import os
from pathlib import Path

from husk.storage.tar.entry import BLOCK, REGULAR, TarEntry, TarError, clean_name
from husk.storage.tar.stream import TarStream, entries
from husk.storage.workers.extract import CREATE, set_time

_LARGEST = 1 << 16
_MOST_ENTRIES = 100
# Of an archive with such a file in it: headers, padding and a generous end mark are no part of it.
LARGEST_ARCHIVE = _LARGEST + (1 << 14)


def fill_small(directory: Path, archive: bytes) -> int | None:
    """Put the few small files of `archive` into an empty directory that nobody else writes to, all of them root's.

    The bytes that they have; None, and nothing is done, if a worker must do it. OSError if they cannot be written.
    """
    # A plain archive with its end mark: what else it be, or what is wrong with it, a worker finds out.
    files = _plain_files(archive) if archive.endswith(bytes(2 * BLOCK)) else None
    if files is None:
        return None
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for entry, data in files:
            _write(descriptor, entry, data)
    except OverflowError as error:
        raise OSError(f"a file cannot be written: {error}") from error
    finally:
        os.close(descriptor)
    return sum(len(data) for _, data in files)


def _plain_files(archive: bytes) -> list[tuple[TarEntry, bytes]] | None:
    """The files of an archive that has nothing else, no directory, and no more to tell of them than a header can."""
    buffers = iter([memoryview(archive)])
    stream = TarStream(lambda: next(buffers, memoryview(b"")))
    found: dict[bytes, tuple[TarEntry, bytes]] = {}
    try:
        for entry in entries(stream):
            entry.name = clean_name(entry.name)
            data = stream.take(entry.size)
            plain = entry.kind == REGULAR and entry.sparse is None and not entry.xattrs and len(data) == entry.size
            if not plain or entry.name in found or not entry.name or b"/" in entry.name or len(found) >= _MOST_ENTRIES:
                return None
            found[entry.name] = entry, data
    except TarError:
        return None
    return list(found.values())


def _write(directory: int, entry: TarEntry, data: bytes) -> None:
    file = os.open(entry.name, CREATE, entry.mode & 0o777, dir_fd=directory)
    with open(file, "wb", buffering=0) as writer:
        if writer.write(data) != len(data):
            raise OSError("a file cannot be written: it was cut short")
        os.fchown(file, 0, 0)
        # Writing and changing the owner take special bits away; a directory may have given the file others.
        os.fchmod(file, entry.mode)
        set_time(file, entry)
