"""How does a build's diff become a blob? The worker process: a directory in, its tar in a file out, and its digest.

    diff_blob <upper directory> <blob file> <latest time of an entry in seconds, or ->

The process confines itself to the directory. One line on standard output says how it went: `ok <digest> <size>` or
`system <message>`.
"""

import hashlib
import io
import os
import sys
from pathlib import Path

from husk.storage.tar.members import BUFFER
from husk.storage.workers.diff import write_diff


def main() -> None:
    upper, blob, latest = sys.argv[1:]
    outcome = pack(upper, blob, None if latest == "-" else int(latest))
    os.write(1, outcome.replace("\n", " ").encode("utf-8", "backslashreplace") + b"\n")


def pack(upper: str, blob: str, latest: int | None) -> str:
    """Do the work, as a process that can do nothing else afterwards, and put the outcome into a line."""
    try:
        with open(blob, "xb", buffering=0) as file:
            os.chmod(blob, 0o600)
            os.chroot(upper)
            os.chdir("/")
            # Whatever would still be imported would now come out of the container's files.
            sys.path.clear()
            sys.meta_path.clear()
            digest, size = write_blob(Path("/"), file, latest)
    except OSError as error:
        return f"system packing failed: {error}"
    return f"ok {digest} {size}"


def write_blob(upper: Path, file: io.FileIO, latest: int | None) -> tuple[str, int]:
    """Write the tar of what `upper` changes; its digest and size."""
    out = _HashedFile(file)
    write_diff(upper, out, latest=latest)
    return "sha256:" + out.hash.hexdigest(), out.size


class _HashedFile:
    """A file that is hashed while it is written."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self._waiting = bytearray()
        self.hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes, /) -> None:
        self._waiting += data
        if len(self._waiting) >= BUFFER:
            self.flush()

    def flush(self) -> None:
        self.hash.update(self._waiting)
        self.size += len(self._waiting)
        with memoryview(self._waiting) as left:
            at = 0
            while at < len(left):
                at += self._file.write(left[at:])
        self._waiting.clear()
