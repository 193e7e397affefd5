"""The tar of a layer, written while a copy makes the layer's files.

It is the one that `diff.write_diff` would make of the files afterwards, to the byte: names come in the same order, and
headers say what files look like when they are complete. A single file is read once, for the copy and for the tar. Where
a directory is copied, the tar is made of what is copied, and says what that will look like: by a second process if it
is much. What is there before, the directories above, is compared with what has become of it. Where that is not what was
foreseen, and for all that is not simple, the tar is given up, and the layer is packed later as all others are.

The headers of a tar, without contents: by their digest two who know the same files know whether their tars are one.

One packs files while they come from a client, of what the client has told of them
(`husk.builder.store.sync.pack_ahead`). The other one copies those files, and knows what the copies look like. Contents
are what has come, for both.
"""

import contextlib
import hashlib
import io
import os
import stat
from collections.abc import Callable, Iterator

import msgspec

from husk.builder.store.workers.aside import Aside
from husk.builder.store.workers.diff_blob import HashedFile
from husk.builder.store.workers.file_data import SMALL, copy_data, is_sparse
from husk.kernel.mount import OPAQUE_XATTR
from husk.kernel.rooted import open_beneath
from husk.kernel.tree_cursor import DIRECTORY
from husk.kernel.trees import walk
from husk.storage.tar.members import BUFFER, Output, TarWriter
from husk.storage.tar.whiteouts import OPAQUE_MARK, is_overlay_xattr
from husk.storage.workers.parts import Blob
from husk.text.documents import decode

_SECOND = 10**9
# Of what is larger, each piece is read once, for the file and for the tar.
_LARGE = 1 << 20
_LONGEST_PATH = 4096
# From so many files, or bytes, on a second process takes less time than it costs.
_MANY_FILES = 200
_MANY_BYTES = 4 << 20
_SIMPLE = frozenset((stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFIFO))

Foreseen = Callable[[os.stat_result], os.stat_result]


"""The look that a copy of a file like this will have."""


