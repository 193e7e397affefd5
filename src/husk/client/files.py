"""The files of a container: read, written, listed, watched and removed by their paths."""

import asyncio
import posixpath
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from husk.client import tars
from husk.client.path_stat import PathStat
from husk.client.spec import Command
from husk.errors import CommandFailed, Conflict, InvalidParameter, NotFound

# Mode, size, time and name of every entry; a pattern that matches nothing is left out by stat itself.
_LIST = 'cd -- "$1" && stat -c "%f %s %Y %n" -- .* * 2>/dev/null; :'
# The last second of the year 9999.
_LAST = 253_402_300_799
Found = list[PathStat]


class FileChange(NamedTuple):
    """A change of a file below a directory that is watched: `created`, `changed` or `removed`.

    async for change in box.files.watch("/tmp"):
        print(change.kind, change.path)
        break
    """

    kind: str  #: `created`, `changed` or `removed`
    path: str  #: The path of the file


class Box(Protocol):
    """A container, as far as this module needs it."""

    @property
    def status(self) -> str: ...
    def exec(self, command: Command, *, user: str = "") -> Any: ...
    @property
    def files(self) -> "Files": ...
    def get_archive(self, path: str) -> AsyncIterator[bytes]: ...
    async def put(self, path: str, data: bytes | str | Path, *, mode: int = 0o644) -> None: ...
    async def put_archive(self, path: str, archive: bytes) -> None: ...
    async def get(self, path: str) -> bytes: ...
    async def stat(self, path: str) -> PathStat: ...


class Files:
    """The files of a container: `box.files`. All paths are absolute.

    await box.files.write("/in/data.txt", "one\\n")
    print(await box.files.read_text("/in/data.txt"), [each.name for each in await box.files.list("/in")])
    """

    def __init__(self, box: Box) -> None:
        self._box = box

    async def read(self, path: str) -> bytes:
        """Read a file.

        :param path: its path.
        :returns: the content.
        :raises NotFound: there is nothing at that path.
        :raises InvalidParameter: it is no regular file.
        """
        return await self._box.get(path)

    async def read_text(self, path: str) -> str:
        """Read a file as text; what is no UTF-8 is shown as `\\ufffd`.

        :param path: its path.
        :returns: the text.
        :raises NotFound: there is nothing at that path.
        """
        return (await self.read(path)).decode(errors="replace")

    async def write(self, path: str, data: bytes | str | Path, *, mode: int = 0o644) -> None:
        """Write a file, and the directories that are missing on the way to it.

        :param path: its path.
        :param data: the content, or the `Path` of a file or directory of this host.
        :param mode: the permissions of a file that is given by its content.
        :raises Forbidden: the place is read-only, or the kernel's.
        """
        await self._box.put(path, data, mode=mode)

    async def stat(self, path: str) -> PathStat:
        """Describe the file, directory or link at a path.

        :param path: the path.
        :returns: the description.
        :raises NotFound: there is nothing at that path.
        """
        return await self._box.stat(path)

    async def exists(self, path: str) -> bool:
        """Tell whether something is at a path.

        :param path: the path.
        :returns: True if there is.
        """
        try:
            await self.stat(path)
        except NotFound:
            return False
        return True

    async def list(self, path: str = "/") -> list[PathStat]:
        """List a directory, by name.

        A container that runs and has a shell is asked for the list. Of others an archive of the directory is read,
        which costs as much as all that is below it is large.

        :param path: the directory.
        :returns: a description of each entry.
        :raises NotFound: there is nothing at that path.
        :raises InvalidParameter: it is no directory.
        """
        if not path.startswith("/"):
            raise InvalidParameter(f"not an absolute path: {path!r}")
        about = await self.stat(path.rstrip("/") + "/.")
        if not about.is_dir:
            raise InvalidParameter(f"not a directory: {path}")
        found = await self._told(path) if self._box.status == "running" else []
        return sorted(found or await self._archived(path), key=lambda entry: entry.name)

    async def remove(self, path: str) -> None:
        """Remove a file, or a directory with all that is in it, by the container's own `rm`.

        Nothing happens where nothing is.

        :param path: the path.
        :raises Conflict: the container does not run.
        :raises CommandFailed: something cannot be removed; the message says why.
        :raises InvalidParameter: the image has no `rm`, or the path is that of the root.
        """
        clean = posixpath.normpath(path)
        if not path.startswith("/") or clean.strip("/") == "":
            raise InvalidParameter(f"not the absolute path of a file: {path!r}")
        (await self._box.exec(["rm", "-rf", "--", clean], user="0")).check()

    async def watch(self, path: str, *, interval: float = 0.5) -> AsyncIterator[FileChange]:
        """Look at a directory, or at one file, again and again, and tell what has changed in it. What comes and goes
        between two looks is not seen.

        :param path: the path.
        :param interval: seconds between two looks.
        :returns: the changes, one by one.
        :raises NotFound: there is nothing at that path in the beginning.
        """
        before = await self._seen(path)
        while True:
            await asyncio.sleep(interval)
            try:
                now = await self._seen(path)
            except NotFound:
                now = {}
            for each in sorted(before.keys() | now.keys()):
                if before.get(each) != now.get(each):
                    yield FileChange("created" if each not in before else "changed" if each in now else "removed", each)
            before = now

    async def _seen(self, path: str) -> dict[str, tuple[int, int, datetime]]:
        about = await self.stat(path)
        if not about.is_dir:
            return {path: (about.size, about.mode, about.mtime)}
        return {posixpath.join(path, each.name): (each.size, each.mode, each.mtime) for each in await self.list(path)}

    async def _told(self, path: str) -> Found:
        """The entries that the container's own `stat` tells; none where it has no shell."""
        try:
            result = await self._box.exec(["/bin/sh", "-c", _LIST, "sh", path])
        except (InvalidParameter, Conflict, CommandFailed):
            return []
        return _entries(result.stdout)

    async def _archived(self, path: str) -> Found:
        level = tars.FirstLevel()
        async for piece in self._box.get_archive(path.rstrip("/") + "/."):
            level.feed(piece)
        return [
            PathStat(
                name=each.name,
                size=each.size,
                mode=each.mode,
                mtime=_moment(each.mtime),
                link_target=each.link,
            )
            for each in level.entries
        ]


