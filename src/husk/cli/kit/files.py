"""Files that commands write and read: archives on their way, of which nothing half is left."""

import os
import sys
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import suppress
from typing import IO, Self

from husk.cli.kit.writing import at_terminal, write
from husk.errors import InvalidParameter, SystemFault

_PIECE = 1 << 18


async def written_to(file: str, pieces: AsyncIterable[bytes]) -> None:
    """Write an archive to a file, or to stdout without a name. The file is there when it is whole, or not at all."""
    if not file and at_terminal():
        raise InvalidParameter("cowardly refusing to save to a terminal. Use the -o flag or redirect")
    with _Target("" if file == "-" else file) as target:
        async for piece in pieces:
            target.write(piece)


class _Target:
    """Stdout, a pipe or device, or a file that is made beside its place and put there when it is whole."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._special = os.path.exists(file) and not os.path.isfile(file)
        self._beside = file if self._special else f"{file}.part-{os.getpid()}"
        self._opened = self._open() if file else None

    def _open(self) -> IO[bytes]:
        try:
            return open(self._beside, "wb")
        except OSError as error:
            raise SystemFault(f"cannot write {self._file}: {error.strerror}") from None

    def __enter__(self) -> Self:
        return self

    def write(self, piece: bytes) -> None:
        if self._opened is None:
            write(1, piece)
            return
        try:
            self._opened.write(piece)
        except OSError as error:
            raise SystemFault(f"cannot write {self._file}: {error.strerror}") from None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._opened is None:
            return
        try:
            self._opened.close()
            if kind is None and not self._special:
                os.replace(self._beside, self._file)
        except OSError as error:
            raise SystemFault(f"cannot write {self._file}: {error.strerror}") from None
        finally:
            if not self._special:
                with suppress(OSError):
                    os.unlink(self._beside)


async def read_from(file: str) -> AsyncIterator[bytes]:
    """Yield a file, or stdin without a name, piece by piece."""
    with _source(file) as opened:
        while data := opened.read(_PIECE):
            yield data


def _source(file: str) -> IO[bytes]:
    try:
        if file in ("", "-"):
            return open(0, "rb", closefd=False)
        return open(file, "rb")
    except OSError as error:
        raise InvalidParameter(f"cannot read {file or 'stdin'}: {error.strerror}") from None


def content_of(file: str) -> bytes:
    """Return all of a small file, or of stdin for `-`."""
    try:
        if file == "-":
            return sys.stdin.buffer.read()
        with open(file, "rb") as opened:
            return opened.read()
    except OSError as error:
        raise InvalidParameter(f"cannot read {file}: {error.strerror}") from None
