"""The worker process that sends out the files of a build's result: file systems as one tar on standard output."""

import os
import signal

from husk.builder.store.workers.file_job import describe_fault
from husk.builder.store.workers.jobs import StackTarJob
from husk.builder.store.workers.stack_views import show_stacks
from husk.storage.tar.members import BUFFER, pipe_to, tar_to
from husk.storage.workers.answers import Done
from husk.storage.workers.caller import Caller
from husk.storage.workers.pack import add_all


def main(job: StackTarJob, caller: Caller) -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        show_stacks(job.root, job.empty, list(job.stacks.values()), [name or "0" for name in job.stacks])
        with (
            open(1, "wb", buffering=BUFFER, closefd=False) as out,
            tar_to(out, None, pipe_to(1), job.latest) as members,
        ):
            for name in sorted(os.listdir("/")):
                add_all(members, f"/{name}", name if name in job.stacks else None)
    except OSError as error:
        caller.answer(describe_fault(error))
        return
    caller.answer(Done())
