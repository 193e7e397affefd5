"""The files that make up a container's log, and their order.

`container.log` is the one that conmon writes; full ones are put aside as `container.log.<n>`, the higher the later,
packed ones with `.gz` behind that. Numbers only grow, and the last file put aside always stays, so a reader that knows
its own number finds what comes next. Putting aside is a rename under conmon's feet: until it has been told to open a
new file it goes on writing to the old one, and nothing is lost.
"""

import contextlib
import gzip
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from husk.kernel.inotify import IN_MODIFY, Watches
from husk.kernel.inotify import FileWatch as FileWatch

_CHUNK = 1 << 18


class RotatedFile(NamedTuple):
    """A file that was put aside."""

    number: int
    path: Path

    @property
    def packed(self) -> bool:
        return self.path.suffix == ".gz"


class OpenFile:
    """One file of a log, open for reading whatever becomes of its name."""

    def __init__(self, number: int, fd: int, packed: bool = False) -> None:
        self.number = number
        self._fd = fd
        self._packed = packed

    def plain(self) -> int:
        """A descriptor of the log's text, of which a packed file is unpacked first (that takes time)."""
        if self._packed:
            # A door: tempfile brings all of shutil's archives along, and few look at packed logs.
            import tempfile

            with tempfile.TemporaryFile() as text:
                with os.fdopen(os.dup(self._fd), "rb") as raw, gzip.open(raw) as packed:
                    _copy(packed, text)
                text.flush()
                fresh = os.dup(text.fileno())
            os.close(self._fd)
            self._fd, self._packed = fresh, False
        return self._fd

    @property
    def modified_ns(self) -> int:
        return os.fstat(self._fd).st_mtime_ns

    @property
    def inode(self) -> int:
        return os.fstat(self._fd).st_ino

    def close(self) -> None:
        os.close(self._fd)


class LogFiles:
    """The files of one log. Quick calls only, except `tidy`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._name = re.compile(re.escape(path.name) + r"\.(\d+)(\.gz)?", re.ASCII)

    @property
    def present(self) -> bool:
        """True while there is a directory for the files, which goes with its container."""
        return self.path.parent.exists()

    def aside(self) -> list[RotatedFile]:
        """The files put aside, the oldest first."""
        found: dict[int, RotatedFile] = {}
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self.path.parent):
                if match := self._name.fullmatch(name):
                    number = int(match[1])
                    # Both forms are there when packing was cut off at its very end: the packed one is complete.
                    if match[2] or number not in found:
                        found[number] = RotatedFile(number, self.path.with_name(name))
        return [found[number] for number in sorted(found)]

    def number(self) -> int:
        """The number that the file being written gets when it is put aside."""
        aside = self.aside()
        return aside[-1].number + 1 if aside else 1

    def size(self) -> int:
        """Return the size in bytes of the file being written. FileNotFoundError where it was put aside."""
        return self.path.stat().st_size

    def is_begun(self) -> bool:
        """Return True if there is a file being written."""
        return self.path.exists()

    def put_aside(self) -> None:
        """Take the file that is being written out of the way; its writer has to be told."""
        self.path.rename(self.path.with_name(f"{self.path.name}.{self.number()}"))

    def open_all(self) -> list[OpenFile]:
        """All files, the oldest first."""
        while True:
            opened: list[OpenFile] = []
            try:
                for number, path in self._names():
                    opened.append(OpenFile(number, os.open(path, os.O_RDONLY | os.O_CLOEXEC), path.suffix == ".gz"))
            except FileNotFoundError:  # packed or dropped since it was listed
                for file in opened:
                    file.close()
            else:
                return opened

    def after(self, file: OpenFile) -> OpenFile | None:
        """The file after this one, once nothing is written to this one any more."""
        while True:
            try:
                if os.stat(self.path).st_ino == file.inode:
                    return None
            except FileNotFoundError:
                # Put aside, and its writer does not know yet, or will never.
                if file.number >= self.number() - 1:
                    return None
            later = [(number, path) for number, path in self._names() if number > file.number]
            if not later:
                return None
            number, path = later[0]
            with contextlib.suppress(FileNotFoundError):
                return OpenFile(number, os.open(path, os.O_RDONLY | os.O_CLOEXEC), path.suffix == ".gz")

    def tidy(self, max_files: int, compress: bool) -> None:
        """Drop the oldest files until `max_files` (two or more) are left with the one being written; pack the rest."""
        for leftover in self.path.parent.glob(f"{self.path.name}.*.new"):
            leftover.unlink(missing_ok=True)
        aside = self.aside()
        kept = aside[-(max_files - 1) :]
        for old in aside[: len(aside) - len(kept)]:
            self._drop(old)
        for old in kept:
            plain = self.path.with_name(f"{self.path.name}.{old.number}")
            if old.packed:
                plain.unlink(missing_ok=True)
            elif compress:
                _pack(plain)

    def _names(self) -> Iterator[tuple[int, Path]]:
        aside = self.aside()
        yield from aside
        if self.is_begun():
            yield (aside[-1].number + 1 if aside else 1), self.path

    def _drop(self, old: RotatedFile) -> None:
        for suffix in ("", ".gz"):
            self.path.with_name(f"{self.path.name}.{old.number}{suffix}").unlink(missing_ok=True)


def _pack(path: Path) -> None:
    fresh = path.with_name(path.name + ".new")
    try:
        with path.open("rb") as text, gzip.open(fresh, "wb", compresslevel=6) as packed:
            _copy(text, packed)
            written = os.fstat(text.fileno())
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    os.utime(fresh, ns=(written.st_atime_ns, written.st_mtime_ns))
    fresh.rename(path.with_name(path.name + ".gz"))
    path.unlink()


def _copy(source: gzip.GzipFile | BinaryIO, target: gzip.GzipFile | BinaryIO) -> None:
    while piece := source.read(_CHUNK):
        target.write(piece)


class GrowthWatches:
    """Told when a log grows, for any number of logs."""

    def __init__(self) -> None:
        self._watches = Watches()

    def add(self, path: Path, told: Callable[[], None]) -> int:
        """The number is for `remove`. OSError where there is no such file, or the host has no watches left."""
        return self._watches.add(path, IN_MODIFY, lambda _: told())

    def remove(self, number: int) -> None:
        self._watches.remove(number)

    def close(self) -> None:
        self._watches.close()


def size_of(fd: int) -> int:
    return os.fstat(fd).st_size


def read_at(fd: int, size: int, position: int) -> bytes:
    """At most so many bytes from a position on; none at the end."""
    return os.pread(fd, size, position)


def noted(path: Path) -> str:
    """Read what `note` has written; OSError where nothing was."""
    return path.read_text()


def note(path: Path, text: str) -> None:
    """Write a small file beside a log, which is there whole or not at all."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text)
    os.replace(fresh, path)
