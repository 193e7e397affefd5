"""A backup is brought back whole, or nothing is changed: wherever it fails, and wherever the daemon dies."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from husk.errors import Conflict, HuskError, InvalidParameter, SystemFault, Unauthorized, Unavailable
from husk.storage.state.store import StateStore
from husk.swarm.backup.backups import Backups
from husk.swarm.membership.moving import KINDS
from husk.swarm.model.settings import RestoreAddresses, SwarmSpec
from husk.swarm.model.swarm import KEY, MEMBERSHIP, Membership
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.state.transactions import NEW, Put
from husk.text.endpoints import HostPort
from tests.support.tapped_store import TappedStore
from tests.unit.swarm.swarm_room import SwarmRoom, spec

WORD = "correct horse"
HERE = RestoreAddresses(HostPort("127.0.0.1", 0))


class Several:
    """A store that takes no more than some records at once, and may end with a transaction of a number."""

    def __init__(self, store: SqliteStore, left: int = -1) -> None:
        self._store = store
        self.left = left

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, *steps: Any, **options: Any) -> int:
        if any(isinstance(step, Put) for step in steps):
            self.left -= 1
            if self.left == 0:
                raise SystemFault("died")
        return await self._store.commit(*steps, **options)


@contextmanager
def host(directory: Path) -> Iterator[SwarmRoom]:
    directory.mkdir(exist_ok=True)
    state = StateStore.open(directory / "state.db")
    try:
        yield SwarmRoom(directory, state)
    finally:
        state.close()


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[SwarmRoom]:
    with host(tmp_path / "old") as made:
        await made.init()
        made.networks.add("net")
        service = await made.services.create(spec("web", "net"), None)
        await made.run(service)
        await made.services.secrets.create(_secret())
        yield made


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[SwarmRoom]:
    with host(tmp_path / "new") as made:
        yield made


def _secret() -> Any:
    from husk.swarm.model.services import ObjectSpec

    return ObjectSpec(name="word", data="aGk=")


def contents(room: SwarmRoom) -> dict[str, list[str]]:
    """Return the content of the host's own store."""
    found = {kind: sorted(room.state.load(kind)) for kind in (*KINDS, MEMBERSHIP)}
    return {kind: keys for kind, keys in found.items() if keys}


async def test_all_of_it_comes_back(room: SwarmRoom, fresh: SwarmRoom) -> None:
    data = await room.backups.make(WORD)
    assert await fresh.backups.restore(data, WORD, HERE) == room.cluster.node_id
    assert fresh.cluster.active and fresh.cluster.swarm.id == room.cluster.swarm.id
    assert fresh.cluster.swarm.worker_token == room.cluster.swarm.worker_token
    assert fresh.cluster.advertise_address == "127.0.0.1" and fresh.cluster.node.status.state == "ready"
    [service], [former] = fresh.store.services.values(), room.store.services.values()
    assert service.spec == former.spec and service.virtual_ips == former.virtual_ips
    [task] = fresh.store.tasks.values()
    assert not task.alive and not task.wanted
    kept = contents(fresh)
    assert len(kept["overlay"]) == 2, "the network, and ingress"
    assert len(kept["address"]) == 1
    [secret] = fresh.store.secrets.values()
    assert await asyncio.to_thread(fresh.sealer.unseal, secret.sealed, secret.context) == b"hi"
    membership = fresh.cluster.membership
    assert membership is not None and not membership.restoring


async def test_a_locked_swarm_is_opened_by_its_unlock_key(room: SwarmRoom, fresh: SwarmRoom, tmp_path: Path) -> None:
    locked = SwarmSpec()
    locked.encryption_config.auto_lock_managers = True
    version = room.cluster.swarm.version
    await room.cluster.update(locked, version, worker_token=False, manager_token=False, unlock_key=False)
    key = await room.cluster.unlock_key()
    with pytest.raises(InvalidParameter, match="no passphrase does"):
        await room.backups.make(WORD)
    data = await room.backups.make("")
    with pytest.raises(InvalidParameter, match="its unlock key opens it"):
        await fresh.backups.restore(data, WORD, HERE)
    with pytest.raises(Unauthorized, match="not its unlock key"):
        await fresh.backups.restore(data, "SWMKEY-1-" + "A" * 43, HERE)
    assert not contents(fresh)
    await fresh.backups.restore(data, key, HERE)
    assert await fresh.cluster.unlock_key() == key
    assert not (tmp_path / "new" / "swarm.key").exists() and SwarmRoom(tmp_path / "new", fresh.state).cluster.locked


