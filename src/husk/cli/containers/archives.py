"""Files here as the archives that go to and come from containers. They lie on the disk meanwhile, not in memory."""

import asyncio
import os
import tarfile
import tempfile
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import ExitStack
from typing import IO

from husk.errors import InvalidParameter

_PIECE = 1 << 18


class Pack:
    """An archive that can be sent."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.size = os.fstat(file.fileno()).st_size

    async def pieces(self) -> AsyncIterator[bytes]:
        self._file.seek(0)
        with self._file:
            while data := self._file.read(_PIECE):
                yield data


def packed(source: str, name: str, follow: bool) -> Pack:
    """A file or directory under another name, with its owners by number; `follow` goes through a link itself."""

    def owned(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uname = entry.gname = ""  # names of here mean others there
        return entry

    with ExitStack() as undone:
        file = undone.enter_context(tempfile.TemporaryFile())
        try:
            with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
                archive.add(os.path.realpath(source) if follow else source.rstrip("/") or "/", name, filter=owned)
            file.flush()
        except OSError as error:
            raise InvalidParameter(f"cannot read {error.filename or source}: {error.strerror}") from None
        undone.pop_all()
        return Pack(file)


async def unpacked(pieces: AsyncIterable[bytes], place: str, owners: bool) -> int:
    """Put what an archive has to a place: its first entry becomes that. The size of the archive."""
    with tempfile.TemporaryFile() as file:
        async for piece in pieces:
            file.write(piece)
        count = file.tell()
        file.seek(0)
        await asyncio.to_thread(_unpack, file, place, owners)
    return count


def _unpack(file: IO[bytes], place: str, owners: bool) -> None:
    place = os.path.abspath(place)
    root, name = os.path.split(place)
    with tarfile.open(fileobj=file) as archive:
        # Ours is `_check`: tarfile has filters only from 3.11.4 on.
        archive.extraction_filter = _as_it_is
        first = ""
        for entry in archive:
            first = first or entry.name.strip("/")
            entry.name = moved(entry.name, first, name)
            if entry.islnk():
                entry.linkname = moved(entry.linkname, first, name)
            if not owners:
                entry.uid, entry.gid, entry.uname, entry.gname = os.getuid(), os.getgid(), "", ""
            _check(entry, root or "/")
            try:
                archive.extract(entry, root or "/", numeric_owner=True)
            except OSError as error:
                raise InvalidParameter(f"cannot write {entry.name}: {error.strerror}") from None


def _as_it_is(entry: tarfile.TarInfo, path: str) -> tarfile.TarInfo:
    return entry


def _check(entry: tarfile.TarInfo, root: str) -> None:
    """InvalidParameter for what would be written elsewhere, through `..` or a link that is there already; nothing comes
    out with rights of another user."""
    top = os.path.realpath(root)
    target = os.path.realpath(os.path.join(top, entry.name))
    if os.path.commonpath([top, target]) != top:
        raise InvalidParameter(f"the archive is not safe to unpack: {entry.name!r} leads out of {root}")
    entry.mode &= 0o755


def moved(name: str, first: str, new: str) -> str:
    """A name below the first entry, with that called otherwise."""
    bare = name.strip("/")
    if bare == first:
        return new
    return f"{new}/{bare.removeprefix(f'{first}/')}"
