"""Files as the API carries them: in tar archives. Pure, but for reading what is named of the host."""

import io
import stat
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from husk.errors import InvalidParameter, Unavailable
from husk.text.digits import read_number


def place_of(path: str) -> tuple[str, ...]:
    """The parts of an absolute path of a file; InvalidParameter where it is none."""
    place = PurePosixPath(path)
    if not place.is_absolute() or ".." in place.parts or place == PurePosixPath("/"):
        raise InvalidParameter(f"not the absolute path of a file: {path!r}")
    return place.parts[1:]


def one_file(name: str, data: bytes | str, *, mode: int = 0o644, owner: tuple[int, int] = (0, 0)) -> bytes:
    """An archive of one file."""
    content = data.encode() if isinstance(data, str) else data
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(content), mode, int(time.time())
    entry.uid, entry.gid = owner
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        archive.addfile(entry, io.BytesIO(content))
    return whole.getvalue()


def tree(source: Path, name: str) -> bytes:
    """An archive of a file or directory of the host under another name."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        archive.add(source, name)
    return whole.getvalue()


def only_file(archive: bytes, path: str) -> bytes:
    """The content of the one file in an archive; InvalidParameter where it is none."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as entries:
        entry = entries.next()
        content = entries.extractfile(entry) if entry is not None and entry.isreg() else None
        if content is None:
            raise InvalidParameter(f"{path} is not a regular file: use get_archive")
        return content.read()


class Entry(NamedTuple):
    """A file in an archive."""

    name: str
    size: int
    mode: int
    mtime: int
    link: str


_KINDS = {
    tarfile.DIRTYPE: stat.S_IFDIR,
    tarfile.SYMTYPE: stat.S_IFLNK,
    tarfile.FIFOTYPE: stat.S_IFIFO,
    tarfile.CHRTYPE: stat.S_IFCHR,
    tarfile.BLKTYPE: stat.S_IFBLK,
}
_BLOCK = 512
# The header of a header: long names and paths.
_LARGEST_EXTENSION = 1 << 20
_PAX, _GNU_NAME, _GNU_LINK = tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK


class FirstLevel:
    """Takes the archive of a directory in pieces, keeps what is in that directory itself, lets the rest pass."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._rest = bytearray()
        self._skip = 0
        # What a header before it says of the next entry.
        self._said: dict[str, str] = {}

    def feed(self, data: bytes) -> None:
        passed = min(self._skip, len(data))
        self._skip -= passed
        self._rest += data[passed:]
        while len(self._rest) >= _BLOCK:
            block = bytes(self._rest[:_BLOCK])
            if not any(block):
                self._rest.clear()
                return
            try:
                info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            except tarfile.TarError as error:
                raise Unavailable(f"the engine's archive cannot be read: {error}") from error
            if info.size < 0:
                raise Unavailable("the engine's archive cannot be read: a size is negative")
            if info.type in (_PAX, _GNU_NAME, _GNU_LINK):
                whole = _BLOCK + _padded(info.size)
                if info.size > _LARGEST_EXTENSION:
                    raise Unavailable("the engine's archive has too long a name")
                if len(self._rest) < whole:
                    return
                self._said.update(_extension(info.type, bytes(self._rest[_BLOCK : _BLOCK + info.size])))
                del self._rest[:whole]
                continue
            size = self._number("size", info.size)
            self._take(info, size)
            size = size if info.isreg() else 0
            self._said = {}
            here = min(_padded(size), len(self._rest) - _BLOCK)
            self._skip = _padded(size) - here
            del self._rest[: _BLOCK + here]

    def _number(self, name: str, otherwise: int) -> int:
        said = self._said.get(name, "").partition(".")[0]
        if not said:
            return otherwise
        number = read_number(said, least=0 if name == "size" else -(1 << 62))
        if number is None:
            raise Unavailable(f"the engine's archive cannot be read: {said!r} is no {name}")
        return number

    def _take(self, info: tarfile.TarInfo, size: int) -> None:
        parts = [part for part in self._said.get("path", info.name).split("/") if part not in ("", ".")]
        if len(parts) == 1 and info.type not in (tarfile.XGLTYPE,):
            kind = _KINDS.get(info.type, stat.S_IFREG)
            link = self._said.get("linkpath", info.linkname) if info.issym() else ""
            mtime = self._number("mtime", int(info.mtime))
            self.entries.append(Entry(parts[0], size, kind | stat.S_IMODE(info.mode), mtime, link))


def _padded(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


def _extension(kind: bytes, content: bytes) -> Iterator[tuple[str, str]]:
    """The words of such a header: (field, value)."""
    if kind != _PAX:
        yield ("path" if kind == _GNU_NAME else "linkpath"), content.rstrip(b"\0").decode(errors="surrogateescape")
        return
    while content:
        length, _, _ = content.partition(b" ")
        number = int(length) if length.isdigit() and len(length) < 8 else 0
        if number <= len(length) + 1:
            raise Unavailable("the engine's archive cannot be read: a header makes no sense")
        key, _, value = content[len(length) + 1 : number - 1].partition(b"=")
        if key in (b"path", b"linkpath", b"size", b"mtime"):
            yield key.decode(), value.decode(errors="surrogateescape")
        content = content[number:]
