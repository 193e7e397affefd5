"""The worker process for the file actions of a build: it does several of them, on file systems of its own.

The first file system is worked on, the others are copied from and looked up names in.
"""

import errno
import gc
import io
import os
import stat

import msgspec

from husk.builder.store.file_actions import Copy, FileAction, MakeDirectory, MakeFile, Owner, Remove, Symlink, id_of
from husk.builder.store.workers import archive_files, rooted_tree
from husk.builder.store.workers.copy_look import CopyLook
from husk.builder.store.workers.copying import TreeCopier
from husk.builder.store.workers.jobs import FilesJob
from husk.builder.store.workers.layer_tar import LayerTar
from husk.builder.store.workers.rooted_tree import ActionFailed, RootedTree, remove_all
from husk.builder.store.workers.stack_views import DISK, show_stacks
from husk.builder.store.workers.told_files import ToldFiles, open_told
from husk.storage.workers.answers import Answer, Done, Failed, Invalid, Missing
from husk.storage.workers.caller import Caller
from husk.storage.workers.parts import Stack
from husk.text.globs import BadPattern, Patterns

_DIRECTORY_MODE = 0o755
_MOST_OF_A_USER_FILE = 10 << 20
_FAULTS_OF_HOST = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE)


class NotThere(Exception):
    """There is no such file."""


def main(job: FilesJob, caller: Caller) -> None:
    # Of what is made here little is garbage, and the process ends with its job.
    gc.disable()
    with open(0, "rb", closefd=False) as actions:
        wanted = msgspec.msgpack.decode(actions.read(), type=list[FileAction])
    caller.answer(carry_out(job, wanted))


def carry_out(job: FilesJob, actions: list[FileAction]) -> Answer:
    try:
        tar = LayerTar(io.FileIO(job.blob, "r+"), job.lead) if job.blob else None
        # Opened while they can still be found.
        told = [open_told(stack.table, job.blobs) for stack in job.stacks]
        show_stacks(job.root, job.empty, job.stacks, common=job.common)
        trees = [
            _tree(number, stack, files, job) for number, (stack, files) in enumerate(zip(job.stacks, told, strict=True))
        ]
        done = Actions(trees, tar)
        for action in actions:
            done.carry_out(action)
        if tar is None:
            return Done(done.size)
        return Done(done.size, tar.finish(), tar.heads)
    except NotThere as error:
        return Missing(str(error))
    except (ActionFailed, BadPattern) as error:
        return Invalid(str(error))
    except OSError as error:
        return describe_fault(error)


def _tree(number: int, stack: Stack, told: ToldFiles | None, job: FilesJob) -> RootedTree:
    """Return a file system's tree. The one worked on is seen through overlayfs, unless there is nothing below it."""
    if not job.common or not stack.upper:
        return RootedTree(f"/{number}", told=told)
    upper = f"/{DISK}/{os.path.basename(stack.upper)}"
    return RootedTree(upper if stack.lower == [job.empty] else f"/{number}", upper)


