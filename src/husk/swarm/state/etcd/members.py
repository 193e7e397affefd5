"""The members of an etcd: looked at, added, removed. A new one learns first, and votes when it knows all.

members = Members.open(endpoints, certificates)
others = await members.add(peer)          # then start the new member with these
await members.promote(peer)
await members.close()

Room in an etcd that has taken all that it may and refuses every change: it forgets what was before, each member
makes its file as small as what is left, and then the alarm is ended.

Watches that were behind start over. Where what is there now is too much, etcd refuses again.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Sequence
from typing import NamedTuple, Self

from husk.errors import Unavailable
from husk.rpc.grpc.status import FAILED_PRECONDITION, NOT_FOUND, OUT_OF_RANGE, GrpcError
from husk.swarm.state.etcd.certificates import CertificateFiles, tls_context
from husk.swarm.state.etcd.channel import CONNECT, EtcdChannel, refusal
from husk.swarm.state.etcd.messages import (
    ALARM,
    COMPACT,
    DEFRAGMENT,
    END,
    MEMBER_ADD,
    MEMBER_LIST,
    MEMBER_PROMOTE,
    MEMBER_REMOVE,
    NO_SPACE,
    STATUS,
    AlarmRequest,
    AlarmResponse,
    CompactionRequest,
    MemberAddRequest,
    MemberListRequest,
    MemberListResponse,
    MemberMessage,
    MemberRequest,
    StatusRequest,
    StatusResponse,
)
from husk.swarm.state.transactions import StoreUnavailable
from husk.swarm.transport.wire import connect
from husk.text.endpoints import HostPort, read_endpoint

PEER_PORT = 2380
# In seconds: how long a new member may take to learn, or to wait for another that learns; between two tries.
PATIENCE, PAUSE = 15.0, 0.2
_NOT_YET = ("in sync with leader", "too many learner members", "unhealthy cluster")
# How long a member may take to write its file anew, in seconds.
WRITING = 120.0


class KnownMember(NamedTuple):
    """`name` is empty for one that was added and never started."""

    id: int
    name: str
    peer: HostPort
    learns: bool


class Members:
    def __init__(self, channel: EtcdChannel, patience: float = PATIENCE, pause: float = PAUSE) -> None:
        self._patience, self._pause = patience, pause
        self._channel = channel

    @classmethod
    def open(cls, endpoints: Sequence[HostPort], certificates: CertificateFiles | None) -> Self:
        """Nobody is asked yet. InvalidParameter for certificates that cannot be used. Blocks."""
        return cls(EtcdChannel(endpoints, _context(certificates)))

    async def close(self) -> None:
        await self._channel.close()

    async def listing(self) -> list[KnownMember]:
        try:
            message, _ = await self._channel.unary(MEMBER_LIST, MemberListRequest().encode())
        except GrpcError as error:
            raise refusal(error) from None
        return [_known(member) for member in MemberListResponse.decode(message).members]

    async def add(self, peer: HostPort, scheme: str = "https") -> dict[str, HostPort]:
        """Let a new one be started at this place; the others, by name. Nothing is done where it was added before."""
        if all(member.peer != peer for member in await self.listing()):
            request = MemberAddRequest(peer_urls=[f"{scheme}://{peer}"], is_learner=True)
            await self._patiently(MEMBER_ADD, request.encode(), done="already exists")
        return {member.name: member.peer for member in await self.listing() if member.peer != peer and member.name}

    async def promote(self, peer: HostPort) -> None:
        """Let one that has learned vote."""
        found = next((member for member in await self.listing() if member.peer == peer), None)
        if found is None:
            raise Unavailable("this host's member of etcd was removed before it could take part: join again")
        if found.learns:
            await self._patiently(
                MEMBER_PROMOTE, MemberRequest(id=found.id).encode(), done="can only promote a learner"
            )

    async def remove(self, member: KnownMember) -> None:
        """Safe to call twice."""
        try:
            await self._channel.unary(MEMBER_REMOVE, MemberRequest(id=member.id).encode())
        except GrpcError as error:
            if error.code != NOT_FOUND:
                raise refusal(error) from None

    async def _patiently(self, path: str, message: bytes, done: str) -> None:
        """Until etcd takes it; what says `done` was done before."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience
        while True:
            try:
                await self._channel.unary(path, message)
                return
            except GrpcError as error:
                told = error.message
                if error.code != FAILED_PRECONDITION:
                    raise refusal(error) from None
                if not any(word in told for word in _NOT_YET):
                    if done in told:
                        return
                    raise refusal(error) from None
            if loop.time() >= deadline:
                raise Unavailable(f"etcd takes no new member now: {told.removeprefix('etcdserver: ')}")
            await asyncio.sleep(self._pause)


async def answers(endpoint: HostPort, certificates: CertificateFiles | None, within: float) -> bool:
    """Return True if the member there answers, and knows a leader, within so many seconds."""
    channel = EtcdChannel([endpoint], await asyncio.to_thread(_context, certificates), within)
    try:
        message, _ = await channel.unary(STATUS, StatusRequest().encode())
        return StatusResponse.decode(message).leader != 0
    except (GrpcError, StoreUnavailable):
        return False
    finally:
        await channel.close()


def _context(certificates: CertificateFiles | None) -> ssl.SSLContext | None:
    return tls_context(certificates) if certificates is not None else None


def _known(member: MemberMessage) -> KnownMember:
    url = member.peer_urls[0] if member.peer_urls else ""
    return KnownMember(member.id, member.name, read_endpoint(url.partition("://")[2], PEER_PORT), member.is_learner)


async def relieve(endpoints: Sequence[HostPort], tls: ssl.SSLContext | None) -> bool:
    """Make room if there is an alarm; return True if there was. Members that are away are left for the next time."""
    channel = EtcdChannel(endpoints, tls)
    try:
        told = AlarmResponse.decode((await channel.unary(ALARM, AlarmRequest().encode()))[0])
        full = [alarm for alarm in told.alarms if alarm.alarm == NO_SPACE]
        if not full:
            return False
        await _compact(channel)
        for endpoint in endpoints:
            # Not all at once: none answers meanwhile.
            with contextlib.suppress(OSError, GrpcError):
                await _defragment(endpoint, tls)
        for alarm in full:
            request = AlarmRequest(action=END, member_id=alarm.member_id, alarm=NO_SPACE)
            await channel.unary(ALARM, request.encode())
        return True
    except GrpcError as error:
        raise refusal(error) from None
    finally:
        await channel.close()


async def _compact(channel: EtcdChannel) -> None:
    header = StatusResponse.decode((await channel.unary(STATUS, StatusRequest().encode()))[0]).header
    revision = header.revision if header is not None else 0
    try:
        await channel.unary(COMPACT, CompactionRequest(revision=revision, physical=True).encode())
    except GrpcError as error:
        # Somebody else has done it.
        if error.code != OUT_OF_RANGE:
            raise


async def _defragment(endpoint: HostPort, tls: ssl.SSLContext | None) -> None:
    connection = await connect(endpoint, tls, endpoint.host, CONNECT)
    try:
        await connection.unary(DEFRAGMENT, b"", timeout=WRITING)
    finally:
        await connection.close()
