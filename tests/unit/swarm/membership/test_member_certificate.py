"""The certificate of a member of etcd is renewed in its time, with the key that it has."""

from pathlib import Path

import pytest

from husk.errors import Unavailable
from husk.storage.secrets.sealing import Sealer
from husk.swarm.ca import authority, roots
from husk.swarm.ca.roots import MEMBER_LIFE
from husk.swarm.membership.member_certificate import LONGEST, ROOT, SOON, CertificateOwner, MemberCertificate
from husk.swarm.model.swarm import SwarmRoot
from husk.swarm.state.member_files import install
from tests.support.waiting import until_async

NOW = 1_800_000_000.0


class Member:
    def __init__(self, directory: Path) -> None:
        self.now, self.renewed = NOW, 0
        self.fails: Exception | None = None
        self.sealer = Sealer(directory / "swarm.key")
        self.root: SwarmRoot | None = roots.store_root(self.sealer, NOW)
        self.signer = self.root
        self.directory = directory / "swarm.etcd"
        self.certificate, self.key = self.directory / "member.crt", self.directory / "member.key"
        key, request = authority.new_request()
        signed = roots.member_certificate(self.root, self.sealer, request, "n", "192.0.2.1", NOW, 7)
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
    member.root, member.now = None, NOW + 2 * MEMBER_LIFE
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
    member.now, member.fails = NOW + MEMBER_LIFE, error
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
