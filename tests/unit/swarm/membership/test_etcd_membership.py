"""Things that a manager gives to another; members that run are in tests/integration/services/test_managers.py."""

import shutil
from pathlib import Path

import msgspec
import pytest
from cryptography import x509

from husk.errors import InvalidParameter, Unavailable
from husk.storage.secrets.sealing import Sealer
from husk.storage.state.store import StateStore
from husk.swarm.ca import authority
from husk.swarm.membership.autolock import read_key, write_key
from husk.swarm.membership.etcd_membership import GIVEN_STORE, RELIEF
from husk.swarm.membership.moving import everything
from husk.swarm.model.services import SECOND
from husk.swarm.model.settings import EncryptionConfig, NodeSpec, SwarmSpec
from husk.swarm.port.enter import ManagerSecrets
from husk.swarm.state.etcd.certificates import CertificateFiles
from husk.swarm.state.etcd.members import KnownMember
from husk.swarm.state.etcd.store import EtcdStore
from husk.swarm.state.transactions import StoreUnavailable
from husk.text.endpoints import HostPort
from tests.support.but import but
from tests.support.clock import FakeClock
from tests.support.waiting import until_async
from tests.unit.swarm.membership.test_nodes import worker
from tests.unit.swarm.swarm_room import SwarmRoom


@pytest.fixture
async def room(tmp_path: Path, state: StateStore) -> SwarmRoom:
    made = SwarmRoom(tmp_path, state)
    await made.init()
    return made


async def test_a_new_manager_is_given_the_keys(room: SwarmRoom, tmp_path: Path) -> None:
    sealed = room.sealer.seal(b"value", "secret")
    await room.store.save(worker("w", "beta"))
    entered = await room.etcd_membership.enter("w", authority.new_request()[1])
    assert (entered.address, entered.members, entered.unlock_key) == ("192.0.2.9", (), b"")
    other = Sealer(tmp_path / "other.key")
    other.adopt(entered.key, entered.unlock_key)
    assert Sealer(tmp_path / "other.key").unseal(sealed, "secret") == b"value"
    with pytest.raises(Unavailable, match="share an etcd that exists"):
        await room.etcd_membership.join("w", entered, b"")
    assert "start this daemon" in GIVEN_STORE


async def test_a_new_manager_of_a_locked_swarm_locks_its_own(room: SwarmRoom, tmp_path: Path) -> None:
    spec = SwarmSpec(encryption_config=EncryptionConfig(auto_lock_managers=True))
    version = room.cluster.swarm.version
    await room.cluster.update(spec, version, worker_token=False, manager_token=False, unlock_key=False)
    await room.store.save(worker("w", "beta"))
    entered = await room.etcd_membership.enter("w", b"")
    assert write_key(entered.unlock_key) == await room.cluster.unlock_key()
    other = Sealer(tmp_path / "other.key")
    other.adopt(entered.key, entered.unlock_key)
    assert not (tmp_path / "other.key").exists()
    again = Sealer(tmp_path / "other.key")
    again.settle(True)
    assert again.locked and again.unlock(entered.unlock_key)


async def test_the_swarms_etcd_has_certificates_of_its_own(room: SwarmRoom) -> None:
    await room.store.save(worker("w", "beta"))
    swarm = await room.cluster.with_store_root()
    assert swarm.store_root is not None and swarm.trust is not None
    assert swarm.store_root.certificate != swarm.trust.root.certificate
    assert (await room.cluster.with_store_root()).store_root == swarm.store_root
    place = room.cluster.membership
    assert place is not None
    await room.cluster.note_store(room.etcd_membership.where([HostPort("192.0.2.1", 2379)]), {})
    key, request = authority.new_request()
    entered = await room.etcd_membership.enter("w", request)
    assert entered.members == ("192.0.2.1:2379",) and entered.root == swarm.store_root.certificate.encode()
    found = x509.load_pem_x509_certificate(entered.certificate)
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name) for name in names.get_values_for_type(x509.IPAddress)] == ["192.0.2.9"]
    assert authority.signed_by(entered.certificate, [entered.root]) and authority.fits(entered.certificate, key)
    assert not authority.signed_by(entered.certificate, [swarm.trust.root.certificate.encode()])
    twin = worker("twin", "gamma")
    twin = but(twin, status__addr=room.cluster.advertise_address)
    await room.store.save(twin)
    with pytest.raises(InvalidParameter, match=r"another manager of the swarm has the address 192.0.2.1, too"):
        await room.etcd_membership.enter("twin", request)


