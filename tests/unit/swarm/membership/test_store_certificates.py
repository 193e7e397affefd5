"""A former manager has a certificate that is good for nothing, and every manager finds that by itself."""

from pathlib import Path

import msgspec
import pytest

from husk.errors import Unavailable
from husk.storage.secrets.sealing import Sealer
from husk.storage.state.store import StateStore
from husk.swarm.ca import authority, roots
from husk.swarm.ca.roots import MEMBER_LIFE
from husk.swarm.membership.etcd_membership import CERTIFICATE, KEY, REVOKED
from husk.swarm.membership.store_certificates import (
    GRACE,
    KEPT,
    KIND,
    LONGEST,
    ROOT,
    SOON,
    CertificateOwner,
    IssuedCertificate,
    MemberCertificate,
    StoreCertificates,
)
from husk.swarm.model.node import Node, NodeStatus
from husk.swarm.model.settings import NodeSpec
from husk.swarm.model.swarm import SwarmRoot
from husk.swarm.state import member_files
from husk.swarm.state.member_files import install
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.sqlite import SqliteStore
from tests.support.but import but
from tests.support.clock import FakeClock
from tests.support.waiting import until_async

NOW = 1_700_000_000
YEAR = 365 * 86400.0
OWN, COPIED, OTHERS = 11, 22, 33


class Manager:
    def __init__(self, state: StateStore, directory: Path, node: str = "m1", serial: int = OWN) -> None:
        self.store = SwarmRecords(SqliteStore(state))
        self.clock = FakeClock(NOW * 10**9)
        self.hosts = {"192.0.2.1", "192.0.2.2", "192.0.2.3"}
        self.cuts = 0
        root = authority.new_root(NOW)
        key, request = authority.new_request()
        signed = authority.issue_for_host(request, node, f"192.0.2.{node[1:]}", root, YEAR, NOW, serial)
        paths = [directory / name for name in (CERTIFICATE, KEY, REVOKED)]
        member_files.install(dict(zip(paths, (signed, key), strict=False)))
        self.list = paths[2]
        self.it = StoreCertificates(
            self.store,
            *paths,
            own=lambda: self.store.nodes.get(node),
            members=self._members,
            cut_off=self._cut,
            clock=self.clock,
        )
        self.it.prepare()

    async def _members(self) -> set[str]:
        return self.hosts

    async def _cut(self) -> None:
        self.cuts += 1

    @property
    def revoked(self) -> set[int]:
        return set(authority.revoked_in(self.list.read_bytes()))

    async def after_a_while(self) -> set[int]:
        await self.it.look()
        self.clock.pass_by(GRACE)
        await self.it.look()
        return self.revoked

    async def known(self) -> set[int]:
        return {int(record.key, 16) for record in (await self.store.store.listing(KIND)).records}


@pytest.fixture
async def manager(state: StateStore, tmp_path: Path) -> Manager:
    made = Manager(state, tmp_path)
    for number, serial in ((1, OWN), (2, COPIED), (3, OTHERS)):
        address = f"192.0.2.{number}"
        status = NodeStatus(state="ready", addr=address)
        spec = NodeSpec(role="manager")
        await made.store.save(Node(id=f"m{number}", version=0, created_at="", updated_at="", spec=spec, status=status))
        if serial != OWN:
            await made.it.note(serial, IssuedCertificate(f"m{number}", address, NOW + YEAR))
    return made


async def test_those_of_managers_are_good(manager: Manager) -> None:
    assert await manager.after_a_while() == set() and manager.cuts == 0
    assert await manager.known() == {OWN, COPIED, OTHERS}, "of an older release's nothing was written down"


async def test_who_is_no_manager_any_more_has_a_while_to_end_it(manager: Manager) -> None:
    gone = but(manager.store.nodes["m2"], spec=NodeSpec(role="worker"))
    await manager.store.save(gone)
    assert await manager.after_a_while() == set(), "its member is there"
    manager.hosts.discard("192.0.2.2")
    await manager.it.look()
    assert manager.revoked == set() and manager.cuts == 0
    manager.clock.pass_by(GRACE)
    await manager.it.look()
    assert manager.revoked == {COPIED} and manager.cuts == 1
    await manager.it.look()
    assert manager.cuts == 1, "once"


