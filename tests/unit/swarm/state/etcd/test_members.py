"""Meanings of etcd's answers; real members are in tests/integration/services/test_managers.py."""

from collections.abc import Callable
from typing import cast

import pytest

from husk.errors import HuskError, Unavailable
from husk.rpc.grpc.status import FAILED_PRECONDITION, NOT_FOUND, GrpcError
from husk.swarm.state.etcd.channel import EtcdChannel
from husk.swarm.state.etcd.members import KnownMember, Members
from husk.swarm.state.etcd.messages import (
    MEMBER_ADD,
    MEMBER_LIST,
    MEMBER_PROMOTE,
    MEMBER_REMOVE,
    MemberAddRequest,
    MemberListResponse,
    MemberMessage,
    MemberRequest,
)
from husk.text.endpoints import HostPort

FIRST = MemberMessage(id=1, name="one", peer_urls=["https://192.0.2.1:2380"])
NEW = HostPort("192.0.2.2", 2380)


class FakeEtcd:
    def __init__(self) -> None:
        self.members = [FIRST]
        self.errors: list[GrpcError] = []
        self.asked: list[str] = []
        self.answers: dict[str, Callable[[bytes], None]] = {
            MEMBER_ADD: self._add, MEMBER_PROMOTE: self._promote, MEMBER_REMOVE: self._remove,
        }  # fmt: skip

    async def unary(self, path: str, message: bytes) -> tuple[bytes, bool]:
        self.asked.append(path.rpartition("/")[2])
        if path == MEMBER_LIST:
            return MemberListResponse(members=self.members).encode(), False
        if self.errors:
            raise self.errors.pop(0)
        self.answers[path](message)
        return b"", False

    def _add(self, message: bytes) -> None:
        asked = MemberAddRequest.decode(message)
        assert asked.is_learner
        self.members.append(MemberMessage(id=2, peer_urls=asked.peer_urls, is_learner=True))

    def _promote(self, message: bytes) -> None:
        assert MemberRequest.decode(message).id == 2
        self.members[1] = MemberMessage(id=2, name="two", peer_urls=self.members[1].peer_urls)

    def _remove(self, message: bytes) -> None:
        self.members = [member for member in self.members if member.id != MemberRequest.decode(message).id]


@pytest.fixture
def etcd() -> FakeEtcd:
    return FakeEtcd()


def refused(told: str) -> GrpcError:
    return GrpcError(FAILED_PRECONDITION, f"etcdserver: {told}")


async def test_a_member_learns_and_votes_then(etcd: FakeEtcd) -> None:
    there = Members(cast(EtcdChannel, etcd), pause=0.0)
    etcd.errors = [refused("too many learner members in cluster")]
    assert await there.add(NEW) == {"one": HostPort("192.0.2.1", 2380)}
    assert await there.listing() == [
        KnownMember(1, "one", HostPort("192.0.2.1", 2380), False), KnownMember(2, "", NEW, True)
    ]  # fmt: skip
    assert await there.add(NEW) == {"one": HostPort("192.0.2.1", 2380)} and etcd.asked.count("MemberAdd") == 2
    etcd.errors = [refused("can only promote a learner member which is in sync with leader")]
    await there.promote(NEW)
    await there.promote(NEW)
    assert etcd.asked.count("MemberPromote") == 2
    for _ in range(2):
        await there.remove(KnownMember(2, "two", NEW, False))
    assert len(etcd.members) == 1


async def test_what_etcd_refuses(etcd: FakeEtcd) -> None:
    there = Members(cast(EtcdChannel, etcd), pause=0.0)
    with pytest.raises(Unavailable, match="removed before it could take part"):
        await there.promote(NEW)
    etcd.errors = [refused("Peer URLs already exists")]
    await there.add(NEW)
    etcd.errors = [refused("something else")]
    with pytest.raises(HuskError, match="something else"):
        await there.add(NEW)
    there = Members(cast(EtcdChannel, etcd), patience=0.0)
    etcd.errors = [refused("too many learner members in cluster")]
    with pytest.raises(Unavailable, match="takes no new member now: too many learner"):
        await there.add(NEW)
    etcd.errors = [GrpcError(NOT_FOUND, "etcdserver: member not found"), refused("unhealthy")]
    await there.remove(KnownMember(9, "", NEW, False))
    with pytest.raises(HuskError):
        await there.remove(KnownMember(9, "", NEW, False))
