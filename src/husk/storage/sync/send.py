"""The worker that sends a directory to a client, which writes it into one of its own.

    send <job as JSON> <descriptor>

Standard input is what the client sends, standard output what is to be sent to it. One line on the descriptor tells how
it went: `ok <bytes of files>`, `invalid <message>` (the client is to blame), `system <message>` (the host is).
"""

import gc
import json
import os
import sys
from typing import TypedDict

from husk.storage.sync import packets
from husk.storage.sync.lines import Lines
from husk.storage.sync.packets import SyncError
from husk.storage.sync.reader import TreeReader
from husk.storage.sync.sender import Sender
from husk.storage.workers.confine import confine

_BATCH = 1 << 18


class SendJob(TypedDict):
    """`prefix` is the directory of the client's directory that all goes into; `mtime` the time of all files."""

    root: str
    prefix: str
    mtime: int | None


def main() -> None:
    job: SendJob = json.loads(sys.argv[1])
    report = int(sys.argv[2])
    outlet = os.dup(1)
    os.dup2(2, 1)
    gc.disable()
    outcome = send(job, Lines(0, outlet))
    os.write(report, outcome.replace("\n", " ").encode("utf-8", "backslashreplace")[:8192] + b"\n")


def send(job: SendJob, lines: Lines) -> str:
    """Do the work and put the outcome into a line."""
    try:
        confine(job["root"], [])
        sender = Sender(TreeReader(job["prefix"], job["mtime"]))
        while not sender.ended:
            if _has_come(sender, lines):
                if not (data := lines.read()):
                    raise SyncError("unexpected EOF")
                sender.feed(data)
            if not lines.behind:
                lines.write(_batch(sender))
        lines.drain()
    except SyncError as error:
        lines.write(bytearray(packets.error(str(error))))
        lines.drain()
        return f"invalid {error}"
    except OSError as error:
        where = f": {os.fsdecode(error.filename)}" if error.filename else ""
        return f"system {(error.strerror or str(error)).lower()}{where}"
    return f"ok {sender.sent}"


def _has_come(sender: Sender, lines: Lines) -> bool:
    """Is there something to read? Waits where there is nothing else to do."""
    if lines.behind:
        return lines.wait()
    return sender.idle or lines.ready()


def _batch(sender: Sender) -> bytearray:
    batch = bytearray()
    while len(batch) < _BATCH and (piece := sender.next()):
        batch += piece
    return batch
