"""A process that starts programs for another one, and is the parent of what they leave behind.

`husk.runtime.supervise.keeper` starts it and speaks with it. Standard input is a socket of messages, each a JSON
document:

    {"id": 1, "argv": [...], "env": {...}, "pid": "/path", "exit": "/path"}    start a program; with three descriptors
    {"id": 1, "drop": true}                                                    kill it, if it is still at work

It says `{"id": 0}` when it is ready, answers `{"id": 1, "status": 0, "pid": 23}` when the program has ended, with the
process that its file `pid` names, and `{"id": 1, "exit": 0}` when that process has ended, with its exit status (128 +
signal when killed), which is then in the file `exit`, too. When nobody is at the other end any more, or the process is
gone whose id is its argument, all that it keeps is killed, and it ends itself. (A child that was forked there may hold
the other end.)

Only the standard library is used: it is as small as a Python process can be, and starts as fast.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import sys
from typing import Any, NamedTuple

_PR_SET_CHILD_SUBREAPER = 36
_LARGEST = 1 << 16
# The exit status of a process that somebody else has waited for.
_UNKNOWN = 255
# What Python ignores, and programs do not expect to be ignored.
_DEFAULT_AGAIN = (signal.SIGPIPE, signal.SIGXFSZ)


class _Kept(NamedTuple):
    number: int
    pid_file: str
    exit_file: str


class Keeping:
    def __init__(self, line: socket.socket, owner: int) -> None:
        """`owner` is a descriptor of the process that this is for."""
        self._line = line
        self._owner = owner
        self._listening = True
        self._starting: dict[int, _Kept] = {}
        self._running: dict[int, _Kept] = {}
        # Ends of processes that may turn out to be a program's, which tells so only at its own end.
        self._unknown: dict[int, int] = {}

    def serve(self) -> None:
        """Until nobody asks any more and nothing is left."""
        woken, wakes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        poll = select.poll()
        poll.register(woken, select.POLLIN)
        poll.register(self._line, select.POLLIN)
        poll.register(self._owner, select.POLLIN)
        self._tell(id=0)
        while self._listening or self._starting or self._running:
            for descriptor, _ in poll.poll():
                if descriptor == woken:
                    with contextlib.suppress(BlockingIOError):
                        os.read(woken, 4096)
                elif self._listening and (descriptor == self._owner or not self._take()):
                    poll.unregister(self._line)
                    poll.unregister(self._owner)
                    self._end()
            self._reap()

    def _end(self) -> None:
        self._listening = False
        for pid in (*self._starting, *self._running):
            os.kill(pid, signal.SIGKILL)

    def _take(self) -> bool:
        """Take one request and do it; False when nobody asks any more."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._line, _LARGEST, 3, socket.MSG_CMSG_CLOEXEC)
        except ConnectionError:
            return False
        if not data:
            return False
        asked = json.loads(data)
        try:
            if asked.get("drop"):
                self._drop(asked["id"])
            else:
                self._start(asked, descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _start(self, asked: dict[str, Any], streams: list[int]) -> None:
        argv = asked["argv"]
        places = [(os.POSIX_SPAWN_DUP2, stream, number) for number, stream in enumerate(streams)]
        try:
            pid = os.posix_spawn(
                argv[0], argv, asked["env"], file_actions=places, setsid=True, setsigmask=(), setsigdef=_DEFAULT_AGAIN
            )
        except OSError as error:
            self._tell(id=asked["id"], status=127, pid=0, error=f"cannot run {argv[0]}: {error.strerror}")
            return
        self._starting[pid] = _Kept(asked["id"], asked["pid"], asked["exit"])

    def _drop(self, number: int) -> None:
        for pid, kept in self._starting.items():
            if kept.number == number:
                os.kill(pid, signal.SIGKILL)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                code = os.waitstatus_to_exitcode(status)
                self._ended(pid, code if code >= 0 else 128 - code)
        if not self._starting:
            self._unknown.clear()

    def _ended(self, pid: int, code: int) -> None:
        if (kept := self._running.pop(pid, None)) is not None:
            self._gone(kept, code)
        elif (kept := self._starting.pop(pid, None)) is not None:
            self._started(kept, code)
        else:
            self._unknown[pid] = code

    def _started(self, kept: _Kept, code: int) -> None:
        """The program has ended: the process that it has left is ours now."""
        pid = 0
        if not code:
            with contextlib.suppress(OSError, ValueError), open(kept.pid_file) as file:
                pid = int(file.read())
        self._tell(id=kept.number, status=code, pid=pid)
        if pid in self._unknown:
            self._gone(kept, self._unknown.pop(pid))
        elif pid and not _is_child(pid):
            self._gone(kept, _UNKNOWN)
        elif pid:
            self._running[pid] = kept
            if not self._listening:
                os.kill(pid, signal.SIGKILL)

    def _gone(self, kept: _Kept, code: int) -> None:
        with contextlib.suppress(OSError):  # its directory may be gone
            file = os.open(kept.exit_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                os.write(file, str(code).encode())
            finally:
                os.close(file)
        self._tell(id=kept.number, exit=code)

    def _tell(self, **said: object) -> None:
        with contextlib.suppress(ConnectionError):
            self._line.send(json.dumps(said).encode())


def _is_child(pid: int) -> bool:
    """Tell if the process is ours to wait for. If it ended while its program was there, that may have waited for it."""
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def main() -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    with contextlib.suppress(ProcessLookupError):  # it is gone already
        Keeping(socket.socket(fileno=os.dup(0)), os.pidfd_open(int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
