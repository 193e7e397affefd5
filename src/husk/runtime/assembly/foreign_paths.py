"""Paths of the host that clients name, touched with a deadline and a quota.

Whatever is mounted there may never answer: the server of an NFS mount is away, a FUSE program hangs. No call to it can
be taken back, and the thread that made it is lost until there is an answer. So these have threads of their own
(`threads.foreign`), few of them at a time may be at one path and at one mount, and who waits longer is told
so. The rest of the engine never notices.
"""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from husk.aio import threads
from husk.errors import Unavailable
from husk.kernel.mount import Mounted, mounted
from husk.kernel.rooted import walk_path

T = TypeVar("T")

DEADLINE = 10.0
# Threads at a time.
AT_A_PATH, AT_A_MOUNT = 2, 8
# With so few under way it does not matter where they are: finding the mount means reading the whole table.
_FEW = 4
# As many as the kernel follows.
_MOST_LINKS = 40
# Kinds of file systems that are this host's own, and answer. Of all others not even a link is asked.
_OWN = frozenset({
    "bcachefs", "bpf", "btrfs", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "erofs", "exfat",
    "ext2", "ext3", "ext4", "f2fs", "hugetlbfs", "iso9660", "mqueue", "ntfs3", "overlay", "proc", "pstore", "ramfs",
    "rootfs", "securityfs", "squashfs", "sysfs", "tmpfs", "tracefs", "udf", "vfat", "xfs", "zfs",
})  # fmt: skip


class _Line:
    """Those who are at one place, since when, and those who wait to be."""

    def __init__(self, most: int) -> None:
        self.free = asyncio.Semaphore(most)
        self.most = most
        self.users = 0
        self.since: list[float] = []


class ForeignPaths:
    def __init__(self, deadline: float = DEADLINE, find_mount: Callable[[str], str] | None = None) -> None:
        """`find_mount` finds the mount that a path is on. It blocks."""
        self._mount_of = find_mount or mount_of
        self._deadline = deadline
        self._lines: dict[str, _Line] = {}
        self._busy = 0

    async def touch(self, path: str, work: Callable[[], T]) -> T:
        """Run `work`, which asks for something at the path, in a thread; return its result. Unavailable when nothing
        answers in time; the thread goes on, or never begins."""
        entered: list[tuple[str, float]] = []
        try:
            async with asyncio.timeout(self._deadline):
                places = [(path, AT_A_PATH)]
                if self._busy >= _FEW:
                    places.append((f"mount {await asyncio.to_thread(self._mount_of, path)}", AT_A_MOUNT))
                for place, most in places:
                    entered.append((place, await self._enter(place, most)))
                return await self._begin(entered, work)
        except TimeoutError:
            raise _no_answer(path, f" within {self._deadline:g} seconds") from None
        except _Stuck:
            raise _no_answer(path, ", and others wait for it already") from None
        finally:
            self._leave(entered)

    async def _begin(self, entered: list[tuple[str, float]], work: Callable[[], T]) -> T:
        """The thread keeps the places when it has begun, for as long as it takes."""
        loop = asyncio.get_running_loop()
        future = threads.foreign(work)
        kept = list(entered)
        entered.clear()
        self._busy += 1

        def ended() -> None:
            self._busy -= 1
            self._leave(kept)

        def tell(_: object) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody counts any more
                loop.call_soon_threadsafe(ended)

        future.add_done_callback(tell)
        # Who gives up cancels it where it has not begun, all threads being lost; a thread cannot be stopped.
        return await asyncio.wrap_future(future)

    async def _enter(self, place: str, most: int) -> float:
        line = self._lines.setdefault(place, _Line(most))
        now = time.monotonic()
        if len(line.since) >= line.most and max(line.since) < now - self._deadline:
            raise _Stuck
        line.users += 1
        try:
            await line.free.acquire()
        except BaseException:
            self._forget(place, line)
            raise
        begun = time.monotonic()
        line.since.append(begun)
        return begun

    def _leave(self, entered: list[tuple[str, float]]) -> None:
        while entered:
            place, begun = entered.pop()
            line = self._lines[place]
            line.since.remove(begun)
            line.free.release()
            self._forget(place, line)

    def _forget(self, place: str, line: _Line) -> None:
        line.users -= 1
        if not line.users:
            del self._lines[place]


class _Stuck(Exception):
    """All who are at a place have been there for longer than anybody waits."""


def mount_of(path: str) -> str:
    """The mount that a path is on, or the first on the way there that somebody else serves: of that nothing is asked.
    Blocks."""
    table = mounted()

    def look(above: list[str], name: str, last: bool) -> str | None:
        place = "/" + "/".join([*above, name])
        found = _nearest(table, place)
        if found is None or found.kind not in _OWN:
            raise _Elsewhere(found.point if found else "/")
        try:
            return os.readlink(place)
        except OSError:
            return None  # no link, or nothing

    try:
        found = _nearest(table, "/" + "/".join(walk_path(path, look, _MOST_LINKS)))
    except _Elsewhere as elsewhere:
        return elsewhere.point
    except OSError:
        found = _nearest(table, path)  # links without end
    return found.point if found is not None else "/"


class _Elsewhere(Exception):
    """The way leads to a file system that may not answer."""

    def __init__(self, point: str) -> None:
        super().__init__(point)
        self.point = point


def _nearest(table: list[Mounted], path: str) -> Mounted | None:
    """The mount that a path is on by its name; the last one of several at one place."""
    held = [one for one in table if path == one.point or path.startswith(one.point.rstrip("/") + "/")]
    return max(reversed(held), key=lambda one: len(one.point), default=None)


def _no_answer(path: str, how: str) -> Unavailable:
    return Unavailable(f"{path} does not answer{how}: is the file system that it is on, or its server, still there?")
