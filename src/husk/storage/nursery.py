"""How does the daemon get a worker within milliseconds? From `forker`, a process that only forks.

    nursery = Nursery()
    child = await nursery.spawn("husk.storage.unpack", [...], [stdin, stdout])
    ...
    nursery.close()

The process exists while workers are wanted, and half a minute more. That it is gone is noticed when the next one is
wanted: then there is a new one.
"""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import husk
from husk.errors import SystemFault
from husk.kernel.process import Child, reap_later, send_signal, spawn
from husk.storage.forker import LARGEST_REQUEST
from husk.tasks import Tasks

_PATIENCE = 60.0


class Nursery:
    """Starts workers: functions `main` of our own modules, each in a process of its own."""

    def __init__(self) -> None:
        self._channel: socket.socket | None = None
        self._turn = asyncio.Lock()
        self._tasks = Tasks()

    async def spawn(self, module: str, arguments: Sequence[str], descriptors: Sequence[int]) -> Child:
        """Run `module`'s main with the first two `descriptors` as its standard input and output.

        A third one stays open in it under a number that is its last argument. Whoever is cancelled here gets away when
        no worker is there: one that is born afterwards would make files where its caller has cleaned up.
        """
        asking = self._tasks.spawn(self._spawn(module, arguments, descriptors), f"start {module}", awaited=True)
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            await asyncio.shield(self._tasks.spawn(_end(asking), f"end {module}"))
            raise

    async def _spawn(self, module: str, arguments: Sequence[str], descriptors: Sequence[int]) -> Child:
        request = json.dumps([module, list(arguments)]).encode()
        if len(request) > LARGEST_REQUEST:
            raise SystemFault(f"a worker cannot have {len(request)} bytes of arguments")
        async with self._turn:
            fresh = self._channel is None
            try:
                return await self._ask(request, descriptors)
            except (ConnectionError, EOFError):
                # It left just now, for nobody had wanted a worker for a while.
                self.close()
                if fresh:
                    raise SystemFault("the process that starts workers died: see the daemon's log") from None
            try:
                return await self._ask(request, descriptors)
            except (ConnectionError, EOFError):
                self.close()
                raise SystemFault("the process that starts workers died: see the daemon's log") from None

    def close(self) -> None:
        """Let the process go; its workers stay. May be called at any time, any number of times."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    async def _ask(self, request: bytes, descriptors: Sequence[int]) -> Child:
        if self._channel is None:
            self._channel = _start()
        channel = self._channel
        try:
            socket.send_fds(channel, [request], list(descriptors))
            async with asyncio.timeout(_PATIENCE):
                await _readable(channel.fileno())
            answer, received, _, _ = socket.recv_fds(channel, 4096, 1)
        except TimeoutError:
            self.close()
            raise SystemFault(f"no worker within {_PATIENCE:g} seconds") from None
        except asyncio.CancelledError:
            # The answer to come must not be taken for that to the next request.
            self.close()
            raise
        if not answer:
            raise EOFError
        if answer != b"ok":
            raise SystemFault(answer.decode(errors="replace"))
        return Child(_pid(received[0]), received[0])


async def _end(asking: asyncio.Task[Child]) -> None:
    """Kill a worker as soon as it is there, and wait until it is gone."""
    await asyncio.wait({asking})
    if asking.cancelled() or asking.exception() is not None:
        return
    child = asking.result()
    send_signal(child.pidfd, signal.SIGKILL)
    await _readable(child.pidfd)
    reap_later(child)


def _start() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        ours.setblocking(False)
        try:
            reap_later(spawn(_command(), stdin=theirs.fileno(), stderr=2))
        except BaseException:
            ours.close()
            raise
    return ours


def _command() -> list[str]:
    """Isolated from the environment and without the `site` module, which takes as long as our own imports."""
    paths = [str(Path(husk.__file__).parent.parent), *(path for path in sys.path if os.path.isabs(path))]
    code = f"import sys; sys.path[:] = {list(dict.fromkeys(paths))!r}; from husk.storage.forker import main; main()"
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
