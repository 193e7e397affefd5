"""Changes of files and in directories: inotify for the event loop, by ctypes."""

import asyncio
import ctypes
import errno
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Self

_libc = ctypes.CDLL(None, use_errno=True)
IN_MODIFY = 0x2
IN_CLOSE = 0x18
_IN_MOVED_TO = 0x80
_EVENT = struct.Struct("iIII")
_IN_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC


class FileWatch:
    """`async with FileWatch(fd) as watch: await watch.changed()`; changes since the last call count at once.

    A file that is renamed to something in `directory` counts as a change too, as long as that is there.
    """

    def __init__(self, fd: int, directory: Path) -> None:
        self._watched = ((f"/proc/self/fd/{fd}", IN_MODIFY), (str(directory), _IN_MOVED_TO))
        self._fd = -1
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._fd = _libc.inotify_init1(_IN_NONBLOCK_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1 failed")
        for path, events in self._watched:
            if _libc.inotify_add_watch(self._fd, os.fsencode(path), events) < 0:
                error = ctypes.get_errno()
                if error == errno.ENOENT and events == _IN_MOVED_TO:
                    continue  # removed by now, with all that was in it but what is still open
                os.close(self._fd)
                raise OSError(error, os.strerror(error), path)
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


class Watches:
    """Many files and directories watched with one descriptor: a user may have a hundred or so of those."""

    def __init__(self) -> None:
        self._fd = -1
        self._told: dict[int, Callable[[bytes], None]] = {}

    def add(self, path: Path, events: int, told: Callable[[bytes], None]) -> int:
        """`told` is called in the event loop with the name in a watched directory. The number is for `remove`."""
        if self._fd < 0:
            self._fd = _libc.inotify_init1(_IN_NONBLOCK_CLOEXEC)
            if self._fd < 0:
                raise OSError(ctypes.get_errno(), "inotify_init1 failed")
            asyncio.get_running_loop().add_reader(self._fd, self._readable)
        number: int = _libc.inotify_add_watch(self._fd, os.fsencode(path), events)
        if number < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), str(path))
        self._told[number] = told
        return number

    def remove(self, number: int) -> None:
        if self._told.pop(number, None) is not None:
            _libc.inotify_rm_watch(self._fd, number)

    def close(self) -> None:
        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        self._told.clear()

    def _readable(self) -> None:
        try:
            while data := os.read(self._fd, 16384):
                position = 0
                while position < len(data):
                    number, _, _, length = _EVENT.unpack_from(data, position)
                    position += _EVENT.size
                    name = data[position : position + length].rstrip(b"\0")
                    position += length
                    if number in self._told:
                        self._told[number](name)
        except BlockingIOError:
            pass