async def test_where_the_members_are(room: SwarmRoom) -> None:
    assert room.etcd_membership.endpoints() == [HostPort("192.0.2.1", 2379)] and not room.etcd_membership.here
    where = room.etcd_membership.where([HostPort("192.0.2.1", 2379), HostPort("2001:db8::2", 9)])
    assert where.address == "etcd://192.0.2.1:2379,[2001:db8::2]:9" and where.certificates is not None
    await room.store.save(worker("w", "beta"))
    assert len(room.etcd_membership.endpoints()) == 1, "workers have none"
    assert room.etcd_membership.endpoints(but=room.cluster.node_id) == []


async def test_without_etcd_nothing_is_begun(room: SwarmRoom, tmp_path: Path) -> None:
    room.etcd.installed = False
    with pytest.raises(Unavailable, match="several managers need etcd"):
        await room.node_role.manager_role.several()
    assert not room.store.shared and not (tmp_path / "swarm.etcd").exists()
    with pytest.raises(Unavailable, match="no member"):
        await room.etcd_membership.start_alone()


async def test_what_a_daemon_left_that_died_is_wiped(room: SwarmRoom, tmp_path: Path) -> None:
    left = tmp_path / "swarm.etcd"
    left.mkdir()
    (left / "member.key").write_text("x")
    await room.etcd_membership.open()
    assert not left.exists()
    await room.etcd_membership.depart()
    await room.etcd_membership.drop()
    await room.etcd_membership.close()


async def test_others_hear_of_an_unusual_port_though_a_daemon_died_before_it_told_them(room: SwarmRoom) -> None:
    place = room.cluster.membership
    assert place is not None
    await room.cluster.enrol(msgspec.structs.replace(place, others={}, store_ports=(23790, 23800)))
    room.etcd.known = [KnownMember(7, "m", HostPort("192.0.2.1", 23800), learns=True)]
    await room.etcd_membership.settle()
    assert room.etcd_membership.endpoints() == [HostPort("192.0.2.1", 23790)]
    assert room.etcd.asked == [("promote", HostPort("192.0.2.1", 23800))] and not room.etcd.opened


async def test_a_member_that_the_others_removed_begins_anew(tmp_path: Path, state: StateStore) -> None:
    room = SwarmRoom(tmp_path, state, etcd_ports=(23790, 23800))
    await room.init()
    removed = await room.begin_etcd()
    assert not room.etcd_membership.removed
    other = worker("w", "beta")
    other.spec.role = "manager"
    await room.store.save(other)
    removed.removed, room.etcd.others = True, {"w": HostPort("192.0.2.9", 2380)}
    room.etcd.asked_at.clear()
    assert room.etcd_membership.removed
    await room.etcd_membership.bring_back()
    assert room.etcd.asked_at == [[HostPort("192.0.2.9", 2379)]] and not room.etcd.opened
    assert room.etcd.asked == [("add", HostPort("192.0.2.1", 23800))]
    noted = room.cluster.membership
    assert noted is not None and noted.others == {"w": "192.0.2.9:2380"}
    assert noted.store == "etcd://192.0.2.1:23790,192.0.2.9:2379"
    assert removed.told[-1] == "clear"
    assert room.etcd.made[-1].told == ["start"] and not room.etcd_membership.removed
    assert room.etcd.made[-1].settings.others == {"w": HostPort("192.0.2.9", 2380)}
    await room.etcd_membership.close()


def test_what_was_entered_is_all_there() -> None:
    assert ManagerSecrets(b"k", b"", "a", b"", b"", ()).members == ()


async def test_what_is_wrong_with_this_hosts_member(room: SwarmRoom) -> None:
    assert room.etcd_membership.trouble == ""
    (await room.begin_etcd()).trouble = "it has ended: no space left on device"
    assert room.etcd_membership.trouble.endswith("is started again: it has ended: no space left on device")