async def test_one_that_was_away_needs_it_to_hear_of_that(manager: Manager) -> None:
    manager.hosts.discard("192.0.2.2")
    away = but(manager.store.nodes["m2"], spec=NodeSpec(role="worker"), status__state="down")
    await manager.store.save(away)
    assert await manager.after_a_while() == set()
    await manager.store.delete(manager.store.nodes["m2"])
    assert await manager.after_a_while() == {COPIED}, "it was removed from the swarm"


async def test_who_is_a_manager_again_has_another_one(manager: Manager) -> None:
    manager.hosts.discard("192.0.2.2")
    await manager.store.save(but(manager.store.nodes["m2"], spec=NodeSpec(role="worker")))
    assert await manager.after_a_while() == {COPIED}
    await manager.store.save(but(manager.store.nodes["m2"], spec=NodeSpec(role="manager")))
    manager.hosts.add("192.0.2.2")
    await manager.it.note(44, IssuedCertificate("m2", "192.0.2.2", NOW + YEAR))
    assert await manager.after_a_while() == {COPIED}, "the new one is good, the copy is not"


async def test_one_that_was_renewed_is_revoked_for_as_long_as_it_is_good(
    manager: Manager, state: StateStore, tmp_path: Path
) -> None:
    """A renewal keeps the number; of who had it, the copy may be of the newest."""
    manager.hosts.discard("192.0.2.1")
    await manager.it.look()
    root, request = authority.new_root(NOW), authority.request_for((tmp_path / KEY).read_bytes())
    renewed = authority.issue_for_host(request, "m1", "192.0.2.1", root, YEAR, NOW + 0.8 * YEAR, OWN)
    member_files.replace(tmp_path / CERTIFICATE, renewed)
    await manager.it.look()
    record = await manager.store.store.get(KIND, f"{OWN:x}")
    assert record is not None
    assert msgspec.json.decode(record.body, type=IssuedCertificate).ends == int(NOW + 0.8 * YEAR) + YEAR
    other = Manager(state, tmp_path / "other", "m3", OTHERS)
    other.hosts.discard("192.0.2.1")
    await other.store.refresh("node", "m3")
    assert await other.after_a_while() == {OWN}, "its node is gone"
    other.clock.pass_by(int(2.5 * YEAR) * 10**9)
    await other.it.look()
    assert other.revoked == {OWN}, "what it said first has ended long ago"


async def test_whoever_does_not_know_who_are_managers_revokes_nothing(manager: Manager) -> None:
    manager.hosts.clear()
    known = dict(manager.store.nodes)
    manager.store.nodes.clear()
    assert await manager.after_a_while() == set()
    manager.store.nodes |= known | {"m1": but(known["m1"], spec=NodeSpec(role="worker"))}
    assert await manager.after_a_while() == set()


async def test_what_has_ended_is_forgotten(manager: Manager) -> None:
    await manager.it.note(55, IssuedCertificate("m9", "192.0.2.9", NOW - KEPT + 30.0))
    assert await manager.after_a_while() == set() and 55 not in await manager.known()
    body = await manager.store.store.get(KIND, f"{COPIED:x}")
    assert body is not None and msgspec.json.decode(body.body, type=IssuedCertificate).node == "m2"


MEMBER_CERTIFICATE_NOW = 1_800_000_000.0