@pytest.mark.parametrize("locked", [False, True])
async def test_a_lock_that_changes_meanwhile_makes_no_backup(room: SwarmRoom, locked: bool) -> None:
    await _lock(room, locked)
    store = room.store.store = TappedStore(room.store.store)

    async def then_changed(kinds: Any) -> Any:
        taken = await store.beneath.snapshot(kinds)
        await _lock(room, not locked)
        return taken

    store.on_snapshot = then_changed
    with pytest.raises(Conflict, match="changed while the backup was made"):
        await room.backups.make("" if locked else WORD)
    store.on_snapshot = store.beneath.snapshot
    await room.backups.make(WORD if locked else "")


async def _lock(room: SwarmRoom, locked: bool) -> None:
    wanted, version = SwarmSpec(), room.cluster.swarm.version
    wanted.encryption_config.auto_lock_managers = locked
    await room.cluster.update(wanted, version, worker_token=False, manager_token=False, unlock_key=False)


async def test_what_is_asked_of_a_backup(room: SwarmRoom, fresh: SwarmRoom) -> None:
    with pytest.raises(InvalidParameter, match="needs a passphrase"):
        await room.backups.make("short")
    with pytest.raises(Unavailable, match="not a swarm manager"):
        await fresh.backups.make(WORD)
    room.store.away = lambda: "the cluster store has lost the majority of its members"
    with pytest.raises(Unavailable, match="lost the majority"):
        await room.backups.make(WORD)
    room.store.away = lambda: ""
    room.networks.add("other", driver="macvlan")
    with pytest.raises(SystemFault, match="cannot hold network other"):
        await room.backups.make(WORD)


async def test_bad_files_and_a_wrong_word_change_nothing(room: SwarmRoom, fresh: SwarmRoom, tmp_path: Path) -> None:
    data = await room.backups.make(WORD)
    for bad in (b"nonsense", data[:-1], data[:-1] + bytes([data[-1] ^ 1])):
        with pytest.raises(InvalidParameter):
            await fresh.backups.restore(bad, WORD, HERE)
    with pytest.raises(Unauthorized):
        await fresh.backups.restore(data, "another word", HERE)
    assert not contents(fresh) and not fresh.cluster.active and not list((tmp_path / "new").glob("swarm.*"))


async def test_a_host_with_another_address_has_to_say_it(room: SwarmRoom, fresh: SwarmRoom) -> None:
    data = await room.backups.make(WORD)
    with pytest.raises(InvalidParameter, match="use --advertise-addr"):
        await fresh.backups.restore(data, WORD, RestoreAddresses())
    assert not contents(fresh)


async def test_a_data_path_that_the_host_has_not_is_refused(room: SwarmRoom, fresh: SwarmRoom) -> None:
    data = await room.backups.make(WORD)
    with pytest.raises(InvalidParameter, match=r"has not the data path address 192\.0\.2\.77"):
        await fresh.backups.restore(data, WORD, HERE._replace(data_path="192.0.2.77"))
    assert not contents(fresh)
    await fresh.backups.restore(data, WORD, HERE._replace(data_path="127.0.0.1"))
    assert fresh.cluster.node.data_path == "127.0.0.1"


async def test_a_swarm_that_nobody_told_us_of_stays(room: SwarmRoom, fresh: SwarmRoom) -> None:
    data = await room.backups.make(WORD)
    await fresh.store.store.commit(Put("swarm", KEY, b'{"id":"theirs"}', NEW))
    with pytest.raises(Unavailable, match="holds a swarm already"):
        await fresh.backups.restore(data, WORD, HERE)
    assert contents(fresh) == {"swarm": [KEY]} and fresh.cluster.membership is None


@pytest.mark.parametrize("before", [1, 3, 7])
async def test_a_swarm_that_others_make_during_a_restore_is_theirs(
    room: SwarmRoom, fresh: SwarmRoom, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """Before any of our transactions, amid them, and before that of our swarm."""
    data = await room.backups.make(WORD)
    monkeypatch.setattr("husk.swarm.state.transactions.MOST_STEPS", 1)
    theirs = msgspec.structs.replace(room.cluster.swarm, id="theirs")
    fresh.store.store = Raced(SqliteStore(fresh.state), Put("swarm", KEY, msgspec.json.encode(theirs), NEW), before)
    with pytest.raises(Unavailable, match="holds a swarm already"):
        await fresh.backups.restore(data, WORD, HERE)
    assert contents(fresh) == {"swarm": [KEY]} and fresh.cluster.membership is None
    assert fresh.store.swarm is not None and fresh.store.swarm.id == "theirs"


class Raced:
    """A store into which somebody else writes, before our transaction of a number."""

    def __init__(self, store: SqliteStore, put: Put, before: int) -> None:
        self._store = store
        self._put = put
        self._left = before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, *steps: Any, **options: Any) -> int:
        self._left -= 1
        if self._left == 0:
            await self._store.commit(self._put)
        return await self._store.commit(*steps, **options)


