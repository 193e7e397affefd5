"""Digests of the files of a build as BuildKit computes them, for caches that others read, too.

A file is hashed as the fields of a tar header, without name and times, and its content; a directory as its own header
and the names and digests of what is in it. What wildcards and patterns choose is hashed as a list of paths and digests.
A worker process computes them. (`content_digest` is the same for our own cache, which need not read what a sync has
told.)
"""

import hashlib
import os
import posixpath
import stat
from collections.abc import Iterator

from msgspec import Struct

from husk.builder.store.file_actions import Selection
from husk.builder.store.workers.file_job import NotThere, clean_pattern
from husk.builder.store.workers.rooted_tree import RootedTree
from husk.kernel.trees import walk
from husk.storage.tar.whiteouts import is_overlay_xattr
from husk.text.globs import Patterns, has_wildcards, name_pattern

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PIECE = 1 << 20
_FLAGS = {
    stat.S_IFREG: "0",
    stat.S_IFLNK: "2",
    stat.S_IFCHR: "3",
    stat.S_IFBLK: "4",
    stat.S_IFDIR: "5",
    stat.S_IFIFO: "6",
}


class PortableDigester:
    """Of one file system; the root of one that was `synced` from a client has no header of its own.

    Before its version 0.26, BuildKit wrote lists of chosen files in another way: `older`.
    """

    def __init__(self, tree: RootedTree, synced: bool = False, older: bool = False) -> None:
        self._tree = tree
        self._synced = synced
        self._older = older

    def digest(self, selection: Selection) -> str:
        path = "/" + posixpath.normpath("/" + selection.path).lstrip("/")
        wildcards = selection.wildcards and any(map(has_wildcards, path.split("/")))
        if not wildcards and not selection.include and not selection.exclude:
            return self._whole(path, selection.follow_links)
        prefix, found = self._chosen(path, selection, wildcards)
        for required in selection.required:
            if not any(one.path.startswith(required) for one in found):
                raise NotThere(f'"{required}": not found')
        if not found:
            return _named(hashlib.sha256())
        if len(found) == 1 and posixpath.basename(path) == posixpath.basename(found[0].path):
            return found[0].digest
        return _list_digest(found, prefix, self._older)

    def _whole(self, path: str, follow_links: bool) -> str:
        """A file, or all of a directory."""
        found = self._tree.resolve(path, follow_last=follow_links)
        status = self._tree.status(found)
        if status is None:
            raise NotThere(f'"{path}": not found')
        if not stat.S_ISDIR(status.st_mode):
            return self._of(found, status)
        return self._directory(found, status)

    def _directory(self, top: str, status: os.stat_result) -> str:
        """A directory's digest is made of those of what is in it, so the deepest are ready first."""
        open_ones = [_Open("", _begun(self._header_of(top, status)))]
        with self._tree.directory(top) as fd:
            for found in walk(fd):
                _close(open_ones, len(found.above) + 1)
                digest = self._entry(found.directory, found.name, found.status)
                if stat.S_ISDIR(found.status.st_mode):
                    open_ones.append(_Open(found.name, _begun(digest)))
                else:
                    open_ones[-1].add(found.name, digest)
        _close(open_ones, 1)
        return _named(open_ones[0].hash)

    # --- what wildcards and patterns choose --------------------------------------------------------------------------

    def _chosen(self, path: str, selection: Selection, wildcards: bool) -> tuple[str, list["_Chosen"]]:
        """A prefix that does not count, and what is chosen: paths as they were asked for."""
        include = Patterns(map(clean_pattern, selection.include)) if selection.include else None
        exclude = Patterns(map(clean_pattern, selection.exclude)) if selection.exclude else None
        path = "" if path == "/" else path
        prefix, pattern = _split(path) if wildcards else (path, "")
        found = self._tree.resolve(prefix or "/", follow_last=wildcards and bool(pattern))
        status = self._tree.status(found)
        if status is None:
            return prefix, []
        matches = _Wildcards(path) if wildcards else None
        choice = _Choice(path, include, exclude, matches)
        chosen: list[_Chosen] = []
        for place, directory, name, entry in self._all(prefix, found, status):
            if not choice.looks_at(place):
                continue
            is_directory = stat.S_ISDIR(entry.st_mode)
            if not (place == "" and path == ""):  # all of a file system: without the header of its root
                wanted = choice.wants(place)
                if wanted or is_directory:
                    digest = self._header_of(found, status) if name == "" else self._entry(directory, name, entry)
                    top = not choice.above
                    if wanted and top and selection.follow_links and stat.S_ISLNK(entry.st_mode):
                        digest = self._whole(place, follow_links=True)
                    choice.take(_Chosen(place, digest), wanted, is_directory, chosen)
        return prefix, chosen

    def _all(self, prefix: str, found: str, status: os.stat_result) -> Iterator[tuple[str, int, str, os.stat_result]]:
        """Something and all below it: the path as it was asked for, and how to open it."""
        yield prefix, -1, "", status
        if stat.S_ISDIR(status.st_mode):
            with self._tree.directory(found) as fd:
                for one in walk(fd):
                    yield f"{prefix}/{one.path}", one.directory, one.name, one.status

    # --- one file ----------------------------------------------------------------------------------------------------

    def _header_of(self, resolved: str, status: os.stat_result) -> str:
        if not resolved:
            if self._synced:
                return _named(hashlib.sha256())
            with self._tree.directory("") as fd:
                return self._opened(fd, status)
        return self._of(resolved, status)

    def _of(self, resolved: str, status: os.stat_result) -> str:
        with self._tree.above(resolved) as (directory, name):
            return self._entry(directory, name, status)

    def _entry(self, directory: int, name: str, status: os.stat_result) -> str:
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFLNK:
            return _named(_header(status, os.fsencode(os.readlink(name, dir_fd=directory)), []))
        if kind not in (stat.S_IFREG, stat.S_IFDIR):
            return _named(_header(status, b"", []))
        fd = os.open(name, _READ, dir_fd=directory)
        try:
            return self._opened(fd, status)
        finally:
            os.close(fd)

    def _opened(self, fd: int, status: os.stat_result) -> str:
        keys = sorted(key for key in os.listxattr(fd) if _counts(key))
        digest = _header(status, b"", [(key, os.getxattr(fd, key)) for key in keys])
        if stat.S_ISREG(status.st_mode):
            while piece := os.read(fd, _PIECE):
                digest.update(piece)
        return _named(digest)


