"""The worker that makes a directory the same as a client's.

    receive <job as JSON> <descriptor>

Standard input is what the client sends, standard output what is to be sent to it. One line on the descriptor tells how
it went: `ok <files> <bytes written>`, `invalid <message>` (the client is to blame), `system <message>` (the host is).
"""

import gc
import json
import os
import sys
from typing import TypedDict

from husk.storage.sync import packets
from husk.storage.sync.lines import Lines
from husk.storage.sync.packets import SyncError
from husk.storage.sync.receiver import Receiver
from husk.storage.sync.table import Table, read_table, write_table
from husk.storage.sync.writer import TreeWriter
from husk.storage.tar.whiteouts import is_overlay_xattr
from husk.storage.workers.confine import confine


class ReceiveJob(TypedDict):
    """`root` is what the table `old` tells of, or empty; the table `new` is written when all is well.

    The old table is removed first: from then on the directory is not what it says.
    """

    root: str
    old: str
    new: str


def main() -> None:
    job: ReceiveJob = json.loads(sys.argv[1])
    report = int(sys.argv[2])
    outlet = os.dup(1)
    os.dup2(2, 1)
    # All that is made here stays until the end: there is no garbage to look for.
    gc.disable()
    outcome = receive(job, Lines(0, outlet))
    os.write(report, outcome.replace("\n", " ").encode("utf-8", "backslashreplace")[:8192] + b"\n")


def receive(job: ReceiveJob, lines: Lines) -> str:
    """Do the work and put the outcome into a line."""
    try:
        old = _take(job["old"])
        with open(job["new"], "xb", opener=_private) as new:
            confine(job["root"], [])
            tree = TreeWriter(is_overlay_xattr)
            receiver = Receiver(tree, old)
            while data := lines.read():
                receiver.feed(data)
                if receiver.complete:
                    receiver.finish()
                    write_table(receiver.table, new)
                lines.write(receiver.output)
                if receiver.ended:
                    break
            receiver.close()
    except SyncError as error:
        lines.write(bytearray(packets.error(str(error))))
        lines.drain()
        return f"invalid {error}"
    except OSError as error:
        # The client hears of it by the end of its stream.
        where = f": {os.fsdecode(error.filename)}" if error.filename else ""
        return f"system {(error.strerror or str(error)).lower()}{where}"
    return f"ok {len(receiver.table)} {tree.written}"


def _take(path: str) -> Table:
    """The table of the last sync, which is true no more."""
    if not path:
        return Table()
    with open(path, "rb") as file:
        os.unlink(path)
        table = read_table(file)
    if table is None:
        raise OSError(f"{path} is no table of a directory")
    return table


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
