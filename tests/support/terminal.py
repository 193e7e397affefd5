"""A terminal for tests: a program on a pty, typed at and read from as a person would.

with Terminal(["docker", "run", "-it", "busybox"], environment) as terminal:
    terminal.expect(b"/ # ")
    terminal.type(b"exit 3\\n")
    assert terminal.wait() == 3
"""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
import tty
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

DEADLINE = 20.0


class Terminal:
    """A program with a terminal of its own; `rows` and `columns` are its window."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], rows: int = 24, columns: int = 80
    ) -> None:
        self._master, slave = pty.openpty()
        self.seen = b""
        self._set_size(slave, rows, columns)
        try:
            self._process = subprocess.Popen(
                command, stdin=slave, stdout=slave, stderr=slave, env=dict(environment), start_new_session=True
            )
        finally:
            os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def expect(self, text: bytes) -> bytes:
        """Read until `text` comes; everything up to and with it, which is then forgotten."""
        end = time.monotonic() + DEADLINE
        while text not in self.seen:
            left = end - time.monotonic()
            assert left > 0, f"{text!r} did not come; seen: {self.seen!r}"
            if select.select([self._master], [], [], left)[0]:
                try:
                    data = os.read(self._master, 65536)
                except OSError:  # EIO: the other side is closed
                    data = b""
                assert data, f"the program ended before {text!r} came; seen: {self.seen!r}"
                self.seen += data
        found, _, self.seen = self.seen.partition(text)
        return found + text

    def resize(self, rows: int, columns: int) -> None:
        self._set_size(self._master, rows, columns)
        self._process.send_signal(signal.SIGWINCH)

    def wait(self) -> int:
        """The exit status, with the output drained meanwhile."""
        end = time.monotonic() + DEADLINE
        while self._process.poll() is None:
            assert time.monotonic() < end, f"the program does not end; seen: {self.seen!r}"
            self._drain()
        self._drain()
        return self._process.returncode

    def _drain(self) -> None:
        try:
            while select.select([self._master], [], [], 0.01)[0] and (data := os.read(self._master, 65536)):
                self.seen += data
        except OSError:
            time.sleep(0.01)

    @staticmethod
    def _set_size(fd: int, rows: int, columns: int) -> None:
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@contextmanager
def stdout_terminal() -> Iterator[Callable[[], str]]:
    """Make a terminal this process's stdout; what is given tells what was written on it since it was last asked."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    os.set_blocking(master, False)
    before = os.dup(1)
    os.dup2(slave, 1)

    def shown() -> str:
        try:
            return os.read(master, 1 << 16).decode()
        except BlockingIOError:
            return ""

    try:
        yield shown
    finally:
        os.dup2(before, 1)
        for descriptor in (before, slave, master):
            os.close(descriptor)
