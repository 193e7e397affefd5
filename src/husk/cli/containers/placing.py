"""Files of an archive are put to one place here, and nowhere else: what a container has in it decides nothing outside.

An archive may name `..`, bring a link and then something behind it, or a hard link to a file of ours; and what is at
the place may have been made by an earlier copy. So every name is gone to from the open directory that the place is in,
by directories that are no links, and what is in the way of a file goes before the file is made: nothing that exists is
written to.
"""

import os
import shutil
import stat
import tarfile
from collections.abc import Sequence
from contextlib import suppress

from husk.errors import InvalidParameter

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Nothing comes out with rights of another user.
_MODE = 0o755


class Placing:
    """Puts the entries of one archive to a place: its first entry becomes that."""

    def __init__(self, place: str, owners: bool) -> None:
        """With `owners`, root gives files the owners that the archive names, by number."""
        above, self._name = os.path.split(os.path.abspath(place))
        self._root = above if self._name else "/"
        self._top = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._owners = owners and os.geteuid() == 0
        self._first: list[str] | None = None
        self._directories: list[tuple[list[str], tarfile.TarInfo]] = []

    def close(self) -> None:
        os.close(self._top)

    def put(self, archive: tarfile.TarFile, entry: tarfile.TarInfo) -> None:
        """InvalidParameter for what would be written elsewhere, or cannot be."""
        names = self._moved(entry.name)
        if not names:
            return  # `/` itself is there
        try:
            with _Opened(self._parent(names, entry.name)) as parent:
                self._make(archive, entry, parent, names)
        except OSError as error:
            raise InvalidParameter(f"cannot write {'/'.join(names)}: {error.strerror}") from None

    def finish(self) -> None:
        """Directories look as the archive says when all that is in them is there."""
        for names, entry in reversed(self._directories):
            with (
                suppress(OSError),
                _Opened(self._parent(names, entry.name)) as parent,
                _Opened(os.open(names[-1], _DIRECTORY, dir_fd=parent)) as directory,
            ):
                self._adopt(directory, entry)

    def _moved(self, name: str) -> list[str]:
        """Split a name of the archive into its path below the top; the first entry gets the name of the place."""
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if self._first is None:
            self._first = parts
        first = self._first
        if ".." in parts or parts[: len(first)] != first:
            raise self._unsafe(name)
        return [*([self._name] if self._name else []), *parts[len(first) :]]

    def _unsafe(self, name: str) -> InvalidParameter:
        return InvalidParameter(f"the archive is not safe to unpack: {name!r} leads out of {self._root}/{self._name}")

    def _parent(self, names: Sequence[str], told: str) -> int:
        """An open directory: the one that a thing is in, with those that lack on the way."""
        here = os.open(".", _DIRECTORY, dir_fd=self._top)
        try:
            for name in names[:-1]:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=here)
                try:
                    below = os.open(name, _DIRECTORY, dir_fd=here)
                except NotADirectoryError:
                    raise self._unsafe(told) from None  # a link, or a file
                os.close(here)
                here = below
            return here
        except BaseException:
            os.close(here)
            raise

    def _make(self, archive: tarfile.TarFile, entry: tarfile.TarInfo, parent: int, names: list[str]) -> None:
        name = names[-1]
        if entry.isdir():
            if not self._is_directory(parent, name):
                self._make_room(parent, name)
                os.mkdir(name, 0o700, dir_fd=parent)
            self._directories.append((names, entry))
            return
        self._make_room(parent, name)
        if entry.islnk():
            target = self._moved(entry.linkname)
            if not target:
                raise self._unsafe(entry.linkname)
            with _Opened(self._parent(target, entry.linkname)) as above:
                os.link(target[-1], name, src_dir_fd=above, dst_dir_fd=parent, follow_symlinks=False)
        elif entry.issym():
            os.symlink(entry.linkname, name, dir_fd=parent)
            if self._owners:
                os.chown(name, entry.uid, entry.gid, dir_fd=parent, follow_symlinks=False)
        elif entry.isfifo():
            os.mkfifo(name, 0o600, dir_fd=parent)
            with _Opened(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)) as pipe:
                self._adopt(pipe, entry)
        elif entry.isfile():
            with open(os.open(name, _CREATE, 0o600, dir_fd=parent), "wb") as file:
                content = archive.extractfile(entry)
                assert content is not None
                shutil.copyfileobj(content, file)
                file.flush()
                self._adopt(file.fileno(), entry)
        else:
            raise InvalidParameter(f"cannot write {'/'.join(names)}: it is a device, which is this host's own")

    def _is_directory(self, parent: int, name: str) -> bool:
        try:
            return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            return False

    def _make_room(self, parent: int, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=parent)

    def _adopt(self, descriptor: int, entry: tarfile.TarInfo) -> None:
        if self._owners:
            os.fchown(descriptor, entry.uid, entry.gid)
        os.fchmod(descriptor, entry.mode & _MODE)
        with suppress(OverflowError, ValueError):
            os.utime(descriptor, (entry.mtime, entry.mtime))


class _Opened:
    """A descriptor that is closed with the block."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