class LayerTar:
    """Of one copy, of a file or a directory, into what is otherwise empty. Paths are those in the layer."""

    def __init__(
        self,
        file: io.FileIO,
        lead: bytes | None = None,
        many_files: int = _MANY_FILES,
        many_bytes: int = _MANY_BYTES,
    ) -> None:
        """If the tar of a directory begins with `lead`, `heads` tells it in the end, and it is not written. A second
        process writes the tar of a directory with many files or bytes."""
        self._many = many_files, many_bytes
        self._file = file
        self._lead_elsewhere = lead
        self.heads = ""
        self._out = HashedFile(file)
        self._members: TarWriter | None = TarWriter(self._out)
        self._on_disk = -1
        self._begun = False
        self._above: list[tuple[str, os.stat_result]] = []
        self._foreseen: os.stat_result | None = None
        self._written: Blob | None = None
        self._packed: Callable[[str], None] = lambda digest: None

    def begin(self, on_disk: int | None) -> None:
        """`on_disk` is the open directory that the layer's files are in."""
        if on_disk is None:
            self.give_up()
        else:
            self._on_disk = on_disk

    def give_up(self) -> None:
        self._members = None

    def finish(self) -> Blob | None:
        """The whole tar is written; None if it was given up."""
        for path, told in self._above:
            with _opened(self._on_disk, path) as directory:
                self._compare(told, os.fstat(directory))
        with self._out as out:
            if self._members is None:
                self._file.truncate(0)
                self.heads = ""
            if self._members is None or self.heads:
                return None
            blob = self._written or out.end_tar()
            self._packed(blob.digest)
            return blob

    # --- directories -------------------------------------------------------------------------------------------------

    def top(self, path: str, foreseen: os.stat_result | None, source: int) -> None:
        """The directory whose content is copied, which is there; None: it keeps the look that it has, but for its time.

        The time of `source` is its own afterwards.
        """
        self._lead(path)
        if self._members is None or not path:
            return
        with _opened(self._on_disk, path) as directory:
            if foreseen is None:
                foreseen = foresee(os.fstat(directory), mtime=os.fstat(source).st_mtime_ns)
                source = directory
            self._above.append((path, foreseen))
            self.directory(path, foreseen, source, directory)

    def directory(self, path: str, foreseen: os.stat_result, source: int, directory: int) -> None:
        """A directory that will look like this when it is filled; it has, or gets, the attributes of `source`."""
        if self._members is None or len(path) > _LONGEST_PATH or _has_xattrs(source) or _has_xattrs(directory):
            return self.give_up()
        self._members.add_directory(path, foreseen)
        if _is_opaque(directory):
            self._members.add_empty(f"{path}/{os.fsdecode(OPAQUE_MARK)}")

    @contextlib.contextmanager
    def tree(self, path: str, source: int, foreseen: Foreseen) -> Iterator[None]:
        """All that is in `source` is copied to `path` within this block, and nothing else is told afterwards."""
        if self._members is None:
            yield
            return
        if self._lead_elsewhere is not None and self._lead_elsewhere == self._out.begun:
            self.heads = heads_of_tree(path, source, foreseen)
        if self.heads:
            yield
            return
        with contextlib.ExitStack() as stack:
            aside = None
            if _is_much(source, *self._many):
                aside = stack.enter_context(Aside(lambda: self._told_tree(path, source, foreseen)))
            yield
            if self._members is None:
                return
            if aside is None:
                self._add_tree(path, source, foreseen)
            elif answer := aside.answer():
                self._written = decode(answer, Blob)
            else:
                self.give_up()

    def listed_tree(self, copy: Callable[[int, int], int], packed: Callable[[int, str], None]) -> None:
        """The same by one who writes the tar, too: to an open file, from a place on. He tells how much it was.

        If the tar becomes a blob, `packed` is told where in it his part begins, and its digest.
        """
        if self._members is None:
            copy(-1, 0)
            return
        self._out.flush()
        begin = self._out.size
        self._out.follow(copy(self._file.fileno(), begin))
        self._packed = lambda digest: packed(begin, digest)

    @property
    def is_elsewhere(self) -> bool:
        """True if somebody else writes the tar of a directory, provided that it begins as this one has."""
        return self._lead_elsewhere is not None

    def check_directory(self, directory: int) -> None:
        """One that is not in a new directory: if it is more than a plain one, because of a layer below, give up."""
        if _has_xattrs(directory) or _is_opaque(directory):
            self.give_up()

    def _told_tree(self, path: str, source: int, foreseen: Foreseen) -> bytes:
        """The rest of the whole tar is written; nothing if it was given up."""
        self._add_tree(path, source, foreseen)
        if self._members is None:
            return b""
        with self._out as out:
            return msgspec.json.encode(out.end_tar())

    def _add_tree(self, path: str, source: int, foreseen: Foreseen) -> None:
        top = f"{path}/" if path else ""
        for found in walk(source, os.fchdir):
            status, name, shown = found.status, os.fsencode(found.name), top + found.path
            kind = stat.S_IFMT(status.st_mode)
            directory = kind == stat.S_IFDIR
            simple = kind in _SIMPLE and (directory or status.st_nlink == 1) and len(shown) <= _LONGEST_PATH
            if self._members is None or not simple or (directory and _has_xattrs(name)):
                return self.give_up()
            self._members.add(shown, name, foreseen(status))

    # --- all else ----------------------------------------------------------------------------------------------------

    def copy_data(self, path: str, source: int, target: int, status: os.stat_result, foreseen: Foreseen) -> bytes:
        """Copy a file's data, and tell it if it is small: `add_file` wants it when the file is complete."""
        size = status.st_size
        if size <= SMALL and len(data := os.read(source, SMALL + 1)) == size:
            if data and os.write(target, data) != size:
                raise OSError("a small file could not be written at once")
            return data
        self._lead(path)
        if self._members is None or size < _LARGE or is_sparse(status) or _has_xattrs(source) or _has_xattrs(target):
            copy_data(source, target, status)
            return b""
        self._foreseen = foreseen(status)
        if not self._members.add_pieces(path, _both(source, target), self._foreseen):
            self.give_up()
        return b""

    def add_file(self, path: str, directory: int, name: str, file: int, data: bytes, plain: bool) -> None:
        """A regular file is complete: `name` in `directory`. `plain`: it has no attributes."""
        if self._foreseen is not None:
            self._compare(self._foreseen, os.fstat(file))
            self._foreseen = None
            return
        if self._members is None:
            return
        status = os.fstat(file)
        self._lead(path)
        if not plain or len(data) != status.st_size or not self._members.add_small(path, data, status):
            self.add(path, directory, name)

    def add(self, path: str, directory: int, name: str) -> None:
        """Anything else that is complete, but a directory."""
        if self._members is None:
            return
        self._lead(path)
        os.fchdir(directory)
        status = os.stat(name, follow_symlinks=False)
        if status.st_nlink > 1 or stat.S_ISCHR(status.st_mode) or len(path) > _LONGEST_PATH:
            self.give_up()
        else:
            self._members.add(path, os.fsencode(name), status)

    def _lead(self, path: str) -> None:
        """The directories above the first path of all. They look as they will: nothing more is made in them."""
        if self._begun or self._members is None:
            return
        self._begun = True
        parts = path.split("/")
        for count in range(1, len(parts)):
            above = "/".join(parts[:count])
            with _opened(self._on_disk, above) as directory:
                status = os.fstat(directory)
                self._above.append((above, status))
                self.directory(above, status, directory, directory)

    def _compare(self, told: os.stat_result, found: os.stat_result) -> None:
        if (told.st_mode, told.st_uid, told.st_gid, int(told.st_mtime)) != (
            found.st_mode, found.st_uid, found.st_gid, int(found.st_mtime),
        ):  # fmt: skip
            self.give_up()


