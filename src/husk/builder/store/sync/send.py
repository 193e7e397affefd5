"""The worker that sends a directory to a client, which writes it into one of its own.

Standard input is what the client sends, standard output what is to be sent to it.
"""

import gc
import os
from collections.abc import Callable

from husk.builder.store.sync.lines import ClientLines
from husk.builder.store.sync.packets import SyncError
from husk.builder.store.sync.sender import Sender, TreeReader
from husk.builder.store.workers.jobs import SendJob
from husk.builder.store.workers.stack_views import show_stacks
from husk.storage.workers.answers import Failed, Invalid, Sent
from husk.storage.workers.caller import Caller
from husk.storage.workers.confine import enter_alone

_BATCH = 1 << 18


def main(job: SendJob, caller: Caller) -> None:
    gc.disable()
    caller.answer(send(job, ClientLines(0, 1)))


def send(job: SendJob, lines: ClientLines, enter: Callable[[str], None] = enter_alone) -> Sent | Invalid | Failed:
    """Send the job's directory, the current one after `enter`, or its stacks to the client; return the answer."""
    try:
        _enter(job, enter)
        sender = Sender(TreeReader(job.prefix, job.mtime))
        while not sender.ended:
            if _has_come(sender, lines):
                if not (data := lines.read()):
                    raise SyncError("unexpected EOF")
                sender.feed(data)
            if not lines.behind:
                lines.write(_batch(sender))
        lines.drain()
    except (SyncError, OSError) as error:
        return lines.tell(error)
    return Sent(sender.sent)


def _enter(job: SendJob, enter: Callable[[str], None]) -> None:
    """Make what is to be sent the current directory, and nothing else to be seen."""
    if not job.stacks:
        enter(job.root)
        return
    show_stacks(job.root, job.empty, list(job.stacks.values()), [name or "0" for name in job.stacks])
    os.chdir("/0" if "" in job.stacks else "/")


def _has_come(sender: Sender, lines: ClientLines) -> bool:
    """Tell if there is something to read. Waits where there is nothing else to do."""
    if lines.behind:
        return lines.wait()
    return sender.idle or lines.ready()


def _batch(sender: Sender) -> bytearray:
    batch = bytearray()
    while len(batch) < _BATCH and (piece := sender.next()):
        batch += piece
    return batch