async def test_a_full_etcd_is_relieved_once_in_a_while(tmp_path: Path, state: StateStore) -> None:
    clock, store = FakeClock(RELIEF), EtcdStore.shut("etcd://192.0.2.1", "it is another's")
    room = SwarmRoom(tmp_path, state, clock=clock)
    await room.init()
    room.etcd.relieve_fails = Unavailable("nobody answers")
    room.store.switch(store, await everything(room.store.store))
    room.etcd_membership.know([HostPort("192.0.2.1", 2379)])
    store.full()
    store.full()
    await until_async(lambda: room.etcd.relieved, "that it is tried")
    clock.wall -= 3600 * SECOND
    clock.at += RELIEF
    store.full()
    await until_async(lambda: room.etcd.relieved == 2, "that it is tried again, though people set the clock back")
    await room.etcd_membership.close()
    await store.close()


async def spared(room: SwarmRoom, down: set[str], *, demoted: str, learning: tuple[int, ...] = (4,)) -> bool:
    """Tell if one of three managers may be demoted while the members at these addresses do not answer."""
    place = room.cluster.membership
    assert place is not None
    await room.cluster.enrol(msgspec.structs.replace(place, others={}))
    for number in (2, 3):
        node = worker(f"m{number}", f"host{number}")
        address = f"192.0.2.{number}"
        await room.store.save(but(node, spec=NodeSpec(role="manager"), status__addr=address))
    room.etcd.known = [
        KnownMember(n, f"m{n}", HostPort(f"192.0.2.{n}", 2380), learns=n in learning) for n in (1, 2, 3, 4)
    ]
    room.etcd.down = down
    node = next(node for node in room.store.nodes.values() if node.status.addr == demoted)
    try:
        await room.etcd_membership.spare(node)
    except InvalidParameter as error:
        assert "lose their majority" in error.message
        return False
    return True


@pytest.mark.parametrize(
    ("down", "demoted", "may"),
    [
        (set(), "192.0.2.2", True),
        ({"192.0.2.3"}, "192.0.2.2", False),
        ({"192.0.2.3"}, "192.0.2.3", True),
        ({"192.0.2.3"}, "192.0.2.1", False),
    ],
)
async def test_a_manager_goes_only_where_the_others_have_a_majority_without_it(
    room: SwarmRoom, down: set[str], demoted: str, may: bool
) -> None:
    assert await spared(room, down, demoted=demoted) == may


async def test_members_that_are_on_their_way_out_count_for_nobody(room: SwarmRoom) -> None:
    """Of four, one is down, and one is demoted: with a second one demoted, the down one would be half of the rest."""
    going = but(worker("m4", "host4"), spec=NodeSpec(role="worker"), status__addr="192.0.2.4")
    await room.store.save(going)
    assert not await spared(room, {"192.0.2.3"}, demoted="192.0.2.2", learning=())


@pytest.mark.parametrize("forced", [True, False])
async def test_a_member_that_the_others_keep_goes_on_unless_its_host_is_forced_to_go(
    room: SwarmRoom, forced: bool
) -> None:
    member = await room.begin_etcd()
    await room.store.save(but(worker("m2", "host2"), spec=NodeSpec(role="manager"), status__addr="192.0.2.2"))
    room.etcd.known = [KnownMember(1, "m1", HostPort("192.0.2.1", 2380), learns=False)]
    room.etcd.remove_fails = InvalidParameter("unhealthy cluster")
    if forced:
        await room.etcd_membership.depart(forced=True)
        assert member.told == ["start", "expect end"]
    else:
        with pytest.raises(InvalidParameter, match="unhealthy"):
            await room.etcd_membership.depart()
        assert member.told == ["start", "expect end", "go on"]
    await room.etcd_membership.close()


async def test_the_key_of_the_member_is_on_the_disk_as_the_swarm_wants_it(room: SwarmRoom, tmp_path: Path) -> None:
    key = tmp_path / "swarm.etcd" / "member.key"
    await room.etcd_membership.follow_lock()
    await room.begin_etcd()
    content = key.read_bytes()
    for autolock in (True, False):
        spec = SwarmSpec(encryption_config=EncryptionConfig(auto_lock_managers=autolock))
        version = room.cluster.swarm.version
        await room.cluster.update(spec, version, worker_token=False, manager_token=False, unlock_key=False)
        await room.etcd_membership.follow_lock()
        assert key.is_symlink() is autolock and key.read_bytes() == content
    await room.etcd_membership.drop()