def foresee(
    status: os.stat_result,
    *,
    mode: int | None = None,
    owner: tuple[int, int] | None = None,
    mtime: int | None = None,
) -> os.stat_result:
    """Return the status of a file like this with another mode (without its kind), owner or time in nanoseconds."""
    if mode is not None:
        mode |= stat.S_IFMT(status.st_mode)
    uid, gid = owner or (status.st_uid, status.st_gid)
    seconds = int(status.st_mtime)
    if mtime is not None:
        whole, rest = divmod(mtime, _SECOND)
        # As the interpreter makes `st_mtime`, which is not exact.
        seconds = int(whole + 1e-9 * rest)
    mode = status.st_mode if mode is None else mode
    return os.stat_result((mode, 0, 0, 1, uid, gid, status.st_size, seconds, seconds, seconds))


@contextlib.contextmanager
def _opened(top: int, path: str) -> Iterator[int]:
    fd = open_beneath(top, path, DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def _both(source: int, target: int) -> Iterator[bytes]:
    """Copy, and give what was copied."""
    while piece := os.read(source, BUFFER):
        left = memoryview(piece)
        while left:
            left = left[os.write(target, left) :]
        yield piece


def _is_much(directory: int, many_files: int, many_bytes: int) -> bool:
    """Tell if there is much in a directory: many files, or many bytes."""
    size = 0
    for count, found in enumerate(walk(directory), 1):
        size += found.status.st_size if stat.S_ISREG(found.status.st_mode) else 0
        if count >= many_files or size >= many_bytes:
            return True
    return False


def _has_xattrs(file: int | bytes) -> bool:
    return not all(map(is_overlay_xattr, os.listxattr(file)))


def _is_opaque(fd: int) -> bool:
    try:
        return os.getxattr(fd, OPAQUE_XATTR) == b"y"
    except OSError:
        return False


class Heads:
    """The output for headers, which are hashed and may be passed on; contents are not written here."""

    def __init__(self, out: Output | None = None) -> None:
        self._hash = hashlib.sha256()
        self._out = out

    def write(self, data: bytes, /) -> None:
        self._hash.update(data)
        if self._out is not None:
            self._out.write(data)

    def flush(self) -> None:
        pass

    def digest(self) -> str:
        return self._hash.hexdigest()


def heads_of_tree(path: str, source: int, foreseen: Callable[[os.stat_result], os.stat_result]) -> str:
    """The digest of the headers of all that is in the open directory `source`, below `path`; "" if it is not simple.

    `foreseen` tells what a copy of a file will look like. The current directory is another one afterwards.
    """
    heads = Heads()
    members = TarWriter(heads)
    top = f"{path}/" if path else ""
    for found in walk(source, os.fchdir):
        status, name, shown = found.status, os.fsencode(found.name), top + found.path
        kind = stat.S_IFMT(status.st_mode)
        simple = kind in _SIMPLE and (kind == stat.S_IFDIR or status.st_nlink == 1) and len(shown) <= _LONGEST_PATH
        if not simple or not all(map(is_overlay_xattr, os.listxattr(name, follow_symlinks=False))):
            return ""
        if kind == stat.S_IFREG:
            members.add_pieces(shown, (), foreseen(status))  # the header tells how much it is
        else:
            members.add(shown, name, foreseen(status))
    return heads.digest()
