"""The way of a client's stream to a worker: the daemon passes bytes on, both ways, and reads none of them."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Protocol

from husk.aio.tasks import Tasks
from husk.builder.store.workers.dialogue import Dialogue
from husk.builder.store.workers.jobs import ReceiveJob, SendJob
from husk.errors import InvalidParameter, SystemFault
from husk.storage.workers.answers import Answer, Failed, Invalid, Received, Sent
from husk.storage.workers.handle import WorkerDied
from husk.storage.workers.nursery import Nursery


class SyncChannel(Protocol):
    """Messages both ways, each behind five bytes: a zero, and its length (32 bits, most significant byte first).

    What is received or sent at once begins and ends anywhere in a message.
    """

    async def receive(self) -> bytes:
        """Return the bytes that have come; none at the end. An end that the client calls a failure is an error."""
        ...

    async def send(self, data: bytes, /) -> None: ...

    async def end(self) -> None:
        """Say that nothing more will be sent."""
        ...


_GOODBYE = 5.0

Progress = Callable[[int], None]


async def exchange(
    nursery: Nursery,
    job: ReceiveJob | SendJob,
    channel: SyncChannel,
    progress: Progress | None = None,
    begun: bytes = b"",
    packing: Callable[[Dialogue], None] | None = None,
) -> Received | Sent:
    """Start a worker, and let it and a client speak until both have ended; what the worker has done."""
    return await converse(await Dialogue.start(nursery, job), channel, progress, begun, packing)


async def converse(
    dialogue: Dialogue,
    channel: SyncChannel,
    progress: Progress | None = None,
    begun: bytes = b"",
    packing: Callable[[Dialogue], None] | None = None,
    patience: float = _GOODBYE,
) -> Received | Sent:
    """Let a worker and a client speak until both have ended; what the worker has done. `begun` has come before.

    The worker's opinion of a failure is told before the client's, which mostly follows from it. A worker that goes on
    `packing` what it has received is handed over.
    """
    pumps, reading = Tasks(), Tasks()
    try:
        telling = reading.spawn(dialogue.outcome(), "what a worker that syncs has done", awaited=True)
        passing = _to_worker(channel, dialogue, progress or _nobody, begun, patience)
        there = pumps.spawn(passing, "sync to a worker", awaited=True)
        back = pumps.spawn(_to_client(dialogue, channel), "sync to a client", awaited=True)
        failure: Exception | None = None
        try:
            await _passed([there, back], telling)
        except Exception as error:
            failure = error
            dialogue.end_input()
        finally:
            # One that has failed leaves the other behind.
            await pumps.cancel_all()
        outcome = _judge(await telling, failure)
    except BaseException:
        await reading.cancel_all()
        dialogue.stop()
        raise
    if packing is not None and isinstance(outcome, Received) and outcome.packing:
        packing(dialogue)
    else:
        dialogue.stop()
    return outcome


async def _passed(pumps: Sequence[asyncio.Task[None]], telling: asyncio.Task[Answer | None]) -> None:
    """Until all is passed on, or the worker has died without a word: a client may wait for that one in silence."""
    left: set[asyncio.Task[None]] = set(pumps)
    watched: set[asyncio.Task[Answer | None]] = {telling}
    while left:
        await asyncio.wait([*left, *watched], return_when=asyncio.FIRST_COMPLETED)
        ended = {pump for pump in left if pump.done()}
        if failures := [error for pump in ended if (error := pump.exception()) is not None]:
            raise failures[0]
        left -= ended
        if watched and telling.done():
            if telling.exception() is not None or telling.result() is None:
                return
            watched = set()


def _judge(outcome: Answer | None, failure: Exception | None) -> Received | Sent:
    # A stream that the client broke off is told by the worker as an early end, which says less.
    if failure is not None and (isinstance(outcome, Received | Sent) or outcome == Invalid("unexpected EOF")):
        raise failure
    match outcome:
        case Received() | Sent():
            return outcome
        case Invalid(message):
            raise InvalidParameter(message)
        case Failed(message):
            raise SystemFault(message)
        case _:
            raise SystemFault("the worker that syncs files died: see the daemon's log")


async def _to_worker(
    channel: SyncChannel, dialogue: Dialogue, progress: Progress, begun: bytes, patience: float
) -> None:
    total = len(begun)
    try:
        if begun:
            await dialogue.write(begun)
        while data := await channel.receive():
            total += len(data)
            progress(total)
            await dialogue.write(data)
    except WorkerDied:
        # It has ended, or given up; its outcome says which.
        await wait_for_goodbye(channel, patience)
    dialogue.end_input()


async def wait_for_goodbye(channel: SyncChannel, patience: float = _GOODBYE) -> None:
    """The client may still say what it has to, but not for long."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(patience):
            while await channel.receive():
                pass


async def _to_client(dialogue: Dialogue, channel: SyncChannel) -> None:
    while data := await dialogue.read():
        await channel.send(data)
    await channel.end()


def _nobody(total: int) -> None:
    pass
