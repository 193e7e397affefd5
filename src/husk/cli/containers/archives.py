"""Files here as the archives that go to and come from containers. They lie on the disk meanwhile, not in memory."""

import asyncio
import os
import tarfile
import tempfile
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import ExitStack, closing
from typing import IO

from husk.cli.containers.placing import Placing
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
    try:
        placing = Placing(place, owners)
    except OSError as error:
        raise InvalidParameter(f"cannot write {place}: {error.strerror}") from None
    with closing(placing), tarfile.open(fileobj=file) as archive:
        for entry in archive:
            placing.put(archive, entry)
        placing.finish()
