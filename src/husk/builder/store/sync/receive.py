"""The worker that makes a directory the same as a client's.

Standard input is what the client sends, standard output what is to be sent to it.
"""

import gc
import os
from collections.abc import Callable

from husk.builder.store.space import doubled
from husk.builder.store.sync.lines import ClientLines
from husk.builder.store.sync.pack_ahead import PackAhead
from husk.builder.store.sync.packets import SyncError
from husk.builder.store.sync.receiver import Receiver
from husk.builder.store.sync.writer import TreeWriter
from husk.builder.store.sync_table import SyncTable, read_table, write_table
from husk.builder.store.workers.jobs import ReceiveJob
from husk.storage.tar.whiteouts import is_overlay_xattr
from husk.storage.workers.answers import Failed, Invalid, Received
from husk.storage.workers.caller import Caller
from husk.storage.workers.confine import enter_alone


def main(job: ReceiveJob, caller: Caller) -> None:
    # All that is made here stays until the end: there is no garbage to look for.
    gc.disable()
    with PackAhead(job.ahead) as ahead:
        received = receive(job, ClientLines(0, 1), ahead)
        caller.answer(received)
        if isinstance(received, Received) and received.packing:
            # The client is not kept waiting for this.
            os.close(0)
            os.close(1)
            caller.answer(ahead.finish())


def receive(
    job: ReceiveJob, lines: ClientLines, ahead: PackAhead, enter: Callable[[str], None] = enter_alone
) -> Received | Invalid | Failed:
    """Make the job's directory, the current one after `enter`, the same as the client's; return the answer."""
    try:
        old = _take(job.old)
        with open(job.new, "xb", opener=_private) as new:
            enter(job.root)
            tree = TreeWriter(is_overlay_xattr)
            receiver = Receiver(tree, old, doubled(job.root), job.limit)
            while data := lines.read():
                receiver.feed(data)
                if receiver.complete:
                    receiver.finish()
                    ahead.set_time(".")
                    write_table(receiver.table, new)
                ahead.follow(receiver)
                lines.write(receiver.output)
                if receiver.ended:
                    break
            receiver.close()
    except (SyncError, OSError) as error:
        return lines.tell(error)
    return Received(len(receiver.table), receiver.table.size, tree.written, ahead.is_right(receiver))


def _take(path: str) -> SyncTable:
    """The table of the last sync, which is true no more."""
    if not path:
        return SyncTable()
    with open(path, "rb") as file:
        os.unlink(path)
        table = read_table(file)
    if table is None:
        raise OSError(f"{path} is no table of a directory")
    return table


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