class _Chosen(Struct, frozen=True):
    path: str
    digest: str


class _Choice:
    """Decides path by path, in their order; directories above something that is chosen are chosen with it."""

    def __init__(
        self, top: str, include: Patterns | None, exclude: Patterns | None, wildcards: "_Wildcards | None"
    ) -> None:
        self._top = "" if wildcards else top
        self._include = include
        self._exclude = exclude
        self._wildcards = wildcards
        self._matched = ""
        self.above: list[_Above] = []

    def looks_at(self, path: str) -> bool:
        while self.above and not path.startswith(self.above[-1].chosen.path + "/"):
            self.above.pop()
        if self._wildcards and not (self._matched and path.startswith(self._matched + "/")):
            if not self._wildcards.match(path):
                return False
            self._matched = path
        return True

    def wants(self, path: str) -> bool:
        below = self._matched if self._wildcards else self._top
        inner = (path + "/").removeprefix(below + "/").removesuffix("/")
        if self._include is not None and not self._include.matches(inner):
            return False
        return self._exclude is None or not self._exclude.matches(inner)

    def take(self, one: _Chosen, wanted: bool, is_directory: bool, chosen: list[_Chosen]) -> None:
        if wanted:
            for above in self.above:
                if not above.included:
                    above.included = True
                    chosen.append(above.chosen)
            chosen.append(one)
        if is_directory:
            self.above.append(_Above(one, wanted))


class _Above(Struct):
    chosen: _Chosen
    included: bool


class _Wildcards:
    """Matches whole paths; a wildcard stays within one name."""

    def __init__(self, pattern: str) -> None:
        self._parts = [name_pattern(part) for part in pattern.split("/")]

    def match(self, path: str) -> bool:
        names = path.split("/")
        return len(names) == len(self._parts) and all(
            part.match(name) for part, name in zip(self._parts, names, strict=True)
        )


def _list_digest(found: list[_Chosen], prefix: str, older: bool) -> str:
    if older:
        names = (os.fsencode(posixpath.basename(one.path)) + one.digest.encode() for one in found)
        return _named(hashlib.sha256(b"\0".join(names)))
    digest = hashlib.sha256()
    for one in found:
        key = os.fsencode(one.path.removeprefix(prefix)).replace(b"/", b"\0")
        digest.update((key or b"\0") + one.digest.encode())
    return _named(digest)


def _split(path: str) -> tuple[str, str]:
    """Split a path before its first part with a wildcard."""
    parts = path.split("/")
    first = next(number for number, part in enumerate(parts) if has_wildcards(part))
    return "/".join(parts[:first]), "/".join(parts[first:])


class _Open(Struct):
    """A directory of which not all is known yet."""

    name: str
    hash: "hashlib._Hash"

    def add(self, name: str, digest: str) -> None:
        self.hash.update(b"\0" + os.fsencode(name) + digest.encode())


def _begun(header: str) -> "hashlib._Hash":
    return hashlib.sha256(b"\0" + header.encode())


def _close(open_ones: list[_Open], depth: int) -> None:
    while len(open_ones) > depth:
        done = open_ones.pop()
        open_ones[-1].add(done.name, _named(done.hash))


def _counts(key: str) -> bool:
    if is_overlay_xattr(key):
        return False
    return key == "security.capability" or not key.startswith(("security.", "system."))


def _header(status: os.stat_result, link: bytes, xattrs: list[tuple[str, bytes]]) -> "hashlib._Hash":
    kind = stat.S_IFMT(status.st_mode)
    device = status.st_rdev if kind in (stat.S_IFCHR, stat.S_IFBLK) else 0
    mode = 0o777 if kind == stat.S_IFLNK else status.st_mode & 0o7777
    size = status.st_size if kind == stat.S_IFREG else 0
    fields = f"namemode{mode}uid{status.st_uid}gid{status.st_gid}size{size}typeflag{_FLAGS.get(kind, '0')}linkname"
    digest = hashlib.sha256(fields.encode() + link)
    digest.update(f"unamegnamedevmajor{os.major(device)}devminor{os.minor(device)}".encode())
    for key, value in xattrs:
        digest.update(os.fsencode(key) + value)
    return digest


def _named(digest: "hashlib._Hash") -> str:
    return "sha256:" + digest.hexdigest()
