"""The cluster store of several hosts: records in etcd.

    store = EtcdStore.open("etcd://10.0.0.1,10.0.0.2,10.0.0.3", Certificates(ca, cert, key))
    …
    await store.close()

What is said to have been written is on the disks of most members. A transaction whose answer was lost is tried again;
where it had been done the first time, that is seen by what is there.

A lease of etcd, kept alive: what is written under it goes when nobody hears of us any more.

We take it for lost when its time has passed since we asked for the last renewal that was granted, by our own clock: not
later than etcd, whatever is between us.

News of etcd's records: first all there is, then what changes, for as long as somebody reads.

A watch that breaks goes on at another member from the revision it had come to. It starts over, with all there is, where
etcd has forgotten what came after that (compaction), or where it has gone back behind it (restored from a backup).
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Sequence
from typing import Self

from husk.aio.tasks import Tasks
from husk.config.etcd_address import read_address
from husk.errors import InvalidParameter
from husk.rpc.grpc.connection import GrpcConnection
from husk.rpc.grpc.status import CANCELLED, OUT_OF_RANGE, RESOURCE_EXHAUSTED, UNAVAILABLE, GrpcError
from husk.rpc.grpc.stream import ClientStream
from husk.swarm.state.etcd.certificates import CertificateFiles, tls_context
from husk.swarm.state.etcd.channel import LATE, PATIENCE, SOON, EtcdChannel, StoreFull, refusal
from husk.swarm.state.etcd.messages import (
    GRANT,
    KEEP_ALIVE,
    RANGE,
    REVOKE,
    STATUS,
    TXN,
    WATCH,
    KeyValue,
    LeaseGrantRequest,
    LeaseGrantResponse,
    LeaseKeepAliveResponse,
    LeaseRequest,
    RangeRequest,
    RangeResponse,
    StatusRequest,
    StatusResponse,
    TxnResponse,
    WatchCreateRequest,
    WatchEvent,
    WatchRequest,
    WatchResponse,
)
from husk.swarm.state.etcd.translate import (
    done_before,
    found_instead,
    key_of,
    news_of,
    range_of,
    record_of,
    stale_names,
    transaction,
)
from husk.swarm.state.transactions import (
    ClusterRecord,
    Listing,
    News,
    Stale,
    Step,
    StoreUnavailable,
    check_name,
    check_steps,
)
from husk.text.endpoints import HostPort

# A quiet watch asks this often whether the member is still there, in seconds, and waits this long for the answer. etcd
# takes more than one question in 5 seconds for an attack.
_WATCH_ASK, _WATCH_ANSWER = 10.0, 5.0
# Records that are asked for at once; fewer where they are too large for one message.
PAGE = 512
log = logging.getLogger(__name__)

# How often within its time a lease is renewed. In seconds: the shortest pause before that, where the last renewal came
# late, and how long its end may take.
_TIMES = 3
_SOONEST = 0.1
_FAREWELL = 2.0


class EtcdLease:
    def __init__(
        self, channel: EtcdChannel, id: int, seconds: float, asked: float, ended: Callable[["EtcdLease"], None]
    ) -> None:
        self.id = id
        self._channel = channel
        self._seconds = seconds
        self._until = asked + seconds
        self._ended = ended
        # Kept: whether the lease is lost may be asked in any thread.
        self._loop = asyncio.get_running_loop()
        self._lost = asyncio.Event()
        self._tasks = Tasks()
        self._keeping = self._tasks.spawn(self._keep(), f"lease {id:x}")
        self._watching = self._tasks.spawn(self._watch_clock(), f"end of lease {id:x}")

    @property
    def lost(self) -> bool:
        # The loop may have been stopped for longer than the lease had.
        return self._lost.is_set() or self._loop.time() >= self._until

    async def wait_lost(self) -> None:
        await self._lost.wait()

    def abandon(self) -> None:
        self._keeping.cancel()
        self._watching.cancel()
        self._loop.call_at(self._until, self._lost.set)
        # Nor does the store end it when it is closed.
        self._ended(self)

    async def close(self) -> None:
        await self._tasks.cancel_all()
        if not self._lost.is_set():
            self._lose()
            # Where it cannot be said, its time runs out.
            with contextlib.suppress(StoreUnavailable, GrpcError):
                await self._channel.unary(REVOKE, LeaseRequest(id=self.id).encode(), _FAREWELL)

    async def _keep(self) -> None:
        while not self._lost.is_set():
            await asyncio.sleep(pause(self._seconds, self._until - self._loop.time()))
            asked = self._loop.time()
            try:
                answer, _ = await self._channel.unary(KEEP_ALIVE, LeaseRequest(id=self.id).encode(), self._seconds)
            except (StoreUnavailable, GrpcError) as error:
                log.warning("a lease could not be renewed: %s", error)
                continue
            if LeaseKeepAliveResponse.decode(answer).ttl <= 0:
                self._lose()
                return
            self._until = asked + self._seconds

    async def _watch_clock(self) -> None:
        while not self.lost:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(self._until):
                    await self._lost.wait()
        self._lose()

    def _lose(self) -> None:
        if not self._lost.is_set():
            self._lost.set()
            self._ended(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class EtcdStore:
    def __init__(self, channel: EtcdChannel) -> None:
        self._channel = channel
        self._leases: set[EtcdLease] = set()
        # Called when etcd refuses a change because it is full.
        self.full: Callable[[], None] = lambda: None

    @classmethod
    def open(cls, address: str, certificates: CertificateFiles | None = None, patience: float = PATIENCE) -> Self:
        """Nobody is asked yet. InvalidParameter for an address or certificates that cannot be used. Blocks."""
        tls = tls_context(certificates) if certificates is not None else None
        return cls(EtcdChannel(read_address(address), tls, patience))

    @classmethod
    def shut(cls, address: str, reason: str) -> Self:
        """Our certificates cannot be used yet: nobody is asked before `renew`. InvalidParameter for an address."""
        return cls(EtcdChannel(read_address(address), None, shut=reason))

    def know(self, endpoints: Sequence[HostPort]) -> None:
        """Take these as the members that can be asked from now on: at least one."""
        self._channel.know(endpoints)

    async def renew(self, certificates: CertificateFiles) -> None:
        """Show these from the next connection on. InvalidParameter for what cannot be used."""
        self._channel.trust(await asyncio.to_thread(tls_context, certificates))

    async def status(self) -> StatusResponse:
        """Return the status of the member that answers, in its own words."""
        return StatusResponse.decode((await self._ask(STATUS, StatusRequest().encode()))[0])

    async def get(self, kind: str, key: str) -> ClusterRecord | None:
        check_name(kind, key)
        answer = await self._range(RangeRequest(key=key_of(kind, key)))
        return record_of(answer.kvs[0]) if answer.kvs else None

    async def listing(self, kind: str) -> Listing:
        while True:
            try:
                pairs, revision = await self._all(kind)
            except GrpcError as error:
                if error.code != OUT_OF_RANGE:
                    raise refusal(error) from None
                # Compacted between two pages: what is there now will do as well.
                continue
            return Listing(tuple(map(record_of, pairs)), revision)

    async def snapshot(self, kinds: Collection[str]) -> Listing:
        found = await self.listing("")
        return Listing(tuple(record for record in found.records if record.kind in kinds), found.revision)

    async def _all(self, kind: str) -> tuple[list[KeyValue], int]:
        """Page by page, all as they were with the first."""
        first, behind = range_of(kind)
        found: list[KeyValue] = []
        revision, page = 0, PAGE
        while True:
            request = RangeRequest(key=first, range_end=behind, limit=page, revision=revision)
            try:
                answer = RangeResponse.decode((await self._channel.unary(RANGE, request.encode()))[0])
            except GrpcError as error:
                if error.code != RESOURCE_EXHAUSTED or page == 1:
                    raise
                page = max(page // 4, 1)
                continue
            revision = revision or (answer.header.revision if answer.header is not None else 0)
            found += answer.kvs
            if not answer.more or not answer.kvs:
                return found, revision
            first = answer.kvs[-1].key + b"\0"

    async def commit(
        self, *steps: Step, applied: Callable[[int], None] | None = None, happened: bool = False, lazy: bool = False
    ) -> int:
        check_steps(steps)
        message, heard = await self._ask(TXN, transaction(steps).encode())
        answer = TxnResponse.decode(message)
        revision = answer.header.revision if answer.header is not None else 0
        if not answer.succeeded:
            found = found_instead(answer)
            if not heard or not (revision := done_before(steps, found)):
                raise Stale(stale_names(steps, found))
        if applied is not None:
            applied(revision)
        return revision

    def watch(self, kind: str = "", after: int = 0) -> AsyncIterator[News]:
        return watch(self._channel, kind, after, self.listing)

    async def lease(self, seconds: int) -> EtcdLease:
        asked = asyncio.get_running_loop().time()
        message, _ = await self._ask(GRANT, LeaseGrantRequest(ttl=seconds).encode())
        granted = LeaseGrantResponse.decode(message)
        if granted.error:
            raise InvalidParameter(f"etcd gives no lease: {granted.error}")
        lease = EtcdLease(self._channel, granted.id, granted.ttl, asked, self._leases.discard)
        self._leases.add(lease)
        return lease

    async def close(self) -> None:
        for lease in list(self._leases):
            await lease.close()
        await self._channel.close()

    async def _range(self, request: RangeRequest) -> RangeResponse:
        return RangeResponse.decode((await self._ask(RANGE, request.encode()))[0])

    async def _ask(self, path: str, message: bytes) -> tuple[bytes, bool]:
        try:
            return await self._channel.unary(path, message)
        except GrpcError as error:
            told = refusal(error)
            if isinstance(told, StoreFull):
                self.full()
            raise told from None


def pause(seconds: float, left: float) -> float:
    """Return the wait, in seconds, before a lease of so many seconds is renewed. After a late answer little is left."""
    return min(seconds / _TIMES, max(left / 2, _SOONEST))


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
            async with asyncio.timeout(_WATCH_ASK):
                message = await stream.recv()
        except TimeoutError:
            await _ask(connection)
            continue
        if message is None:
            raise GrpcError(UNAVAILABLE, "etcd ended the watch")
        return message


async def _ask(connection: GrpcConnection) -> None:
    try:
        async with asyncio.timeout(_WATCH_ANSWER):
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
