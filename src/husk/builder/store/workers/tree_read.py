"""The worker process that reads files of a build's file system, and looks at them: found as a process in it would."""

import os
import stat

from husk.builder.store.workers.file_job import describe_fault
from husk.builder.store.workers.jobs import LookJob, ReadJob
from husk.builder.store.workers.rooted_tree import ActionFailed, RootedTree
from husk.builder.store.workers.stack_views import show_stacks
from husk.storage.workers.answers import Answer, FileContent, FoundFile, Invalid, Looked, Missing
from husk.storage.workers.caller import Caller

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


# A list of them goes through one message.
_MOST_ENTRIES = 20_000


def main(job: ReadJob | LookJob, caller: Caller) -> None:
    try:
        show_stacks(job.root, job.empty, [job.stack])
        tree = RootedTree("/0")
        if isinstance(job, LookJob):
            caller.answer(look(tree, job.path, inside=job.inside))
        else:
            caller.answer(read(tree, job.path, job.most, job.offset))
    except OSError as error:
        caller.answer(describe_fault(error))


def read(tree: RootedTree, path: str, most: int, offset: int = 0) -> Answer:
    """So much of a regular file of the tree."""
    try:
        found = tree.resolve(path)
        status = tree.status(found)
    except NotADirectoryError:
        return Missing(path)
    except ActionFailed as error:
        return Invalid(str(error))
    if status is None:
        return Missing(path)
    if not stat.S_ISREG(status.st_mode):
        return Invalid(f"{path} is not a regular file")
    with open(os.open(found, _READ, dir_fd=tree.fd), "rb") as file:
        file.seek(min(offset, status.st_size))
        return FileContent(file.read(most))


def look(tree: RootedTree, path: str, *, inside: bool, most: int = _MOST_ENTRIES) -> Answer:
    """Look at what a path leads to in the end, or at what is in a directory: there links are links."""
    try:
        found = tree.resolve(path)
        status = tree.status(found)
        if status is None:
            return Missing(path)
        if not inside:
            return Looked([_entry(os.path.basename(path.rstrip("/")) or "/", status, "")])
        if not stat.S_ISDIR(status.st_mode):
            return Invalid(f"{path} is not a directory")
        with tree.directory(found) as directory:
            return _inside(path, directory, most)
    except NotADirectoryError:
        return Missing(path)
    except ActionFailed as error:
        return Invalid(str(error))


def _inside(path: str, directory: int, most: int) -> Answer:
    names = sorted(os.listdir(directory))
    if len(names) > most:
        return Invalid(f"{path} has more than {most} files")
    entries = []
    for name in names:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        link = os.readlink(name, dir_fd=directory) if stat.S_ISLNK(status.st_mode) else ""
        entries.append(_entry(name, status, link))
    return Looked(entries)


def _entry(name: str, status: os.stat_result, link: str) -> FoundFile:
    return FoundFile(
        name=name,
        mode=status.st_mode,
        uid=status.st_uid,
        gid=status.st_gid,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        link=link,
        major=os.major(status.st_rdev),
        minor=os.minor(status.st_rdev),
    )