class Actions:
    """The actions of a job, on its file systems."""

    def __init__(self, trees: list[RootedTree], tar: LayerTar | None = None) -> None:
        """`tar` is for a job that is one copy (`can_be_told`)."""
        self._trees = trees
        self._tree = trees[0]
        self._tar = tar
        if tar is not None:
            tar.begin(self._tree.on_disk)
        # The bytes of files that were made; None if some of them may have gone again.
        self.size: int | None = 0

    def carry_out(self, step: FileAction) -> None:
        if not isinstance(step.action, Copy | MakeDirectory | Symlink):
            self.size = None
        match step.action:
            case Copy():
                self._copy(step.action, self._trees[step.second_input])
            case MakeFile():
                self._make_file(step.action)
            case MakeDirectory():
                self._make_directory(step.action)
            case Symlink():
                self._symlink(step.action)
            case Remove():
                self._remove(step.action)

    # --- make and remove

    def _make_directory(self, action: MakeDirectory) -> None:
        path = self._tree.resolve(action.path)
        owner = self._owner(action.user, action.group)
        if not action.make_parents:
            above = path.rpartition("/")[0]
            if self._tree.status(path) is not None:
                return
            if self._tree.status(above) is None:
                raise NotThere(f"mkdir /{path}: no such file or directory")
        self._tree.make_directories(path, action.mode, owner, action.timestamp)

    def _make_file(self, action: MakeFile) -> None:
        path = self._tree.resolve(action.path)
        owner = self._owner(action.user, action.group)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        # One that is there keeps its mode.
        fd = os.open(path, flags, action.mode & 0o777, dir_fd=self._tree.fd)
        with open(fd, "wb", buffering=0) as file:
            left = memoryview(action.data)
            while left:
                left = left[file.write(left) :]
            if owner is not None:
                os.fchown(fd, *owner)
            if action.timestamp is not None:
                os.utime(fd, ns=(action.timestamp, action.timestamp))

    def _symlink(self, action: Symlink) -> None:
        path = self._tree.resolve(action.path)
        try:
            os.symlink(action.target, path, dir_fd=self._tree.fd)
        except FileExistsError:
            raise ActionFailed(f"symlink {action.target} /{path}: file exists") from None
        if (owner := self._owner(action.user, action.group)) is not None:
            os.chown(path, *owner, dir_fd=self._tree.fd, follow_symlinks=False)
        if action.timestamp is not None:
            time = action.timestamp
            os.utime(path, ns=(time, time), dir_fd=self._tree.fd, follow_symlinks=False)

    def _remove(self, action: Remove) -> None:
        paths = self._matches(self._tree, action.path, follow_links=False) if action.wildcards else [action.path]
        for path in paths:
            above, _, name = _clean(path).rpartition("/")
            if not name:
                raise ActionFailed("rmPath: invalid empty path")
            parent = self._tree.resolve(above)
            whole = f"{parent}/{name}".lstrip("/")
            if self._tree.status(whole) is None:
                if not action.may_be_missing:
                    raise NotThere(f"stat /{whole}: no such file or directory")
                continue
            with self._tree.directory(parent) as fd:
                remove_all(fd, name)

    # --- copy

    def _copy(self, action: Copy, source: RootedTree) -> None:
        target = self._tree
        if not action.make_parents:
            above = target.resolve(action.destination).rpartition("/")[0]
            if target.status(above) is None:
                raise NotThere(f"failed to stat {action.destination}: no such file or directory")
        owner = self._owner(action.user, action.group)
        look = CopyLook(owner, action.mode, action.symbolic_mode, action.timestamp)
        copier_options = (
            Patterns(map(clean_pattern, action.include)) if action.include else None,
            Patterns(map(clean_pattern, action.exclude)) if action.exclude else None,
            action.replace,
            self._tar,
        )
        paths = [action.source]
        if action.wildcards:
            paths = self._matches(source, action.source, action.follow_links)
            if not paths and not action.may_match_nothing:
                raise NotThere(f"{action.source} not found")
        if len(paths) != 1 and self._tar is not None:
            self._tar.give_up()
        for path in paths:
            if action.unpack and self._unpacked(source, path, action, owner):
                continue
            self._copy_one(action, TreeCopier(source, target, look, *copier_options), source, path, look)

    def _copy_one(self, action: Copy, copier: TreeCopier, source: RootedTree, path: str, look: CopyLook) -> None:
        target = self._tree
        mode = _DIRECTORY_MODE if action.mode is None else action.mode
        above, _, last = action.destination.rpartition("/")
        wanted = above if last not in ("", ".") else action.destination
        made = target.make_directories(target.resolve(wanted), mode, look.owner, look.time)
        place = target.resolve(action.destination)
        found = source.resolve(path, follow_last=action.follow_links)
        status = source.status(found)
        if status is None:
            raise NotThere(f'"{_clean(path)}": not found')
        directory = stat.S_ISDIR(status.st_mode)
        there = target.status(place)
        is_directory = there is not None and stat.S_ISDIR(there.st_mode)
        if (directory and not action.contents_only and there is not None) or (not directory and is_directory):
            place = f"{place}/{_clean(path).rpartition('/')[2]}".strip("/")
            there = target.status(place)
        parents = place if directory and action.contents_only and there is None else place.rpartition("/")[0]
        made += target.make_directories(parents, mode, look.owner, look.time)
        copier.copy(found, place, new=place in made)
        self.size = None if self.size is None or copier.size is None else self.size + copier.size
        target.set_times(made, look.time)

    def _unpacked(self, source: RootedTree, path: str, action: Copy, owner: rooted_tree.Owner | None) -> bool:
        found = source.resolve(path)
        if not archive_files.is_archive(source, found):
            return False
        place = self._tree.resolve(action.destination)
        self._tree.make_directories(place, _DIRECTORY_MODE, owner, action.timestamp)
        self.size = None
        archive_files.unpack(source, found, self._tree, place, owner)
        return True

    def _matches(self, tree: RootedTree, path: str, follow_links: bool) -> list[str]:
        found = tree.matches(path, follow_links)
        if found is None:
            raise NotThere(f'"{_clean(path)}": not found')
        return found

    # --- owners

    def _owner(self, user: Owner | None, group: Owner | None) -> rooted_tree.Owner | None:
        """A name that nobody has is root's, and without a group the user's own counts."""
        if user is None and group is None:
            return None
        numbers = (0, 0)
        if user is not None:
            by_number = (user.number, user.number) if user.number is not None else None
            numbers = by_number or self._look_up(user, "/etc/passwd", 2, 3) or numbers
        if group is not None:
            if group.number is not None:
                return numbers[0], group.number
            if (found := self._look_up(group, "/etc/group", 2, 2)) is not None:
                return numbers[0], found[0]
        return numbers

    def _look_up(self, owner: Owner, file: str, first: int, second: int) -> tuple[int, int] | None:
        for line in _lines(self._trees[owner.input], file):
            fields = line.split(":")
            if fields[0] == owner.name and len(fields) > second:
                numbers = id_of(fields[first]), id_of(fields[second])
                if numbers[0] is not None and numbers[1] is not None:
                    return numbers[0], numbers[1]
        return None


def _lines(tree: RootedTree, path: str) -> list[str]:
    """Of a text file of users or groups; none where there is no such file."""
    try:
        found = tree.resolve(path)
        status = tree.status(found)
    except NotADirectoryError:
        return []
    if status is None:
        return []
    if not stat.S_ISREG(status.st_mode):
        raise ActionFailed(f"{path} is not a regular file")
    fd = os.open(found, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=tree.fd)
    with open(fd, "rb") as file:
        return file.read(_MOST_OF_A_USER_FILE).decode(errors="replace").splitlines()


def _clean(path: str) -> str:
    return os.path.normpath("/" + path.lstrip("/"))


def clean_pattern(pattern: str) -> str:
    """As short as can be, and relative."""
    negated = pattern.startswith("!")
    cleaned = os.path.normpath(pattern[negated:]).lstrip("/") or "."
    return "!" + cleaned if negated else cleaned


def describe_fault(error: OSError) -> Answer:
    name = error.filename
    told = f"{os.fsdecode(name) if isinstance(name, bytes) else name}: " if name else ""
    told += (error.strerror or str(error)).lower()
    if isinstance(error, FileNotFoundError):
        return Missing(told)
    return Failed(told) if error.errno in _FAULTS_OF_HOST or error.errno is None else Invalid(told)
