"""News of etcd's records: first all there is, then what changes, for as long as somebody reads.

A watch that breaks goes on at another member from the revision it had come to. It starts over, with all there is, where
etcd has forgotten what came after that (compaction), or where it has gone back behind it (restored from a backup).
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

from husk.rpc.grpc.connection import GrpcConnection
from husk.rpc.grpc.status import CANCELLED, UNAVAILABLE, GrpcError
from husk.rpc.grpc.stream import ClientStream
from husk.swarm.state.etcd.channel import LATE, SOON, EtcdChannel
from husk.swarm.state.etcd.messages import WATCH, WatchCreateRequest, WatchEvent, WatchRequest, WatchResponse
from husk.swarm.state.etcd.translate import news_of, range_of
from husk.swarm.state.transactions import Listing, News, StoreUnavailable

log = logging.getLogger(__name__)

# A quiet watch asks this often whether the member is still there, in seconds, and waits this long for the answer. etcd
# takes more than one question in 5 seconds for an attack.
ASK, ANSWER = 10.0, 5.0


class StartOver(Exception):
    """The end of a watch: the changes after its revision are not known any more."""


async def watch(
    channel: EtcdChannel, kind: str, after: int, listing: Callable[[str], Awaitable[Listing]]
) -> AsyncIterator[News]:
    """`listing` gives all records of a kind."""
    revision, pause = after, SOON
    while True:
        try:
            if not revision:
                found = await listing(kind)
                revision = found.revision
                yield News(revision, True, found.records)
            async with contextlib.aclosing(_changes(channel, kind, revision)) as changes:
                async for news in changes:
                    pause, revision = SOON, news.revision
                    if news.records or news.gone:
                        yield news
        except StartOver as reason:
            log.info("news of the cluster store start over: %s", reason)
            revision = 0
        except (StoreUnavailable, GrpcError) as error:
            log.debug("a watch of the cluster store broke: %s", error)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LATE)


async def _changes(channel: EtcdChannel, kind: str, after: int) -> AsyncGenerator[News, None]:
    """Yield the changes after a revision, until the call breaks; news of nothing tell how far etcd has come."""
    connection, stream = await channel.stream(WATCH)
    first, behind = range_of(kind)
    request = WatchCreateRequest(
        key=first, range_end=behind, start_revision=after + 1, progress_notify=True, fragment=True
    )
    try:
        async with stream:
            await stream.send(WatchRequest(create_request=request).encode())
            events: list[WatchEvent] = []
            while True:
                answer = WatchResponse.decode(await _next(connection, stream))
                _check(answer, after)
                events += answer.events
                if answer.fragment:
                    continue
                for news in news_of(events):
                    yield news
                if not events and not answer.created and answer.header is not None:
                    yield News(answer.header.revision, False, ())
                events.clear()
    except GrpcError as error:
        await channel.leave(connection, error.message)
        raise


async def _next(connection: GrpcConnection, stream: ClientStream) -> bytes:
    """The next message, for as long as the member answers when it is asked whether it is there."""
    while True:
        try:
            # To be cut off costs `recv` nothing: it takes a message out last.
            async with asyncio.timeout(ASK):
                message = await stream.recv()
        except TimeoutError:
            await _ask(connection)
            continue
        if message is None:
            raise GrpcError(UNAVAILABLE, "etcd ended the watch")
        return message


async def _ask(connection: GrpcConnection) -> None:
    try:
        async with asyncio.timeout(ANSWER):
            await connection.ping()
    except TimeoutError:
        raise GrpcError(UNAVAILABLE, "no answer in time") from None
    except asyncio.CancelledError:
        # So a ping ends with its connection.
        if not connection.closed:
            raise
        raise GrpcError(UNAVAILABLE, "the connection has ended") from None


def _check(answer: WatchResponse, after: int) -> None:
    if answer.compact_revision:
        raise StartOver(f"etcd has forgotten what was before revision {answer.compact_revision}")
    if answer.created and answer.header is not None and answer.header.revision < after:
        raise StartOver(f"etcd was at revision {after} and is at {answer.header.revision} now")
    if answer.canceled:
        if "compacted" in answer.cancel_reason:
            raise StartOver(answer.cancel_reason)
        raise GrpcError(CANCELLED, answer.cancel_reason or "etcd cancelled the watch")
