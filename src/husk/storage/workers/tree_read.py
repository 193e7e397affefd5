"""How is one file of a build's file system read? The worker process: it finds the file as a process in it would."""

import os
import stat

from husk.storage.workers.caller import Caller
from husk.storage.workers.file_job import describe_fault
from husk.storage.workers.messages import Answer, FileContent, Invalid, Missing, ReadJob
from husk.storage.workers.rooted_tree import ActionFailed, RootedTree
from husk.storage.workers.stack_views import show_stacks

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def main(job: ReadJob, caller: Caller) -> None:
    try:
        show_stacks(job.root, job.empty, [job.stack])
        caller.answer(read(RootedTree("/0"), job.path, job.most))
    except OSError as error:
        caller.answer(describe_fault(error))


def read(tree: RootedTree, path: str, most: int) -> Answer:
    """The beginning of a regular file of the tree."""
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
        return FileContent(file.read(most))
