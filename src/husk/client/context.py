"""A directory as the context of a build: a tar archive of its files, without those that `.dockerignore` leaves out.

The archive is made while it is sent, in pieces, so that a large context takes no memory. Files belong to root in it, as
they do in docker's: who builds shall not matter to what is built.
"""

import asyncio
import io
import os
import secrets
import tarfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path, PurePosixPath

from husk.errors import InvalidParameter
from husk.text import dockerignore
from husk.text.globs import BadPattern

DOCKERFILE, IGNORE_FILE = "Dockerfile", ".dockerignore"
_PIECE = 1 << 18
_BLOCK = 512


class Context:
    """The context that a directory is, with the name that the Dockerfile has in it."""

    def __init__(self, root: Path, dockerfile: str = "") -> None:
        if not root.is_dir():
            raise InvalidParameter(f"no directory to build from: {root}")
        self._root = root
        self._patterns = _patterns(root / IGNORE_FILE)
        self.dockerfile, self._foreign = _dockerfile(root, dockerfile)
        if self._foreign is not None:
            self._patterns.append(self.dockerfile)
        try:
            self._ignore = dockerignore.Ignore(self._patterns)
        except BadPattern as error:
            raise InvalidParameter(f"{root / IGNORE_FILE}: {error}") from error

    def sends(self, path: Path) -> bool:
        """Return True if this directory of the host, by whatever path, is a part of the context that is sent."""
        root, path = self._root.resolve(), path.resolve()
        if not path.is_relative_to(root):
            return False
        return path == root or not self._ignore.leaves_out(path.relative_to(root).as_posix())

    async def pieces(self) -> AsyncIterator[bytes]:
        """The archive. Files are read in a thread: they may be many, or far away."""
        archive = self.packed()
        while piece := await asyncio.to_thread(_some, archive):
            yield piece

    def packed(self) -> Iterator[bytes]:
        """The same, for who may wait for the disk."""
        # Only asked what entries are to say: it knows links to what it has told of before.
        with tarfile.open(fileobj=io.BytesIO(), mode="w", format=tarfile.PAX_FORMAT) as teller:
            for path, name in self._wanted():
                if name == IGNORE_FILE and self._foreign is not None:
                    continue
                try:
                    entry = teller.gettarinfo(str(path), name)
                    if entry is not None:  # a socket is nothing that an archive could have
                        yield from _entry(entry, path)
                except OSError as error:
                    raise InvalidParameter(f"cannot send {path}: {error.strerror}") from error
        if self._foreign is not None:
            # It was not in the context, and no COPY shall find it there.
            yield from _file(self.dockerfile, self._foreign)
            yield from _file(IGNORE_FILE, "\n".join(self._patterns).encode())
        yield bytes(2 * _BLOCK)

    def _wanted(self) -> Iterator[tuple[Path, str]]:
        """Yield the paths to send: the engine needs the Dockerfile and `.dockerignore` even if they are left out."""
        needed = {IGNORE_FILE, self.dockerfile, DOCKERFILE.lower() if self.dockerfile == DOCKERFILE else ""}
        above = {str(each) for name in needed for each in PurePosixPath(name).parents}
        for place, directories, files in os.walk(self._root):
            below = Path(place).relative_to(self._root)
            kept = []
            for name in sorted(directories):
                path = (below / name).as_posix()
                if path not in above and self._ignore.may_skip_directory(path):
                    continue
                kept.append(name)
                if path in above or not self._ignore.leaves_out(path):
                    yield Path(place) / name, path
            directories[:] = [name for name in kept if not (Path(place) / name).is_symlink()]
            for name in sorted(files):
                path = (below / name).as_posix()
                if path in needed or not self._ignore.leaves_out(path):
                    yield Path(place) / name, path


def dockerfile_alone(text: bytes | str) -> bytes:
    """A context that has nothing but a Dockerfile."""
    return b"".join([*_file(DOCKERFILE, text.encode() if isinstance(text, str) else text), bytes(2 * _BLOCK)])


def _patterns(path: Path) -> list[str]:
    try:
        return dockerignore.read(path.read_bytes().decode("utf-8", "replace"))
    except FileNotFoundError:
        return []


def _dockerfile(root: Path, given: str) -> tuple[str, bytes | None]:
    """Its name in the context; and its text, if it lies elsewhere."""
    path = root / (given or DOCKERFILE)
    try:
        return Path(os.path.abspath(path)).relative_to(os.path.abspath(root)).as_posix(), None
    except ValueError:
        pass
    try:
        return f".dockerfile.{secrets.token_hex(8)}", path.read_bytes()
    except OSError as error:
        raise InvalidParameter(f"cannot read the Dockerfile {path}: {error.strerror}") from error


def _some(archive: Iterator[bytes]) -> bytes:
    """As much as is worth the way to a thread; b"" at the end."""
    found: list[bytes] = []
    size = 0
    for piece in archive:
        found.append(piece)
        size += len(piece)
        if size >= _PIECE:
            break
    return b"".join(found)


def _entry(entry: tarfile.TarInfo, path: Path) -> Iterator[bytes]:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    if not entry.isreg():
        yield _header(entry)
        return
    with path.open("rb") as file:
        yield _header(entry)
        left = entry.size
        while left:
            piece = file.read(min(left, _PIECE))
            if not piece:
                raise InvalidParameter(f"{path} became shorter while it was sent")
            left -= len(piece)
            yield piece
    yield bytes(-entry.size % _BLOCK)


def _file(name: str, content: bytes) -> Iterator[bytes]:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o600
    yield _header(entry)
    yield content + bytes(-len(content) % _BLOCK)


def _header(entry: tarfile.TarInfo) -> bytes:
    return entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
