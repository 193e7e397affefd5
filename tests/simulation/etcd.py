"""An etcd of several members in simulated time, behind the real client (`husk.swarm.state.etcd`).

There is one state, as consensus makes it; a member answers while it reaches most of the others. Answers are lost,
members that lead fall and another is elected, what watches could resume from is forgotten now and then.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, cast

from husk.errors import Unavailable
from husk.rpc.grpc.connection import GrpcConnection
from husk.rpc.grpc.status import DEADLINE_EXCEEDED, INVALID_ARGUMENT, NOT_FOUND, UNAVAILABLE, GrpcError
from husk.swarm.state.etcd.channel import CONNECT, PATIENCE, EtcdChannel
from husk.swarm.state.etcd.messages import (
    DELETED,
    GRANT,
    KEEP_ALIVE,
    PUT,
    RANGE,
    REVOKE,
    TXN,
    Header,
    KeyValue,
    LeaseGrantRequest,
    LeaseGrantResponse,
    LeaseKeepAliveResponse,
    LeaseRequest,
    RangeRequest,
    RangeResponse,
    ResponseOp,
    TxnRequest,
    TxnResponse,
    WatchEvent,
    WatchRequest,
    WatchResponse,
)
from husk.swarm.state.etcd.store import EtcdStore
from husk.text.endpoints import HostPort
from tests.simulation.hosts import Host, Network
from tests.simulation.loop import Process, own_process

# As etcd has them by itself.
MOST_BYTES, MOST_STEPS = 1_572_864, 128
# How long there is no leader when one has fallen, in seconds.
ELECTION = (1.0, 3.0)
# What a watch can resume from, in transactions.
REMEMBERED = 2000


class _Lease:
    def __init__(self, seconds: int, until: float) -> None:
        self.seconds = seconds
        self.until = until
        self.keys: set[bytes] = set()


class Etcd:
    def __init__(self, members: Sequence[Host], network: Network, chance: random.Random) -> None:
        self.members = {host.name: host for host in members}
        # Those of them that take part in decisions: others were removed.
        self.voters = set(self.members)
        self.network = network
        self.chance = chance
        self.revision = 1
        self.records: dict[bytes, KeyValue] = {}
        self._history: deque[tuple[int, list[WatchEvent]]] = deque()
        self._forgotten = 0
        self._leases: dict[int, _Lease] = {}
        self._streams: dict[_WatchStream, None] = {}
        self._leader = members[0].name
        self._elected = 0.0
        # Hear of every change, in the moment in which it counts.
        self.observers: list[Callable[[], None]] = []
        self.last_events: list[WatchEvent] = []

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def majority(self) -> set[str]:
        most = len(self.voters) // 2 + 1
        return next((part for part in self.network.parts(sorted(self.voters)) if len(part) >= most), set())

    def remove(self, member: str) -> None:
        """Let a member take part no longer. Unavailable where most of the others would not be there, as etcd has it."""
        there = self.majority()
        if self.voters == {member}:
            raise Unavailable("etcd: re-configuration failed due to not enough started members")
        if member in there and len(there) - 1 < (len(self.voters) - 1) // 2 + 1:
            raise Unavailable("etcd: re-configuration failed due to unhealthy cluster")
        self.voters.discard(member)

    def serves(self, member: str) -> bool:
        """Tell if this member can do anything now."""
        part = self.majority()
        if part and self._leader not in part:
            self._leader = sorted(part)[0]
            self._elected = self._now + self.chance.uniform(*ELECTION)
            for lease in self._leases.values():
                lease.until = self._elected + lease.seconds
        return member in part and self._now >= self._elected

    async def pass_time(self) -> None:
        """End leases that nobody keeps alive; for as long as the swarm lives."""
        while True:
            await asyncio.sleep(0.25)
            if self.serves(self._leader):
                for id in [id for id, lease in self._leases.items() if lease.until < self._now]:
                    self._end(id)

    def forget(self) -> None:
        """Compaction: nobody can resume from before now."""
        self._history.clear()
        self._forgotten = self.revision

    # --- what members are asked

    def answer(self, path: str, message: bytes) -> bytes:
        if len(message) > MOST_BYTES:
            raise GrpcError(INVALID_ARGUMENT, "etcdserver: request is too large")
        match path:
            case "/etcdserverpb.KV/Range":
                return self._range(RangeRequest.decode(message)).encode()
            case "/etcdserverpb.KV/Txn":
                return self._transaction(TxnRequest.decode(message)).encode()
            case "/etcdserverpb.Lease/LeaseGrant":
                asked = LeaseGrantRequest.decode(message)
                id = self.chance.getrandbits(62) + 1
                self._leases[id] = _Lease(asked.ttl, self._now + asked.ttl)
                return LeaseGrantResponse(id=id, ttl=asked.ttl).encode()
            case "/etcdserverpb.Lease/LeaseRevoke":
                self._end(LeaseRequest.decode(message).id)
                return b""
            case "/etcdserverpb.Lease/LeaseKeepAlive":
                id = LeaseRequest.decode(message).id
                if (lease := self._leases.get(id)) is None:
                    return LeaseKeepAliveResponse(id=id, ttl=0).encode()
                lease.until = self._now + lease.seconds
                return LeaseKeepAliveResponse(id=id, ttl=lease.seconds).encode()
        raise AssertionError(path)

    def _range(self, asked: RangeRequest) -> RangeResponse:
        keys = (
            [asked.key] if not asked.range_end else sorted(k for k in self.records if asked.key <= k < asked.range_end)
        )
        found = [self.records[key] for key in keys if key in self.records]
        return RangeResponse(header=Header(revision=self.revision), kvs=found)

    def _transaction(self, asked: TxnRequest) -> TxnResponse:
        if max(len(asked.compare), len(asked.success), len(asked.failure)) > MOST_STEPS:
            raise GrpcError(INVALID_ARGUMENT, "etcdserver: too many operations in txn request")
        if any((self._version(one.key)) != one.mod_revision for one in asked.compare):
            there = [self._range(op.request_range) for op in asked.failure if op.request_range is not None]
            return TxnResponse(
                header=Header(revision=self.revision), responses=[ResponseOp(response_range=one) for one in there]
            )
        for op in asked.success:
            if op.request_put is not None and op.request_put.lease and op.request_put.lease not in self._leases:
                raise GrpcError(NOT_FOUND, "etcdserver: requested lease not found")
        revision = self.revision + 1
        events = []
        for op in asked.success:
            if (put := op.request_put) is not None:
                self._unlease(put.key)
                pair = KeyValue(key=put.key, mod_revision=revision, value=put.value, lease=put.lease)
                self.records[put.key] = pair
                if put.lease:
                    self._leases[put.lease].keys.add(put.key)
                events.append(WatchEvent(type=PUT, kv=pair))
            elif (gone := op.request_delete_range) is not None and gone.key in self.records:
                events.append(self._deleted(gone.key, revision))
        self._happened(revision, events)
        return TxnResponse(header=Header(revision=self.revision), succeeded=True)

    def _version(self, key: bytes) -> int:
        return self.records[key].mod_revision if key in self.records else 0

    def _deleted(self, key: bytes, revision: int) -> WatchEvent:
        self._unlease(key)
        del self.records[key]
        return WatchEvent(type=DELETED, kv=KeyValue(key=key, mod_revision=revision))

    def _unlease(self, key: bytes) -> None:
        if key in self.records and (lease := self._leases.get(self.records[key].lease)) is not None:
            lease.keys.discard(key)

    def _end(self, id: int) -> None:
        if (lease := self._leases.pop(id, None)) is not None and lease.keys:
            revision = self.revision + 1
            self._happened(revision, [self._deleted(key, revision) for key in sorted(lease.keys)])

    def _happened(self, revision: int, events: list[WatchEvent]) -> None:
        if not events:
            return
        self.revision = revision
        self.last_events = events
        self._history.append((revision, events))
        if len(self._history) > REMEMBERED:
            self._forgotten = self._history.popleft()[0]
        for stream in list(self._streams):
            stream.tell(revision, events)
        for observer in self.observers:
            observer()

    # --- watching

    def begin(self, stream: "_WatchStream", start: int) -> None:
        if start <= self._forgotten:
            stream.push(WatchResponse(header=Header(revision=self.revision), compact_revision=self._forgotten + 1))
            return
        stream.push(WatchResponse(header=Header(revision=self.revision), created=True))
        self._streams[stream] = None
        for revision, events in self._history:
            if revision >= start:
                stream.tell(revision, events)

    def end(self, stream: "_WatchStream") -> None:
        self._streams.pop(stream, None)

    def store(self, host: Host, own: Sequence[Host]) -> EtcdStore:
        """A client on a host; it asks its own member first."""
        names = [host.name] * (host.name in self.members) + [one.name for one in own if one is not host]
        return EtcdStore(_Channel(self, host, [HostPort(name, 2379) for name in names]))


class _Channel(EtcdChannel):
    def __init__(self, etcd: Etcd, host: Host, endpoints: Sequence[HostPort]) -> None:
        super().__init__(endpoints, None, PATIENCE)
        self._etcd = etcd
        self._host = host
        self._process = own_process()

    async def _connect(self, endpoint: HostPort) -> GrpcConnection:
        self._process.check()
        member = self._etcd.members[endpoint.host]
        try:
            async with asyncio.timeout(CONNECT):
                await self._etcd.network.travel(self._host.name, member.name)
        except TimeoutError:
            raise OSError("no answer in time") from None
        return cast(GrpcConnection, _Connection(self._etcd, self._host, member, self._process))


class _Connection:
    """From a client to one member, as `husk.rpc.grpc.connection.GrpcConnection`."""

    def __init__(self, etcd: Etcd, host: Host, member: Host, process: Process) -> None:
        self._etcd = etcd
        self._host = host
        self._member = member
        self._boots = member.boots
        self._process = process
        self._streams: dict[_WatchStream, None] = {}
        self.closed = False

    async def unary(self, path: str, message: bytes, metadata: object, timeout: float) -> bytes:
        self._process.check()
        if path == TXN:
            await self._process.nod()
        etcd, network = self._etcd, self._etcd.network
        try:
            async with asyncio.timeout(timeout):
                await network.travel(self._host.name, self._member.name)
                self._check()
                if path in (TXN, GRANT, REVOKE):
                    await asyncio.sleep(etcd.chance.uniform(0.002, 0.01) * self._member.slow)
                self._check()
                if not etcd.serves(self._member.name):
                    raise GrpcError(UNAVAILABLE, "etcdserver: no leader")
                answer = etcd.answer(path, message)
                if etcd.chance.random() < 0.001 and path not in (RANGE, KEEP_ALIVE):
                    raise GrpcError(UNAVAILABLE, "etcdserver: request timed out")
                await network.travel(self._member.name, self._host.name)
                self._check()
                return answer
        except TimeoutError:
            raise GrpcError(DEADLINE_EXCEEDED, "no answer in time") from None

    async def call(self, path: str, metadata: object) -> "_WatchStream":
        self._process.check()
        self._check()
        stream = _WatchStream(self._etcd, self._host, self._member)
        self._streams[stream] = None
        return stream

    async def ping(self) -> None:
        await self._etcd.network.travel(self._host.name, self._member.name)
        await self._etcd.network.travel(self._member.name, self._host.name)
        self._check()

    async def close(self) -> None:
        self.closed = True
        for stream in self._streams:
            stream.end()

    def _check(self) -> None:
        if self.closed or self._member.boots != self._boots:
            self.closed = True
            for stream in self._streams:
                stream.end()
            raise GrpcError(UNAVAILABLE, "connection reset by peer")


class _WatchStream:
    """One watch: what is told arrives in its order, and later while the way is cut."""

    def __init__(self, etcd: Etcd, host: Host, member: Host) -> None:
        self._etcd = etcd
        self._host = host
        self._member = member
        self._range = b"", b""
        self._coming: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def send(self, message: bytes) -> None:
        asked = WatchRequest.decode(message).create_request
        assert asked is not None
        await self._etcd.network.travel(self._host.name, self._member.name)
        if not self._etcd.serves(self._member.name):
            raise GrpcError(UNAVAILABLE, "etcdserver: no leader")
        self._range = asked.key, asked.range_end
        self._etcd.begin(self, asked.start_revision)

    async def recv(self) -> bytes | None:
        message = await self._coming.get()
        if message is not None:
            # Cut off here, it is told again: nothing is lost.
            try:
                await self._etcd.network.travel(self._member.name, self._host.name)
                while not self._etcd.serves(self._member.name):
                    await asyncio.sleep(0.2)
            except asyncio.CancelledError:
                self._coming._queue.appendleft(message)  # type: ignore[attr-defined]
                raise
        return message

    def tell(self, revision: int, events: list[WatchEvent]) -> None:
        first, behind = self._range
        if mine := [event for event in events if event.kv is not None and first <= event.kv.key < behind]:
            self.push(WatchResponse(header=Header(revision=revision), events=mine))

    def push(self, answer: WatchResponse) -> None:
        self._coming.put_nowait(answer.encode())

    def end(self) -> None:
        self._etcd.end(self)
        self._coming.put_nowait(None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._etcd.end(self)
