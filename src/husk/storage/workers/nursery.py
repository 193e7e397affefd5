"""The daemon's source of workers, there within milliseconds: `forker`, a process that only forks, makes them.

    nursery = Nursery()
    child = await nursery.spawn(UnpackJob(...), [stdin, stdout, report])
    ...
    nursery.close()

The process exists while workers are wanted, and ten minutes more. That it is gone is noticed when the next one is
wanted: then there is a new one.

Who copies files seldom copies once, and waits for it: after a copy a worker waits in reserve, with memory of its own,
and begins as soon as it hears of its work.
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from husk import errors
from husk.aio.tasks import Tasks
from husk.errors import SystemFault
from husk.kernel.process import Child, reap_later, send_signal, spawn
from husk.storage.workers.jobs import WorkerJob
from husk.storage.workers.messages import LARGEST_JOB, encode

# What the process is asked for (`forker`, which is not loaded here).
FORK, LOAD = b"fork", b"load "
_PATIENCE = 60.0
# A worker may be killed before it hears of its work; not one after the other.
_TRIES = 3
_CLOSED = "no more workers are started"
# A worker has ended, but whoever it worked for may still be busy.
_RESERVE_AFTER = 0.02
_RESERVE_FOR = 30.0


class _Idle:
    """A worker that waits for its work on its line."""

    def __init__(self, child: Child, line: socket.socket) -> None:
        self._child = child
        self._line = line

    def employ(self, work: bytes, descriptors: Sequence[int]) -> Child | None:
        """Let it begin; None when it has died."""
        try:
            socket.send_fds(self._line, [work], list(descriptors))
        except BaseException as error:
            self.dismiss()
            if isinstance(error, ConnectionError):
                return None
            raise
        self._line.close()
        return self._child

    def dismiss(self) -> None:
        self._line.close()
        send_signal(self._child.pidfd, signal.SIGKILL)
        reap_later(self._child)


class Nursery:
    """Starts workers, each in a process of its own."""

    def __init__(self) -> None:
        self._channel: socket.socket | None = None
        self._turn = asyncio.Lock()
        self._tasks = Tasks()
        self._reserve: _Idle | None = None
        self._timer: asyncio.TimerHandle | None = None
        # Descriptors of our own of workers that are not to end without another one in reserve.
        self._watched: set[int] = set()
        self._closed = False
        # Modules that workers are to find loaded, and whether the process has been told.
        self._modules: dict[str, bool] = {}
        # How many workers there have been.
        self.employed = 0
        self._forker = 0

    async def spawn(self, job: WorkerJob, descriptors: Sequence[int], *, reserve: bool = False) -> Child:
        """Let a worker do a job with `descriptors`: standard input, standard output, and a pipe for its answers.

        A fourth one is a file with the beginning of the input. `reserve` has another worker wait for the next work
        afterwards. Whoever is cancelled here has no worker: one is forked perhaps, but it has no work.
        """

        work = encode(job)
        if len(work) > LARGEST_JOB:
            raise SystemFault(f"a worker cannot be told {len(work)} bytes")
        idle, self._reserve = self._reserve, None
        child = idle.employ(work, descriptors) if idle is not None else None
        for _ in range(_TRIES):
            child = child or (await self._fresh()).employ(work, descriptors)
        if child is None:
            raise SystemFault("workers die before they have work: see the daemon's log")
        self.employed += 1
        if reserve or idle is not None:
            self._fill_reserve_after(child)
        return child

    def processes(self) -> int:
        """Count the workers that there are now, with the one in reserve."""
        forker = self._forker if self._channel is not None else 0
        try:
            return len(Path(f"/proc/{forker}/task/{forker}/children").read_text().split())
        except OSError:
            return 0

    def wake(self) -> None:
        """Workers will be wanted soon: let the process start meanwhile. Should that fail, who wants one hears of it."""
        if self._channel is None and not self._closed:
            with contextlib.suppress(OSError):
                self._begin()

    def load(self, module: str, *, soon: bool = True) -> None:
        """Let all workers from now on begin with a module loaded: of a room above storage, for jobs of its own.

        Unless they are wanted `soon`, the process that forks them is not started for it.
        """
        self._modules.setdefault(module, False)
        if soon:
            self.wake()
        if self._channel is not None:
            # Should that fail, a worker loads it itself.
            with contextlib.suppress(OSError):
                self._tell_modules(self._channel)

    def close(self) -> None:
        """Let the process go for good; its workers stay. May be called at any time, any number of times."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for watched in list(self._watched):
            self._forget(watched)
        self._dismiss_reserve()
        self._hang_up()

    async def _fresh(self) -> _Idle:
        """A new worker; if the caller goes while it is forked, it stays in reserve."""
        forking = self._tasks.spawn(self._fork(), "fork a worker", awaited=True)
        try:
            return await asyncio.shield(forking)
        except asyncio.CancelledError:
            forking.add_done_callback(self._keep)
            raise

    def _keep(self, forking: asyncio.Task[_Idle]) -> None:
        if forking.cancelled() or forking.exception() is not None:
            return
        self._dismiss_reserve()
        self._reserve = forking.result()
        if self._closed:
            self._dismiss_reserve()
        else:
            self._at(_RESERVE_FOR, self._dismiss_reserve)

    def _fill_reserve_after(self, child: Child) -> None:
        """Not before it has ended: a fork, and its memory, would take from it."""
        try:
            watched = os.dup(child.pidfd)
        except OSError:
            return  # too many are open: there are more urgent needs than a reserve
        self._watched.add(watched)
        asyncio.get_running_loop().add_reader(watched, self._ended, watched)

    def _ended(self, watched: int) -> None:
        self._forget(watched)
        self._at(_RESERVE_AFTER, self._fill_reserve)

    def _forget(self, watched: int) -> None:
        self._watched.discard(watched)
        asyncio.get_running_loop().remove_reader(watched)
        os.close(watched)

    def _fill_reserve(self) -> None:
        if self._reserve is not None:
            self._at(_RESERVE_FOR, self._dismiss_reserve)
        elif self._channel is not None:
            # If it fails, whoever wants a worker next hears of it.
            self._tasks.spawn(self._fork(), "fork a worker", awaited=True).add_done_callback(self._keep)

    def _dismiss_reserve(self) -> None:
        if self._reserve is not None:
            self._reserve.dismiss()
            self._reserve = None

    def _at(self, seconds: float, call: Callable[[], None]) -> None:
        """Call this next, instead of what was to be called."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, call)

    async def _fork(self) -> _Idle:
        async with self._turn:
            if self._closed:
                raise SystemFault(_CLOSED)
            fresh = self._channel is None
            try:
                return await self._ask()
            except (ConnectionError, EOFError):
                # It left just now, for nobody had wanted a worker for a while.
                self._hang_up()
                if fresh or self._closed:
                    raise SystemFault("the process that starts workers died: see the daemon's log") from None
            try:
                return await self._ask()
            except (ConnectionError, EOFError):
                self._hang_up()
                raise SystemFault("the process that starts workers died: see the daemon's log") from None

    async def _ask(self) -> _Idle:
        channel = self._channel or self._begin()
        try:
            self._tell_modules(channel)
            channel.send(FORK)
            async with asyncio.timeout(_PATIENCE):
                await _readable(channel.fileno())
            if self._closed:
                raise SystemFault(_CLOSED)
            answer, received, _, _ = socket.recv_fds(channel, 4096, 2)
        except TimeoutError:
            self._hang_up()
            raise SystemFault(f"no worker within {_PATIENCE:g} seconds") from None
        except asyncio.CancelledError:
            # The answer to come must not be taken for that to the next request.
            self._hang_up()
            raise
        if not answer:
            raise EOFError
        if answer != b"ok":
            raise SystemFault(answer.decode(errors="replace"))
        return _Idle(Child(_pid(received[0]), received[0]), socket.socket(fileno=received[1]))

    def _begin(self) -> socket.socket:
        self._channel, self._forker = _start()
        self._modules = dict.fromkeys(self._modules, False)
        return self._channel

    def _tell_modules(self, channel: socket.socket) -> None:
        for module, is_told in self._modules.items():
            if not is_told:
                channel.send(LOAD + module.encode())
                self._modules[module] = True

    def _hang_up(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None


def _start() -> tuple[socket.socket, int]:
    """A line to a new process that forks, and its pid."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        ours.setblocking(False)
        try:
            forker = spawn(_command(), stdin=theirs.fileno(), stderr=2)
            reap_later(forker)
        except BaseException:
            ours.close()
            raise
    return ours, forker.pid


def _command() -> list[str]:
    """Isolated from the environment and without the `site` module, which takes as long as our own imports."""
    paths = [str(Path(errors.__file__).parent.parent), *(path for path in sys.path if os.path.isabs(path))]
    begin = "from husk.storage.workers.forker import main; main()"
    # Where it is installed, msgspec takes it instead of `typing`, which says the same: 1 MiB with all that it needs.
    without = "sys.modules['typing_extensions'] = None"
    code = f"import sys; sys.path[:] = {list(dict.fromkeys(paths))!r}; {without}; {begin}"
    return [sys.executable, "-I", "-S", "-c", code]


def _pid(pidfd: int) -> int:
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text().splitlines():
        if line.startswith("Pid:"):
            return int(line.split()[1])
    return -1


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    waiting = asyncio.Event()
    # A number of our own: close() may give this one away while the loop still watches it.
    watched = os.dup(descriptor)
    loop.add_reader(watched, waiting.set)
    try:
        await waiting.wait()
    finally:
        loop.remove_reader(watched)
        os.close(watched)