class Member:
    def __init__(self, directory: Path) -> None:
        self.now, self.renewed = MEMBER_CERTIFICATE_NOW, 0
        self.fails: Exception | None = None
        self.sealer = Sealer(directory / "swarm.key")
        self.root: SwarmRoot | None = roots.store_root(self.sealer, MEMBER_CERTIFICATE_NOW)
        self.signer = self.root
        self.directory = directory / "swarm.etcd"
        self.certificate, self.key = self.directory / "member.crt", self.directory / "member.key"
        key, request = authority.new_request()
        signed = roots.member_certificate(self.root, self.sealer, request, "n", "192.0.2.1", MEMBER_CERTIFICATE_NOW, 7)
        install({self.certificate: signed, self.key: key})
        self.it = MemberCertificate(
            self.certificate,
            self.key,
            owner=lambda: CertificateOwner("n", "192.0.2.1"),
            root=lambda: self.root,
            sealer=self.sealer,
            renewed=self._renewed,
            clock=lambda: self.now,
        )

    async def _renewed(self) -> None:
        self.renewed += 1
        if self.fails is not None:
            raise self.fails

    @property
    def ends(self) -> float:
        return authority.look(self.certificate.read_bytes()).ends


@pytest.fixture
def member(tmp_path: Path) -> Member:
    return Member(tmp_path)


async def test_it_is_renewed_between_half_and_four_fifths_of_its_life(member: Member) -> None:
    first, key = member.certificate.read_bytes(), member.key.read_bytes()
    wait = await member.it.look()
    assert MEMBER_LIFE * 0.49 < wait < MEMBER_LIFE * 0.8 and member.certificate.read_bytes() == first
    assert await member.it.look() == wait, "the moment does not wander"
    member.now += wait
    assert await member.it.look() == LONGEST and member.renewed == 1
    fresh = member.certificate.read_bytes()
    assert authority.serial_of(fresh) == 7, "by which it may be revoked"
    assert fresh != first and member.key.read_bytes() == key and authority.fits(fresh, key)
    assert member.signer is not None and authority.signed_by(fresh, [member.signer.certificate.encode()])
    assert member.ends == pytest.approx(member.now + MEMBER_LIFE, abs=2)


async def test_one_that_ended_while_the_host_was_off_is_renewed_without_the_record(member: Member) -> None:
    await member.it.look()
    assert (member.directory / ROOT).stat().st_mode & 0o777 == 0o600
    member.root, member.now = None, MEMBER_CERTIFICATE_NOW + 2 * MEMBER_LIFE
    await member.it.look()
    assert member.renewed == 1 and member.ends > member.now


async def test_until_the_record_was_read_it_is_looked_for_often(member: Member) -> None:
    root, member.root = member.root, None
    assert await member.it.look() == SOON
    member.root = root
    assert await member.it.look() > SOON and (member.directory / ROOT).exists()


async def test_what_fails_is_tried_again(member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member.sealer, "unseal", _locked)
    member.now += MEMBER_LIFE
    waits = [await member.it.look() for _ in range(3)]
    assert waits == sorted(waits) and 0 < waits[0] < waits[-1] < LONGEST and member.renewed == 0
    monkeypatch.undo()
    assert await member.it.look() == LONGEST and authority.look(member.certificate.read_bytes()).ends > member.now
    member.certificate.unlink()
    assert 0 < await member.it.look() < LONGEST


@pytest.mark.parametrize("error", [OSError(24, "too many open files"), Unavailable("no such file")])
async def test_one_that_could_not_be_used_is_tried_again(member: Member, error: Exception) -> None:
    member.now, member.fails = MEMBER_CERTIFICATE_NOW + MEMBER_LIFE, error
    waits = [await member.it.look() for _ in range(3)]
    assert 0 < waits[0] < waits[-1] < LONGEST and member.renewed == 3
    certificate, member.fails = member.certificate.read_bytes(), None
    await member.it.look()
    await member.it.look()
    assert member.renewed == 4 and member.certificate.read_bytes() == certificate, "renewed once"


async def test_it_is_looked_at_from_its_start_on(member: Member) -> None:
    member.now += 400 * 86400
    member.it.start()
    member.it.start()
    await until_async(lambda: member.renewed > 0, "it is renewed")
    await member.it.close()
    await member.it.close()
    assert member.renewed == 1, "one looks, however often it was started"


def _locked(*_: object) -> bytes:
    raise Unavailable("the swarm is locked")
