"""A daemon that is killed while its host gets another role: before each single thing that it writes."""

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from husk.errors import SystemFault, Unavailable
from husk.storage.state.store import StateStore
from husk.swarm.ca.identity import Identity
from husk.swarm.manager import role as manager_role
from husk.swarm.membership import joining
from husk.swarm.model.swarm import Membership
from husk.swarm.port.enter import ManagerSecrets
from husk.text.endpoints import HostPort
from tests.unit.swarm.manager.test_role import FakeShared, placed, with_member
from tests.unit.swarm.swarm_room import SwarmRoom
from tests.unit.swarm.test_role import changed, demote, renews


class Killed(BaseException):
    """The daemon has died here."""


class Steps:
    """Everything that a change of role writes to the disk; the daemon is killed before the nth of it."""

    def __init__(self, last: int, begun: Callable[[], bool] = lambda: True) -> None:
        self.left, self.begun = last, begun
        self.killed = False

    def take(self) -> None:
        if self.begun():
            self.left -= 1
            if self.left < 0:
                self.killed = True
                raise Killed

    def watch(self, monkeypatch: pytest.MonkeyPatch, room: SwarmRoom) -> None:
        for owner, name in ((os, "fsync"), (Path, "rename"), (Path, "unlink"), (Path, "rmdir"), (Path, "mkdir")):
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))
        note = room.cluster.note

        async def noted(membership: Membership, *, happened: bool = False) -> None:
            self.take()
            await note(membership, happened=happened)
            self.take()

        monkeypatch.setattr(room.cluster, "note", noted)

    def _counted(self, call: Callable[..., object]) -> Callable[..., object]:
        def counted(*arguments: object, **others: object) -> object:
            self.take()
            return call(*arguments, **others)

        return counted


