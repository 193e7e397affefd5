"""The worker process for the difference of two file systems of a build: two trees in, an overlay's diff out.

The first is the lower one, the second the upper, the third what is written to: a workspace on top of the lower one,
which is made the same as the upper one. So overlayfs itself leaves the marks for what is gone.
"""

import io
import os
import stat

from husk.builder.store.workers.copy_look import CopyLook
from husk.builder.store.workers.copying import TreeCopier
from husk.builder.store.workers.file_job import describe_fault
from husk.builder.store.workers.jobs import DifferenceJob
from husk.builder.store.workers.rooted_tree import RootedTree, remove_all
from husk.builder.store.workers.stack_views import show_stacks
from husk.storage.tar.whiteouts import is_overlay_xattr
from husk.storage.workers.answers import Done
from husk.storage.workers.caller import Caller

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PIECE = 1 << 20
_SECOND = 10**9


def main(job: DifferenceJob, caller: Caller) -> None:
    try:
        show_stacks(job.root, job.empty, job.stacks)
        lower, upper, target = (RootedTree(f"/{number}") for number in range(3))
        Difference(lower, upper, target).write()
        caller.answer(Done())
    except OSError as error:
        caller.answer(describe_fault(error))


class Difference:
    def __init__(self, lower: RootedTree, upper: RootedTree, target: RootedTree) -> None:
        self._lower = lower
        self._upper = upper
        self._target = target
        self._look = CopyLook()
        self._copier = TreeCopier(upper, target, self._look, replace=True)

    def write(self) -> None:
        """Make the target, which looks like the lower tree, the same as the upper one."""
        directories = [""]
        touched = []
        while directories:
            path = directories.pop()
            inside, changed = self._directory(path)
            directories += inside
            touched += [path] if changed and path else []
        for path in reversed(touched):
            status = self._upper.status(path)
            assert status is not None
            with self._target.directory(path) as fd:
                os.utime(fd, ns=self._look.times_of(status))

    def _directory(self, path: str) -> tuple[list[str], bool]:
        """Carry over changes in a directory that both have: the directories in it that both have, and if it changed."""
        before, after = _entries(self._lower, path), _entries(self._upper, path)
        gone = before.keys() - after.keys()
        with self._target.directory(path) as fd:
            for name in gone:
                remove_all(fd, name)
        inside, changed = [], bool(gone)
        for name, status in after.items():
            whole = f"{path}/{name}".lstrip("/")
            old = before.get(name)
            both = old is not None and stat.S_ISDIR(old.st_mode) and stat.S_ISDIR(status.st_mode)
            if both:
                inside.append(whole)
            if old is None or not self._same(whole, old, status):
                changed = True
                if both:
                    self._copier.adopt_directory(whole, status)
                else:
                    self._copier.copy(whole, whole)
        return inside, changed

    def _same(self, path: str, one: os.stat_result, other: os.stat_result) -> bool:
        if (one.st_mode, one.st_uid, one.st_gid) != (other.st_mode, other.st_uid, other.st_gid):
            return False
        if _xattrs(self._lower, path, one) != _xattrs(self._upper, path, other):
            return False
        if stat.S_ISDIR(one.st_mode):
            return True
        if stat.S_ISLNK(one.st_mode):
            return os.readlink(path, dir_fd=self._lower.fd) == os.readlink(path, dir_fd=self._upper.fd)
        if not stat.S_ISREG(one.st_mode):
            return one.st_rdev == other.st_rdev
        if one.st_size != other.st_size or one.st_mtime_ns // _SECOND != other.st_mtime_ns // _SECOND:
            return False
        # Times of whole seconds come from archives, and do not tell two files apart that were made at once.
        exact = one.st_mtime_ns == other.st_mtime_ns and one.st_mtime_ns % _SECOND != 0
        return exact or self._same_content(path)

    def _same_content(self, path: str) -> bool:
        with _opened(self._lower, path) as one, _opened(self._upper, path) as other:
            while True:
                pieces = one.read(_PIECE), other.read(_PIECE)
                if pieces[0] != pieces[1]:
                    return False
                if not pieces[0]:
                    return True


def _opened(tree: RootedTree, path: str) -> io.FileIO:
    return open(os.open(path, _READ, dir_fd=tree.fd), "rb", buffering=0)


def _entries(tree: RootedTree, path: str) -> dict[str, os.stat_result]:
    with tree.directory(path) as fd:
        names = sorted(os.listdir(fd), key=os.fsencode)
        return {name: os.stat(name, dir_fd=fd, follow_symlinks=False) for name in names}


def _xattrs(tree: RootedTree, path: str, status: os.stat_result) -> dict[str, bytes]:
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return {}
    fd = os.open(path, _READ, dir_fd=tree.fd)
    try:
        return {key: os.getxattr(fd, key) for key in os.listxattr(fd) if not is_overlay_xattr(key)}
    finally:
        os.close(fd)
