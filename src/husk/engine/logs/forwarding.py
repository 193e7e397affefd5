"""Forwarding of a container's log to a receiver elsewhere: read from the same files as `docker logs`, sent, remembered.

How far it has come is in the container's directory (`forwarded`: number of the file, offset). It is written after the
sending, at most twice a second: after a crash some lines are sent again, none is left out. While a receiver is away the
files hold what it has not got, as much as the log's size allows; the container never waits for it.

What reads and sends is loaded with the first log that is sent: most daemons never have one.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from husk.aio.tasks import Tasks
from husk.engine.logs import drivers
from husk.engine.logs.container import LoggedContainer
from husk.engine.logs.messages import JOURNAL, Assembler, LogMessage, LogReceiver
from husk.engine.logs.read import resume_log
from husk.engine.model.container import Companion, Container
from husk.errors import InvalidParameter, SystemFault, Unavailable
from husk.runtime.logs.files import LogFiles, OpenFile, note, noted
from husk.runtime.logs.transport import ReceiverAddress, ReceiverConnection, Touch, connect

log = logging.getLogger(__name__)

_REMEMBER_EVERY = 0.5
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0


class Ways(NamedTuple):
    """The ways to receivers: which one a container's log goes to, how it is reached, and how long to wait until it is
    tried again, at first and at most."""

    receiver: Callable[[Container], LogReceiver | None] = drivers.receiver
    connect: Callable[[ReceiverAddress, Touch], Awaitable[ReceiverConnection]] = connect
    pauses: tuple[float, float] = (_FIRST_PAUSE, _LONGEST_PAUSE)


class Forwarder(Companion[LoggedContainer]):
    def __init__(
        self,
        path: Callable[[str], Path],
        exists: Callable[[str], bool],
        tasks: Tasks,
        touch: Touch,
        ways: Ways | None = None,
    ) -> None:
        """`path` is that of the log of a container, `exists` tells whether there still is a container of that id, and
        `touch` asks for paths of the host that options name."""
        self._ways = ways or Ways()
        self._path = path
        self._touch = touch
        self._exists = exists
        self._tasks = tasks
        self._working: dict[str, asyncio.Task[None]] = {}

    async def starting(self, container: LoggedContainer, /) -> None:
        """A container whose receiver is not there does not start, as with dockerd."""
        receiver = self._ways.receiver(container.record)
        if receiver is None or not receiver.waits:
            return

        try:
            await (await self._ways.connect(receiver.address, self._touch)).close()
        except (OSError, TimeoutError) as error:
            raise SystemFault(f"failed to initialize logging driver: {_reason(receiver, error)}") from error

    def running(self, container: LoggedContainer, /) -> None:
        self._begin(container)

    def ended(self, container: LoggedContainer, /) -> None:
        self._begin(container)  # what it wrote while no daemon ran

    def resume(self, containers: Iterable[LoggedContainer]) -> None:
        """Send what ended containers still have; called once, when a daemon starts."""
        for container in containers:
            if not container.record.state.running:
                self._begin(container)

    def _begin(self, container: LoggedContainer, /) -> None:
        if container.id in self._working or (receiver := self._receiver(container)) is None:
            return
        # Now: an ended container may be gone when the task has its first turn.
        files = LogFiles(self._path(container.id))
        opened = files.open_all()
        if not opened:
            return
        work = self._work(container, files, opened, receiver)
        self._working[container.id] = self._tasks.spawn(work, f"forward {container.id[:12]}")

    def _receiver(self, container: LoggedContainer) -> LogReceiver | None:
        """None also for options that were taken once and make no sense any more: a container runs on without it."""
        try:
            return self._ways.receiver(container.record)
        except InvalidParameter as error:
            log.error("the log of container %s is not sent: %s", container.id[:12], error.message)
            return None

    async def _work(
        self, container: LoggedContainer, files: LogFiles, opened: list[OpenFile], receiver: LogReceiver
    ) -> None:
        place = _Position(self._path(container.id).with_name("forwarded"))
        line = _Line(receiver, container.id, self._exists, self._touch, self._ways)
        try:
            while True:
                await self._send_all(container, files, opened, place, line)
                if container.record.state.status not in ("running", "paused"):
                    return
                opened = files.open_all()  # started again while the last lines were under way
        except _Gone:
            log.warning("container %s is gone, and so are lines its receiver never got", container.id[:12])
        finally:
            # Also when the daemon ends: the next one need not send anything again.
            place.write()
            self._working.pop(container.id, None)
            await line.close()

    async def _send_all(
        self, container: LoggedContainer, files: LogFiles, opened: list[OpenFile], place: "_Position", line: "_Line"
    ) -> None:
        assembler = Assembler()

        def ended() -> bool:
            return container.record.state.status not in ("running", "paused")

        parts = resume_log(files, opened, *place.known, ended, container.next_exit())
        async with contextlib.aclosing(parts):
            async for part in parts:
                if messages := assembler.add(part.made):
                    await line.send(messages)
                if not assembler.pending:
                    place.reached(part.number, part.end)
            if messages := assembler.flush():
                await line.send(messages)


class _Gone(Exception):
    """The container has been removed."""


class _Line:
    """The connection to a receiver, made anew as often as it breaks."""

    def __init__(
        self, receiver: LogReceiver, container_id: str, exists: Callable[[str], bool], touch: Touch, ways: Ways
    ) -> None:
        self._ways = ways
        self._receiver = receiver
        self._touch = touch
        self._container_id = container_id
        self._exists = exists
        self._connection: ReceiverConnection | None = None

    async def send(self, messages: list[LogMessage]) -> None:
        first, longest = self._ways.pauses
        pause, told = first, False
        packets = self._receiver.encode(messages)
        while packets:
            try:
                if self._connection is None:
                    self._connection = await self._ways.connect(self._receiver.address, self._touch)
                await self._connection.send(packets[0])
                if self._receiver.acknowledges is not None:
                    await self._connection.expect(self._receiver.acknowledges(packets[0]))
                del packets[0]
                pause = first
            except (OSError, TimeoutError, Unavailable) as error:
                await self.close()
                if not self._exists(self._container_id):
                    raise _Gone from error
                if not told:
                    reason = _reason(self._receiver, error)
                    log.warning("the log of container %s waits: %s", self._container_id[:12], reason)
                    told = True
                await asyncio.sleep(pause)
                pause = min(pause * 2, longest)

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


class _Position:
    """The place up to which a log has been sent."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.known = (0, 0)
        self._written, self._moment = self.known, 0.0
        with contextlib.suppress(OSError, ValueError):
            number, offset = noted(path).split()
            self.known = self._written = (int(number), int(offset))

    def reached(self, number: int, offset: int) -> None:
        self.known = (number, offset)
        if time.monotonic() - self._moment > _REMEMBER_EVERY:
            self.write()

    def write(self) -> None:
        if self.known == self._written:
            return
        self._moment = time.monotonic()
        try:
            note(self._path, "{} {}\n".format(*self.known))
        except FileNotFoundError:
            pass  # the container is gone
        except OSError as error:
            # After a crash some lines are sent again, that is all.
            log.warning("how far a log has been sent cannot be noted: %s", error)
            return
        self._written = self.known


def _reason(receiver: LogReceiver, error: BaseException) -> str:
    address = receiver.address
    if address.host == JOURNAL:
        return "journald is not enabled on this host"
    text = getattr(error, "strerror", None) or str(error) or "it did not answer in time"
    return f"dial {address.protocol} {address}: connect: {text.lower()}"