async def put(box: Box, path: str, data: bytes | str | Path, mode: int) -> None:
    """Put a file into the lowest directory that is there: that one may be written to where the root may not."""
    if isinstance(data, Path) and not path.strip("/"):
        await box.put_archive("/", tars.tree(data, ""))
        return
    parts = tars.place_of(path)
    for depth in range(len(parts) - 1, -1, -1):
        directory, name = "/" + "/".join(parts[:depth]), "/".join(parts[depth:])
        # A big file is not sent again and again: it is tried where it is to be, then where something is.
        if 0 < depth < len(parts) - 1 and not await box.files.exists(directory):
            continue
        try:
            await box.put_archive(
                directory, tars.tree(data, name) if isinstance(data, Path) else tars.one_file(name, data, mode=mode)
            )
        except NotFound:
            if not depth:
                raise
        else:
            return


def _moment(seconds: float) -> datetime:
    """A time of a file, which a container may set to what no calendar has."""
    return datetime.fromtimestamp(min(max(seconds, 0), _LAST), UTC)


def _entries(output: bytes) -> Found:
    """The entries, a line for each; none if there is a line that tells of none: it is of a name with more lines."""
    found: Found = []
    for line in output.decode(errors="surrogateescape").removesuffix("\n").split("\n"):
        parts = line.split(" ", 3)
        if len(parts) != 4 or parts[3] == "" or "/" in parts[3]:
            return []
        try:
            mode, size, modified = int(parts[0], 16), int(parts[1]), int(parts[2])
        except ValueError:
            return []
        if parts[3] not in (".", ".."):
            found.append(PathStat(name=parts[3], size=size, mode=mode, mtime=_moment(modified)))
    return found
