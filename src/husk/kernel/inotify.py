"""Has this file changed? inotify for the event loop, by ctypes."""

import asyncio
import ctypes
import os
from pathlib import Path
from typing import Self

_libc = ctypes.CDLL(None, use_errno=True)
_IN_MODIFY = 0x2
_IN_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC


class FileWatch:
    """`async with FileWatch(path) as watch: await watch.changed()`; changes since the last call count at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._fd = _libc.inotify_init1(_IN_NONBLOCK_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1 failed")
        if _libc.inotify_add_watch(self._fd, os.fsencode(self._path), _IN_MODIFY) < 0:
            error = ctypes.get_errno()
            os.close(self._fd)
            raise OSError(error, os.strerror(error), str(self._path))
        asyncio.get_running_loop().add_reader(self._fd, self._readable)
        return self

    async def __aexit__(self, *exc: object) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)

    async def changed(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    def wake(self) -> None:
        """Count as a change something that inotify does not see."""
        self._changed.set()

    def _readable(self) -> None:
        try:
            while os.read(self._fd, 4096):
                pass
        except BlockingIOError:
            pass
        self._changed.set()