@pytest.mark.parametrize("unlock_key", [b"", b"u" * 32])
async def test_a_daemon_that_dies_while_it_steps_down_leaves_a_manager_or_a_worker(
    tmp_path: Path, unlock_key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before each single thing that it writes: as the next daemon finds it, and comes to the same end."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # no power is cut
    ends, moment, done = list[str](), 0, False
    while not done:
        home = tmp_path / str(moment)
        home.mkdir()
        with closing(StateStore.open(tmp_path / f"{moment}.db")) as state:
            room = SwarmRoom(home, state)
            await room.init()
            await room.certificates.identity()
            if unlock_key:
                room.sealer.adopt(room.sealer.key(), unlock_key)
            sealed = room.sealer.seal(b"a secret", "of the swarm")
            await with_member(room)
            await demote(room)
            with monkeypatch.context() as patch:
                steps = Steps(moment)
                steps.watch(patch, room)
                room.node_role.demoted()
                await changed(room)
                done = not steps.killed
            after = SwarmRoom(home, state)
            await after.certificates.go_on()
            await after.services.open()
            if after.cluster.active:
                if unlock_key:
                    assert after.sealer.unlock(unlock_key)
                assert joining.is_managers(await after.certificates.kept())
                assert after.sealer.unseal(sealed, "of the swarm") == b"a secret"
                assert not list(home.glob("swarm.worker.*"))
                renews(after)
                after.node_role.demoted()
                await changed(after)
                ends.append("manager")
            else:
                ends.append("worker")
            assert after.cluster.worker is not None and after.node_role.worker is not None
            assert not joining.is_managers(await after.certificates.kept())
            with pytest.raises(SystemFault, match="is not the key"):
                after.sealer.unseal(sealed, "of the swarm")
            assert {path.name for path in home.iterdir()} == {"swarm.key", "swarm.node"}
            await after.services.close()
        moment += 1
    assert ends == sorted(ends) and len(set(ends)) == 2 and len(ends) > 20


async def works(home: Path, state: StateStore) -> tuple[Identity, bytes, bytes]:
    """A worker that has a manager's certificate already; the key of its swarm, and what that has sealed.

    The swarm's records are at hand all along, in place of etcd."""
    room = SwarmRoom(home, state)
    await room.init()
    identity, key = await room.certificates.identity(), room.sealer.key()
    sealed = room.sealer.seal(b"a secret", "of it")
    place = Membership(node_id=room.cluster.node_id, role="worker", managers=["192.0.2.7:2377"])
    await room.certificates.prepare("worker", identity)
    await room.cluster.enrol(place)
    await room.certificates.succeed("worker")
    return identity, key, sealed


def promote(
    room: SwarmRoom, identity: Identity, keys: tuple[bytes, bytes], own: bool, fails: str, patch: pytest.MonkeyPatch
) -> list[str]:
    """Another manager lets it in, with the swarm's `own` etcd or one that exists. What has failed, when it has.

    What would go on beside it in loops does not begin: each step that is taken is one of the promotion."""
    failed = list[str]()

    def may_fail(step: str) -> None:
        if step == fails:
            failed.append(step)
            raise Unavailable(f"it fails to {step}")

    room.node_role.worker.identity = identity  # type: ignore[union-attr, misc]
    room.entrance.secrets = ManagerSecrets(*keys, "192.0.2.1", b"root", b"certificate", ("192.0.2.7:2379",))
    room.etcd.others = {"m": HostPort("192.0.2.7", 2380)}
    room.etcd.on_ready = lambda: may_fail("run")

    async def follow(*_: object) -> FakeShared:
        assert room.sealer.key() == keys[0]
        may_fail("follow")
        return FakeShared()

    async def started() -> None:
        assert room.cluster.active and not room.cluster.locked and room.sealer.key() == keys[0]
        may_fail("start")

    patch.setattr(room.node_role.manager_role, "started", started)
    patch.setattr(manager_role, "follow", follow)
    if not own:
        room.node_role.manager_role.shared = FakeShared()  # type: ignore[assignment]
    return failed


@pytest.mark.parametrize(
    ("own", "unlock_key", "fails"),
    [
        (True, b"", ""),
        (True, b"u" * 32, ""),
        (True, b"u" * 32, "run"),
        (True, b"u" * 32, "follow"),
        (False, b"u" * 32, ""),
        (False, b"u" * 32, "start"),
    ],
)
async def test_a_daemon_that_dies_while_it_is_promoted_leaves_a_worker_or_a_manager(
    tmp_path: Path, own: bool, unlock_key: bytes, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the next daemon finds it, which is a manager or becomes one; where the promotion fails, while it is undone."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # no power is cut
    (tmp_path / "first").mkdir()
    with closing(StateStore.open(tmp_path / "first.db")) as state:
        identity, key, sealed = await works(tmp_path / "first", state)
    ends, moment, done = list[str](), 0, False
    while not done:
        home = tmp_path / str(moment)
        shutil.copytree(tmp_path / "first", home)
        shutil.copy(tmp_path / "first.db", tmp_path / f"{moment}.db")
        with closing(StateStore.open(tmp_path / f"{moment}.db")) as state:
            room = SwarmRoom(home, state, again=3600.0)
            await room.services.open()
            with monkeypatch.context() as patch:
                failed = promote(room, identity, (key, unlock_key), own, fails, patch)
                steps = Steps(moment, lambda: bool(failed) == bool(fails))  # noqa: B023
                steps.watch(patch, room)
                room.node_role.promoted()
                await changed(room)
                done = not steps.killed
            if done and fails:
                assert room.node_role.worker is not None and room.cluster.worker is not None
                assert await room.certificates.kept() == identity and room.sealer.key() != key
            after = SwarmRoom(home, state)
            ends.append(placed(state).role)
            await after.certificates.go_on()
            if ends[-1] == "worker":
                await after.etcd_membership.open()
            await after.services.open()
            if ends[-1] == "worker":
                assert after.node_role.worker is not None and after.sealer.key() != key
                assert await after.certificates.kept() == identity
                assert {path.name for path in home.iterdir()} == {"swarm.key", "swarm.node"}
                with monkeypatch.context() as patch:
                    promote(after, identity, (key, unlock_key), own, "", patch)
                    after.node_role.promoted()
                    await changed(after)
            elif unlock_key:
                assert after.cluster.locked and after.sealer.unlock(unlock_key)
            assert after.cluster.active and not after.cluster.locked
            assert await after.certificates.kept() == identity
            assert after.sealer.unseal(sealed, "of it") == b"a secret"
            kept = {path.name for path in home.iterdir()}
            assert kept - {"swarm.etcd"} == {"swarm.lock" if unlock_key else "swarm.key", "swarm.node"}
            assert own == ("swarm.etcd" in kept) == (placed(state).others is not None)
        moment += 1
    assert len(set(ends)) == 2 and len(ends) > 10
    assert ends == sorted(ends, reverse=not fails), "once it is another one it is that"
