"""The worker process that lists the files of a build's file system: one line of JSON for each, on standard output."""

import hashlib
import json
import os
import signal
import stat
from collections.abc import Iterator

from husk.builder.store.workers.file_job import describe_fault
from husk.builder.store.workers.jobs import ListJob
from husk.builder.store.workers.stack_views import show_stacks
from husk.kernel.trees import walk
from husk.storage.workers.answers import Done
from husk.storage.workers.caller import Caller

_LONGEST = 4096  # PATH_MAX
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def main(job: ListJob, caller: Caller) -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        show_stacks(job.root, job.empty, [job.stack])
        root = os.open("/0", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with open(1, "wb", closefd=False) as out:
            for path, digest in listed(root, digests=job.digests):
                out.write(json.dumps([path, digest]).encode() + b"\n")
    except OSError as error:
        caller.answer(describe_fault(error))
        return
    caller.answer(Done())


def listed(directory: int, *, digests: bool) -> Iterator[tuple[str, str]]:
    """All that are no directories, by their paths; regular ones with their digests, if these are wanted.

    What lies deeper than a path can be long is left out: nobody could name it.
    """
    for found in walk(directory):
        mode = found.status.st_mode
        if stat.S_ISDIR(mode) or len(found.above) * 2 > _LONGEST:
            continue
        path = found.path
        if len(os.fsencode(path)) < _LONGEST:
            yield path, digest_of(found.name, found.directory) if digests and stat.S_ISREG(mode) else ""


def digest_of(name: str, directory: int) -> str:
    with open(os.open(name, _READ, dir_fd=directory), "rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
