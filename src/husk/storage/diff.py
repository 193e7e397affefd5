"""What did a container change? The tar of an overlay's upper directory, as a layer holds it.

`write_diff` is the function, `main` the worker process that runs it confined to that directory, so that a container
that is still running cannot make it read anything else by turning a directory into a link.
"""

import os
import signal
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from husk.storage.archive import OPAQUE_MARK, OPAQUE_XATTR, is_whiteout, whiteout_name
from husk.storage.members import BUFFER, HandOver, pipe_to, tar_to


def main() -> None:
    """`diff <upper> <fd>`: write the archive to standard output, then to `fd` that it is whole."""
    # The reader's own complaint says what is wrong; ours about the broken pipe would only hide it.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.chroot(sys.argv[1])
    os.chdir("/")
    # Whatever would still be imported would now come out of the container's files.
    sys.path.clear()
    sys.meta_path.clear()
    with open(1, "wb", buffering=BUFFER) as out:
        write_diff(Path("/"), out, pipe_to(1))
    os.write(int(sys.argv[2]), b"ok\n")


def write_diff(upper: Path, out: BinaryIO, hand_over: HandOver | None = None) -> None:
    """Write what an overlay's upper directory changes as a layer's tar; `hand_over` as for `tar_to`.

    The order depends on names only. Times are whole seconds, as in Docker's layers.
    """
    with tar_to(out, hand_over=hand_over) as members:
        for name, path, status in _walk(os.fsencode(upper)):
            text = os.fsdecode(name)
            if status is None:
                members.add_empty(text)
            else:
                members.add(text, path, status)


def _walk(top: bytes) -> Iterator[tuple[bytes, bytes, os.stat_result | None]]:
    """Everything below `top` as name in the archive, path and status; a status of None stands for a whiteout mark."""
    stack = [b""]
    while stack:
        name = stack.pop()
        path = os.path.join(top, name)
        if name:
            try:
                status = os.lstat(path)
            except FileNotFoundError:
                continue
            if is_whiteout(status):
                parent, base = os.path.split(name)
                yield os.path.join(parent, whiteout_name(base)), path, None
                continue
            yield name, path, status
            if not stat.S_ISDIR(status.st_mode):
                continue
            if _is_opaque(path):
                yield os.path.join(name, OPAQUE_MARK), path, None
        try:
            children = sorted(os.listdir(path), reverse=True)
        except (FileNotFoundError, NotADirectoryError):
            continue
        stack += [os.path.join(name, child) for child in children]


def _is_opaque(path: bytes) -> bool:
    try:
        return os.getxattr(path, OPAQUE_XATTR, follow_symlinks=False) == b"y"
    except OSError:
        return False
