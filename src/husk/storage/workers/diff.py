"""The changes of a container, as a layer holds them: the tar of an overlay's upper directory.

`write_diff` is the function, `main` the worker process that runs it confined to that directory, so that a container
that is still running cannot make it read anything else by turning a directory into a link.
"""

import os
import signal
import stat
from pathlib import Path

from husk.kernel.mount import OPAQUE_XATTR
from husk.kernel.trees import inside, walk
from husk.storage.tar.members import BUFFER, HandOver, Output, pipe_to, tar_to
from husk.storage.tar.whiteouts import OPAQUE_MARK, is_whiteout, whiteout_name
from husk.storage.workers.answers import Done
from husk.storage.workers.caller import Caller
from husk.storage.workers.confine import enter
from husk.storage.workers.jobs import DiffJob


def main(job: DiffJob, caller: Caller) -> None:
    # The reader's own complaint says what is wrong; ours about the broken pipe would only hide it.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    enter(job.upper)
    with open(1, "wb", buffering=BUFFER) as out:
        write_diff(Path("/"), out, pipe_to(1))
    caller.answer(Done())


def write_diff(upper: Path, out: Output, hand_over: HandOver | None = None, latest: int | None = None) -> None:
    """Write what an overlay's upper directory changes as a layer's tar; `hand_over` and `latest` as for `tar_to`.

    The order depends on names only. Times are whole seconds, as in Docker's layers.
    """
    with tar_to(out, hand_over=hand_over, latest=latest) as members, inside(upper) as top:
        for found in walk(top, os.fchdir):
            if is_whiteout(found.status):
                base = os.fsdecode(whiteout_name(os.fsencode(found.name)))
                members.add_empty("/".join([*found.above, base]))
                continue
            path = found.path
            name = os.fsencode(found.name)
            members.add(path, name, found.status)
            if stat.S_ISDIR(found.status.st_mode) and _is_opaque(name):
                members.add_empty(f"{path}/{os.fsdecode(OPAQUE_MARK)}")


def _is_opaque(path: bytes) -> bool:
    try:
        return os.getxattr(path, OPAQUE_XATTR, follow_symlinks=False) == b"y"
    except OSError:
        return False