async def test_a_locked_manager_makes_no_new_cluster_though_its_member_runs(room: SwarmRoom) -> None:
    """After a start of the daemon alone: others would be none of the swarm any more by somebody without the key."""
    member = await room.begin_etcd()
    room.sealer.locked = True
    with pytest.raises(Unavailable, match="needs to be unlocked"):
        await room.node_role.manager_role.start_over()
    assert member.told == ["start"]
    await room.etcd_membership.close()


async def test_the_members_key_is_sealed_before_the_key_that_seals_it_goes(
    room: SwarmRoom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "swarm.etcd" / "member.key"
    await room.begin_etcd()
    seen = list[bool]()
    keep_locked = room.sealer.keep_locked

    def going() -> None:
        seen.append(key.is_symlink())
        keep_locked()

    monkeypatch.setattr(room.sealer, "keep_locked", going)

    async def autolock(on: bool) -> None:
        spec = SwarmSpec(encryption_config=EncryptionConfig(auto_lock_managers=on))
        version = room.cluster.swarm.version
        await room.cluster.update(spec, version, worker_token=False, manager_token=False, unlock_key=False)

    await autolock(True)
    assert seen == [True]
    await autolock(False)
    assert not key.is_symlink()
    room.memory.fails = OSError(1, "Operation not permitted")
    await autolock(True)
    assert room.etcd_membership.trouble == (
        "the key of this manager's member of etcd is not sealed, and may be in the clear on the disk: "
        "[Errno 1] Operation not permitted"
    )
    room.memory.fails = None
    await room.etcd_membership.follow_lock()
    assert key.is_symlink() and not room.etcd_membership.trouble
    await room.etcd_membership.drop()


class ShownStore(EtcdStore):
    """etcd that is asked for nothing; how often it was shown another certificate."""

    shown = 0

    async def renew(self, certificates: CertificateFiles) -> None:
        self.shown += 1


async def test_a_sealed_member_is_started_when_the_swarm_is_unlocked(
    room: SwarmRoom, tmp_path: Path, state: StateStore
) -> None:
    directory = tmp_path / "swarm.etcd"
    await room.begin_etcd()
    content = (directory / "member.key").read_bytes()
    spec = SwarmSpec(encryption_config=EncryptionConfig(auto_lock_managers=True))
    await room.cluster.update(
        spec, room.cluster.swarm.version, worker_token=False, manager_token=False, unlock_key=False
    )
    unlock_key = read_key(await room.cluster.unlock_key())
    await room.etcd_membership.close()
    shutil.rmtree(tmp_path / "run")  # the host begins anew
    after = SwarmRoom(tmp_path, state)
    there, store = await everything(after.store.store), ShownStore.shut("etcd://192.0.2.1", "it is locked")
    after.store.switch(store, there)
    await after.cluster.open()
    await after.etcd_membership.open()
    assert not after.etcd.made and not after.etcd_membership.runs
    with pytest.raises(Unavailable, match="needs to be unlocked"):
        await after.etcd_membership.start_alone()
    assert after.sealer.unlock(unlock_key)
    after.etcd.make_fails = OSError(28, "No space left on device")
    with pytest.raises(OSError, match="No space"):
        await after.etcd_membership.unlocked()
    after.etcd.make_fails = None
    await after.etcd_membership.unlocked()
    await after.etcd_membership.unlocked()
    assert [member.told for member in after.etcd.made] == [["start"]]
    assert store.shown == 2, "the daemon shows its certificate, too"
    assert after.etcd_membership.runs and (directory / "member.key").read_bytes() == content
    await after.etcd_membership.drop()
    assert not directory.exists() and not (tmp_path / "run" / "swarm.etcd").exists()
    await after.etcd_membership.unlocked()
    assert len(after.etcd.made) == 1
    await store.close()


async def test_a_store_that_cannot_be_asked_before_the_swarm_is_unlocked() -> None:
    shut = EtcdStore.shut("etcd://192.0.2.1", "it is locked")
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match=r"^it is locked$"):
            await shut.get("swarm", "default")
    await shut.close()
