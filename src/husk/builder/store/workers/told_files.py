"""The facts that a sync has told of a file system's files, for whoever copies them (`husk.builder.store.sync_table`).

The table also knows the tar that was made of these files when they were last copied, and what has not changed since is
in there. That holds until the host is started again: nobody has waited until such a tar and the table were on the disk.

One table is one file that several may read at once, and one alone may write: a lock on it says who does.
"""

import contextlib
import fcntl
import io
import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from husk.builder.store.sync_table import NO_PLACE, Listed, PackedTree, read_listed, read_packed, write_packed

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class ToldFiles:
    """Of one file system; opened while the files could be found (`open_told`)."""

    def __init__(
        self, file: BinaryIO, boot: str, packed: PackedTree | None = None, tar: mmap.mmap | None = None
    ) -> None:
        self._file = file
        self._boot = boot
        self._packed = packed
        self._tar = tar
        self._paths: list[bytes] = []

    def below(self, path: str) -> Listed | None:
        """All that is in a directory, in the order of a walk; None if it is not known, or there is more to tell."""
        self._file.seek(0)
        found = read_listed(self._file)
        if found is None:
            return None
        self._paths = found.paths
        if not path:
            return found
        prefix = os.fsencode(path) + b"/"
        chosen = [number for number, one in enumerate(found.paths) if one.startswith(prefix)]
        return Listed(
            [found.paths[number][len(prefix) :] for number in chosen],
            [found.briefs[number] for number in chosen],
            [found.places[number] for number in chosen],
        )

    def tar(self, key: str) -> mmap.mmap | None:
        """The tar that places are in, if its entries are those that `key` stands for."""
        return self._tar if self._packed is not None and self._packed.key == key else None

    def remember(self, path: str, places: Sequence[int], key: str, blob: str) -> None:
        """Note that what is below `path` is in this tar now, at these places; not, if somebody else reads the table."""
        prefix = os.fsencode(path) + b"/" if path else b""
        following = iter(places)
        every = [next(following) if one.startswith(prefix) else NO_PLACE for one in self._paths]
        if self._boot:
            with contextlib.suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                write_packed(self._file, every, PackedTree(blob, self._boot, key))


def open_told(table: str, blobs: str, boot_id: Path = _BOOT) -> ToldFiles | None:
    """None where there is no table, or none any more.

    `blobs` is the directory of all blobs, `boot_id` a file that names this start of the host.
    """
    if not table:
        return None
    try:
        file = io.BufferedRandom(io.FileIO(table, "r+"))
    except FileNotFoundError:
        return None
    fcntl.flock(file, fcntl.LOCK_SH)
    boot = _boot(boot_id)
    packed = read_packed(file)
    if packed is None or not boot or packed.boot != boot or not blobs:
        return ToldFiles(file, boot)
    try:
        with open(f"{blobs}/{packed.blob.removeprefix('sha256:')}", "rb") as blob:
            return ToldFiles(file, boot, packed, mmap.mmap(blob.fileno(), 0, prot=mmap.PROT_READ))
    except (OSError, ValueError):
        return ToldFiles(file, boot)  # it is not needed: the files are there


def _boot(file: Path) -> str:
    """Return the name of this start of the host, which no other start has; nothing where it is not told."""
    try:
        return file.read_text().strip()
    except OSError:
        return ""
