"""Which files does a build's file system have? The worker process: one line of JSON for each, on standard output."""

import hashlib
import json
import os
import signal
import stat
from collections.abc import Iterator

from husk.storage.workers.answers import Done
from husk.storage.workers.caller import Caller
from husk.storage.workers.file_job import describe_fault
from husk.storage.workers.jobs import ListJob
from husk.storage.workers.stack_views import show_stacks

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def main(job: ListJob, caller: Caller) -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        show_stacks(job.root, job.empty, [job.stack])
        root = os.open("/0", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with open(1, "wb", closefd=False) as out:
            for path, digest in listed(root, "", digests=job.digests):
                out.write(json.dumps([path, digest]).encode() + b"\n")
    except OSError as error:
        caller.answer(describe_fault(error))
        return
    caller.answer(Done())


def listed(directory: int, path: str, *, digests: bool) -> Iterator[tuple[str, str]]:
    """All that are no directories, by their paths; regular ones with their digests, if these are wanted."""
    for name in sorted(os.listdir(directory)):
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        below = f"{path}{name}"
        if not stat.S_ISDIR(mode):
            yield below, digest_of(name, directory) if digests and stat.S_ISREG(mode) else ""
            continue
        inside = os.open(name, _READ | os.O_DIRECTORY, dir_fd=directory)
        try:
            yield from listed(inside, f"{below}/", digests=digests)
        finally:
            os.close(inside)


def digest_of(name: str, directory: int) -> str:
    with open(os.open(name, _READ, dir_fd=directory), "rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
