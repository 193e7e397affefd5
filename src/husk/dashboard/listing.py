"""The files in a directory of a container, told by its own `stat`, or read out of an archive of it. Pure.

The API has no list of files. A container that runs and has a shell is asked for one, which costs as much as the
directory is large; of others the beginning of an archive is read, which has the files of the directories below, too.
"""

import codecs
import io
import posixpath
import stat
import tarfile
from collections.abc import Iterable

import msgspec

from husk.errors import InvalidParameter

# Mode, size, time and name of every entry; what no pattern matches is left out by stat itself.
COMMAND = ("/bin/sh", "-c", 'cd -- "$1" && stat -c "%f %s %Y %n" -- .* * 2>/dev/null; :', "sh")
_LONGEST_PATH = 4096


class FileEntry(msgspec.Struct, frozen=True):
    """One file as a list shows it."""

    name: str
    kind: str
    size: int
    mode: str
    modified: int

    @property
    def is_dir(self) -> bool:
        return self.kind == "directory"


def clean(path: str) -> str:
    """An absolute path without dots; InvalidParameter for what is none."""
    if not path.startswith("/") or "\0" in path or len(path) > _LONGEST_PATH:
        raise InvalidParameter(f"not an absolute path: {path!r}")
    return posixpath.normpath("/" + path.lstrip("/"))


def parents(path: str) -> list[tuple[str, str]]:
    """(name, path) of the directories that lead to a path, the root first."""
    found = [("/", "/")]
    for part in path.strip("/").split("/"):
        if part:
            found.append((part, posixpath.join(found[-1][1], part)))
    return found


def told(output: bytes) -> list[FileEntry]:
    """The entries that `COMMAND` tells."""
    found = []
    for line in output.decode(errors="replace").splitlines():
        parts = line.split(" ", 3)
        if len(parts) != 4 or parts[3] in (".", "..", "") or "/" in parts[3]:
            continue
        try:
            mode, size, modified = int(parts[0], 16), int(parts[1]), int(parts[2])
        except ValueError:
            continue
        found.append(_entry(parts[3], mode, size, modified))
    return _sorted(found)


def archived(archive: bytes) -> list[FileEntry]:
    """The entries at the first level of an archive of a directory, as far as it goes."""
    found: dict[str, FileEntry] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as entries:
            for each in entries:
                parts = [part for part in each.name.split("/") if part not in ("", ".")]
                if len(parts) == 2:
                    mode = each.mode | _KINDS.get(each.type, stat.S_IFREG)
                    found[parts[1]] = _entry(parts[1], mode, each.size, int(each.mtime))
    except (tarfile.TarError, EOFError):
        pass  # it was cut off
    return _sorted(found.values())


_KINDS = {
    tarfile.DIRTYPE: stat.S_IFDIR,
    tarfile.SYMTYPE: stat.S_IFLNK,
    tarfile.FIFOTYPE: stat.S_IFIFO,
    tarfile.CHRTYPE: stat.S_IFCHR,
    tarfile.BLKTYPE: stat.S_IFBLK,
}
_WORDS = {
    stat.S_IFDIR: "directory",
    stat.S_IFREG: "file",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


def _entry(name: str, mode: int, size: int, modified: int) -> FileEntry:
    return FileEntry(name, _WORDS.get(stat.S_IFMT(mode), "other"), size, stat.filemode(mode), modified)


def _sorted(entries: Iterable[FileEntry]) -> list[FileEntry]:
    return sorted(entries, key=lambda entry: (not entry.is_dir, entry.name.lower(), entry.name))


def is_text(content: bytes) -> bool:
    """Tell if the content can be shown. Content with a NUL, or that is no UTF-8, cannot."""
    if b"\0" in content:
        return False
    try:
        # The last letter may be cut off: it waits for its rest then.
        codecs.getincrementaldecoder("utf-8")().decode(content)
    except UnicodeDecodeError:
        return False
    return True


def upload_head(name: str, size: int, modified: int) -> bytes:
    """Make the bytes before a file's content in an archive of it alone; InvalidParameter for what is no name."""
    if not name or name in (".", "..") or "/" in name or "\0" in name or len(name.encode()) > 255:
        raise InvalidParameter(f"not the name of a file: {name!r}")
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size, 0o644, modified
    return entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def upload_tail(size: int) -> bytes:
    """Make the bytes behind a file's content of that size, which end the archive."""
    return b"\0" * (-size % tarfile.BLOCKSIZE + 2 * tarfile.BLOCKSIZE)


class OneFile:
    """Takes an archive of one file as it comes, gives the file's content; its `size` is known when that has begun."""

    def __init__(self) -> None:
        self._head = b""
        self._left: int | None = None
        self.size = 0

    def feed(self, data: bytes) -> bytes:
        """InvalidParameter for an archive of something else."""
        if self._left is None:
            self._head += data
            if len(self._head) < _ENOUGH and not self._readable():
                return b""
            data = self._begin()
        assert self._left is not None
        given = data[: self._left]
        self._left -= len(given)
        return given

    @property
    def begun(self) -> bool:
        return self._left is not None

    def _readable(self) -> bool:
        try:
            return self._entry() is not None
        except InvalidParameter:
            return False

    def _begin(self) -> bytes:
        entry = self._entry()
        if entry is None or not entry.isreg():
            raise InvalidParameter("it is no regular file")
        self.size = self._left = entry.size
        return self._head[entry.offset_data :]

    def _entry(self) -> tarfile.TarInfo | None:
        try:
            with tarfile.open(fileobj=io.BytesIO(self._head), mode="r:") as entries:
                entry = entries.next()
        except (tarfile.TarError, EOFError) as error:
            raise InvalidParameter(f"the archive cannot be read: {error}") from error
        return entry if entry is not None and entry.offset_data <= len(self._head) else None


# Headers are never longer: a path, and what pax says of it.
_ENOUGH = 1 << 16
