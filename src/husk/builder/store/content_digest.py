"""Digests of the files of a build, for which names, kinds, modes, owners, links, attributes, device numbers and
contents count, and times do not. A worker process computes them.

A selection says which files count, in BuildKit's ways: a path alone is a file or all of a directory; with wildcards or
patterns it is what they match. A path that is not there is an error, a pattern that matches nothing is not.

What the table of a sync knows, nearly all of a client's files, is not looked at.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator

import msgspec

from husk.builder.store.file_actions import Selection
from husk.builder.store.portable_digest import PortableDigester
from husk.builder.store.sync_table import content_hash, look_digest, read_looks
from husk.builder.store.workers.file_job import NotThere, clean_pattern, describe_fault
from husk.builder.store.workers.jobs import DigestJob
from husk.builder.store.workers.rooted_tree import ActionFailed, RootedTree
from husk.builder.store.workers.stack_views import show_stacks
from husk.kernel.trees import walk
from husk.storage.tar.whiteouts import is_overlay_xattr
from husk.storage.workers.answers import Answer, Digests, Invalid, Missing
from husk.storage.workers.caller import Caller
from husk.text.globs import BadPattern, Patterns, has_wildcards

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PIECE = 1 << 20

_encoder = msgspec.msgpack.Encoder()


def main(job: DigestJob, caller: Caller) -> None:
    with open(0, "rb", closefd=False) as wanted:
        selections = msgspec.msgpack.decode(wanted.read(), type=list[Selection])
    caller.answer(digests(job, selections))


def digests(job: DigestJob, selections: list[Selection]) -> Answer:
    try:
        looks = _known(job.table) if job.table and not job.form else {}
        show_stacks(job.root, job.empty, [job.stack])
        tree = RootedTree("/0")
        digester: Digester | PortableDigester = Digester(tree, looks)
        if job.form:
            digester = PortableDigester(tree, bool(job.table), job.form == "older")
        return Digests([digester.digest(selection) for selection in selections])
    except NotThere as error:
        return Missing(str(error))
    except (ActionFailed, BadPattern) as error:
        return Invalid(str(error))
    except OSError as error:
        return describe_fault(error)


def _known(table: str) -> dict[bytes, bytes]:
    try:
        with open(table, "rb") as file:
            return read_looks(file)
    except FileNotFoundError:
        return {}


class Digester:
    """Of one file system; `looks` has all of its files by their paths, in order, with what they look like.

    It may be empty: then nothing is known.
    """

    def __init__(self, tree: RootedTree, looks: dict[bytes, bytes] | None = None) -> None:
        self._tree = tree
        self._looks = looks or {}
        self._linked: dict[tuple[int, int], bytes] = {}

    def digest(self, selection: Selection) -> str:
        wildcards = selection.wildcards and any(map(has_wildcards, selection.path.split("/")))
        if not wildcards and not selection.include and not selection.exclude:
            return "sha256:" + self._whole(selection.path, selection.follow_links).hex()
        tops = [selection.path]
        if wildcards:
            tops = self._tree.matches(selection.path, follow_links=True) or []
        found = list(self._chosen(selection, tops))
        for required in selection.required:
            if not any(path.startswith(required) for path, _ in found):
                raise NotThere(f'"{required}": not found')
        told = [(os.fsencode(path), digest) for path, digest in found]
        return "sha256:" + hashlib.sha256(_encoder.encode(told)).hexdigest()

    def _whole(self, path: str, follow_links: bool) -> bytes:
        """A file, or all of a directory."""
        found = self._tree.resolve(path, follow_last=follow_links)
        status = self._tree.status(found)
        if status is None:
            raise NotThere(f'"{os.path.normpath("/" + path.lstrip("/"))}": not found')
        if not stat.S_ISDIR(status.st_mode):
            return self._of(found, status)
        digest = hashlib.sha256(self._of(found, status) if found else b"")
        for entry in self._known_below(found) if self._looks else self._below(found):
            digest.update(_encoder.encode(entry))
        return digest.digest()

    def _below(self, top: str) -> Iterator[tuple[bytes, bytes]]:
        """Names and looks of all that is in a directory, in the order of a walk."""
        with self._tree.directory(top) as fd:
            for found in walk(fd):
                digest = self._entry(found.directory, found.name, found.status, f"{top}/{found.path}")
                yield os.fsencode(found.path), digest

    def _known_below(self, top: str) -> Iterable[tuple[bytes, bytes]]:
        """The same, from what is known: without a look at any file."""
        if not top:
            return self._looks.items()
        prefix = os.fsencode(top) + b"/"
        return [(path[len(prefix) :], look) for path, look in self._looks.items() if path.startswith(prefix)]

    def _chosen(self, selection: Selection, tops: list[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the paths that wildcards and patterns choose, as they were asked for, and their digests."""
        include = Patterns(map(clean_pattern, selection.include)) if selection.include else None
        exclude = Patterns(map(clean_pattern, selection.exclude)) if selection.exclude else None
        for top in tops:
            found = self._tree.resolve(top, follow_last=False)
            status = self._tree.status(found)
            if status is None:
                continue
            if stat.S_ISLNK(status.st_mode) and selection.follow_links:
                yield top, self._whole(top, follow_links=True)
            elif not stat.S_ISDIR(status.st_mode):
                yield top, self._of(found, status)
            else:
                if include is None and found:
                    yield top, self._of(found, status)
                yield from self._filtered(top, found, include, exclude)

    def _filtered(
        self, top: str, found: str, include: Patterns | None, exclude: Patterns | None
    ) -> Iterator[tuple[str, bytes]]:
        """Yield paths that patterns choose in a directory, and digests; those above a chosen path count with it."""
        waiting: list[tuple[str, bytes]] = []
        for path, digest in self._wanted(found, include, exclude, waiting):
            while waiting:
                above, look = waiting.pop(0)
                if path.startswith(above + "/"):
                    yield f"{top.rstrip('/')}/{above}", look
            yield f"{top.rstrip('/')}/{path}", digest

    def _wanted(
        self, top: str, include: Patterns | None, exclude: Patterns | None, waiting: list[tuple[str, bytes]]
    ) -> Iterator[tuple[str, bytes]]:
        with self._tree.directory(top) as fd:
            for found in walk(fd):
                path = found.path
                left_out = exclude is not None and exclude.matches(path)
                wanted = not left_out and (include is None or include.matches(path))
                if not wanted and not stat.S_ISDIR(found.status.st_mode):
                    continue
                digest = self._entry(found.directory, found.name, found.status, f"{top}/{path}")
                if wanted:
                    yield path, digest
                else:
                    waiting[:] = [(above, look) for above, look in waiting if path.startswith(above + "/")]
                    waiting.append((path, digest))

    def _of(self, resolved: str, status: os.stat_result) -> bytes:
        with self._tree.above(resolved) as (directory, name):
            return self._entry(directory, name, status, resolved)

    def _entry(self, directory: int, name: str, status: os.stat_result, path: str) -> bytes:
        """Return the digest of one file's look, without its name."""
        if self._looks and (known := self._looks.get(os.fsencode(path.lstrip("/")))) is not None:
            return known
        kind = stat.S_IFMT(status.st_mode)
        linked = (status.st_dev, status.st_ino) if status.st_nlink > 1 and kind != stat.S_IFDIR else None
        if linked in self._linked:
            return self._linked[linked]
        content = b""
        xattrs: list[tuple[str, bytes]] = []
        if kind == stat.S_IFLNK:
            content = os.fsencode(os.readlink(name, dir_fd=directory))
        elif kind == stat.S_IFREG or kind == stat.S_IFDIR:
            content, xattrs = _opened(directory, name, kind == stat.S_IFREG)
        device = status.st_rdev if kind in (stat.S_IFCHR, stat.S_IFBLK) else 0
        digest = look_digest(status.st_mode, status.st_uid, status.st_gid, device, content, xattrs)
        if linked is not None:
            self._linked[linked] = digest
        return digest


def _opened(directory: int, name: str, regular: bool) -> tuple[bytes, list[tuple[str, bytes]]]:
    """The digest of a file's content, and the attributes of a file or directory."""
    fd = os.open(name, _READ, dir_fd=directory)
    try:
        return _content(fd) if regular else b"", _xattrs(fd)
    finally:
        os.close(fd)


def _xattrs(fd: int) -> list[tuple[str, bytes]]:
    keys = sorted(key for key in os.listxattr(fd) if not is_overlay_xattr(key))
    return [(key, os.getxattr(fd, key)) for key in keys]


def _content(fd: int) -> bytes:
    digest = content_hash()
    while piece := os.read(fd, _PIECE):
        digest.update(piece)
    return digest.digest()