async def test_what_the_host_is_may_be_told_later(
    room: SwarmRoom, fresh: SwarmRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> None:
        raise Unavailable("the store is away")

    data = await room.backups.make(WORD)
    monkeypatch.setattr(fresh.cluster, "describe_self", away)
    await fresh.backups.restore(data, WORD, HERE)
    assert fresh.cluster.active


async def test_a_place_that_cannot_be_kept_leaves_nothing(
    room: SwarmRoom, fresh: SwarmRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, enrol = await room.backups.make(WORD), fresh.cluster.enrol

    async def refused(membership: Membership) -> None:
        if not membership.restoring:
            raise SystemFault("no space left")
        await enrol(membership)

    monkeypatch.setattr(fresh.cluster, "enrol", refused)
    with pytest.raises(SystemFault):
        await fresh.backups.restore(data, WORD, HERE)
    assert not contents(fresh) and not fresh.cluster.active


async def test_records_of_a_former_release_are_brought_up_before_they_are_read(
    room: SwarmRoom, fresh: SwarmRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    from husk.swarm.backup import backups

    data, brought_up = await room.backups.make(WORD), list[str]()

    def of_today(content: Any) -> Any:
        brought_up.append(content.node)
        return content

    def own_node(content: Any) -> Any:
        assert brought_up == [content.node]
        raise InvalidParameter("enough")

    monkeypatch.setattr(backups, "of_today", of_today)
    monkeypatch.setattr(backups, "own_node", own_node)
    with pytest.raises(InvalidParameter, match="enough"):
        await fresh.backups.restore(data, WORD, HERE)


async def test_a_host_that_is_in_a_swarm_keeps_it(room: SwarmRoom) -> None:
    data = await room.backups.make(WORD)
    before = contents(room)
    with pytest.raises(Unavailable, match="already part of a swarm"):
        await room.backups.restore(data, WORD, HERE)
    assert contents(room) == before and room.cluster.active


async def test_a_disk_that_refuses_leaves_nothing(room: SwarmRoom, fresh: SwarmRoom, tmp_path: Path) -> None:
    data = await room.backups.make(WORD)
    store = TappedStore(fresh.store.store)

    async def refuse(*steps: Any, **options: Any) -> int:
        raise SystemFault("no space left")

    store.on_commit, fresh.store.store = refuse, store
    with pytest.raises(SystemFault):
        await fresh.backups.restore(data, WORD, HERE)
    assert not contents(fresh) and not fresh.cluster.active and not list((tmp_path / "new").glob("swarm.*"))


async def test_wherever_the_daemon_dies_the_next_has_all_or_nothing(
    room: SwarmRoom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a store that takes the records in several transactions."""
    data = await room.backups.make(WORD)
    monkeypatch.setattr("husk.swarm.state.transactions.MOST_STEPS", 2)

    async def dead(self: Backups, *given: object) -> None:
        """Die in the middle: a dead process undoes nothing."""

    for number in range(1, 20):
        directory = tmp_path / f"died-{number}"
        with host(directory) as made, monkeypatch.context() as patch:
            made.store.store = Several(SqliteStore(made.state), left=number)
            patch.setattr(Backups, "_undo", dead)
            try:
                await made.backups.restore(data, WORD, HERE)
                survived = True
            except HuskError:
                survived = False
        with host(directory) as made:
            made.store.store = Several(SqliteStore(made.state))
            await made.services.open()
            if made.cluster.active:
                assert len(made.store.services) == len(made.store.secrets) == 1
                assert made.cluster.membership is not None and not made.cluster.membership.restoring
            else:
                assert not survived and not contents(made) and not list(directory.glob("swarm.*"))
                await made.backups.restore(data, WORD, HERE)
                assert made.cluster.active
        if survived:
            assert number > 4
            return
    raise AssertionError("it never came to its end")


async def test_one_that_died_at_the_very_end_has_all(room: SwarmRoom, fresh: SwarmRoom, tmp_path: Path) -> None:
    data = await room.backups.make(WORD)
    await fresh.backups.restore(data, WORD, HERE)
    membership = fresh.cluster.membership
    assert membership is not None
    await fresh.cluster.enrol(msgspec.structs.replace(membership, restoring=fresh.cluster.swarm.id))
    again = SwarmRoom(tmp_path / "new", fresh.state)
    await again.services.open()
    assert again.cluster.active and again.cluster.membership == membership


async def test_a_swarm_that_others_made_meanwhile_is_theirs(room: SwarmRoom) -> None:
    membership = room.cluster.membership
    assert membership is not None
    await room.cluster.enrol(msgspec.structs.replace(membership, restoring="another"))
    await room.backups.go_on()
    assert room.cluster.membership is None and room.store.swarm is not None
