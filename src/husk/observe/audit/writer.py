"""Whole lines at the end of a file, by a thread of its own: a slow or full disk makes no request wait or fail.

Lines are handed over (`write`), the thread appends what has gathered in one go. `reopen` is for who has moved the file
away. What cannot be written is counted and lost; the daemon's log says so, once for each time of trouble.
"""

import logging
import os
import stat
import threading
from collections import deque
from pathlib import Path

from husk.errors import SystemFault

log = logging.getLogger(__name__)

# What may wait for a disk that stalls, in lines and in bytes: most lines are short, but some tell of large documents.
MOST_WAITING = 10_000
MOST_BYTES = 32 << 20
# Seconds that the daemon's end waits for the last lines.
PATIENCE = 5.0
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


class AuditWriter:
    """Appends lines to one file until it is closed."""

    def __init__(self, path: Path, most: int = MOST_WAITING, most_bytes: int = MOST_BYTES) -> None:
        """SystemFault where the file cannot be opened: a daemon without the log it was told to keep does not start."""
        self._path = path
        self._most = most
        self._most_bytes = most_bytes
        try:
            self._file = _open(path)
        except OSError as error:
            raise SystemFault(
                f"cannot open the audit log {path}: {error.strerror or error}. Choose another file with --audit-log"
            ) from error
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._reopening = False
        self._closing = False
        # The last write ended inside of a line.
        self._torn = False
        self._lost = 0
        self._complained = False
        self._thread = threading.Thread(target=self._work, name="audit", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """One line, without its end. Never waits."""
        with self._changed:
            if len(self._waiting) >= self._most or self._size >= self._most_bytes:
                self._lost += 1
                return
            self._waiting.append(line)
            self._size += len(line)
            self._changed.notify()

    def reopen(self) -> None:
        """Go on in the file that has the name now."""
        with self._changed:
            self._reopening = True
            self._changed.notify()

    def close(self, patience: float = PATIENCE) -> None:
        """Write what waits, for so many seconds at most."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(patience)
        if self._thread.is_alive():
            log.warning("the audit log %s is not written to its end: the disk does not answer", self._path)

    # in the thread

    def _work(self) -> None:
        while True:
            with self._changed:
                while not (self._waiting or self._reopening or self._closing):
                    self._changed.wait()
                lines = list(self._waiting)
                self._waiting.clear()
                self._size = 0
                reopening, self._reopening = self._reopening, False
                closing = self._closing
            # What was answered before somebody moved the file away belongs to the old one.
            if lines:
                self._append(lines)
            if reopening:
                self._open_again()
            if closing and not lines:
                os.close(self._file)
                return

    def _append(self, lines: list[bytes]) -> None:
        data = b"".join(line + b"\n" for line in lines)
        if self._torn:
            data = b"\n" + data
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            written = data[: len(data) - len(left)]
            if written:
                self._torn = not written.endswith(b"\n")
            self._trouble(error, min(left.tobytes().count(b"\n"), len(lines)))
            return
        self._torn = False
        with self._changed:
            lost, self._lost = self._lost, 0
        if lost:
            log.warning("the audit log %s is written again; %d lines are missing", self._path, lost)
        self._complained = False

    def _trouble(self, error: OSError, lost: int) -> None:
        with self._changed:
            self._lost += lost
        if not self._complained:
            self._complained = True
            log.warning(
                "the audit log %s cannot be written: %s; requests go on without it", self._path, error.strerror or error
            )

    def _open_again(self) -> None:
        try:
            new = _open(self._path)
        except OSError as error:
            log.warning(
                "the audit log %s cannot be opened again: %s; it goes on in the old file",
                self._path,
                error.strerror or error,
            )
            return
        os.close(self._file)
        self._file, self._torn = new, False


def _open(path: Path) -> int:
    """For root alone where it is new; one that is here keeps the rights that somebody gave it."""
    descriptor = os.open(path, _FLAGS, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("it is no regular file")
    return descriptor
