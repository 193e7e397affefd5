"""The move of a swarm's records into a real etcd, where another manager finds them."""

from pathlib import Path

from husk.config import ClusterStoreConfig
from husk.storage.state.store import StateStore
from husk.swarm.state.etcd.store import EtcdStore
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.shared import Shared
from tests.support.etcd import Etcd
from tests.unit.swarm.swarm_room import SwarmRoom, spec, task


async def test_records_move_and_another_manager_has_them(tmp_path: Path) -> None:
    state = StateStore.open(tmp_path / "state.db")
    with Etcd(tmp_path / "etcd") as etcd:
        room = SwarmRoom(tmp_path, state)
        await room.init()
        web = await room.services.create(spec(), None)
        await room.store.save(*(task(web, slot=slot) for slot in range(300)))
        await room.services.node_role.manager_role.move_to(ClusterStoreConfig(etcd.address))
        assert room.store.shared and not state.load("task") and not state.load("swarm")

        store = EtcdStore.open(etcd.address)
        other = SwarmRecords(store)
        shared = Shared(other, store)

        async def known() -> None:
            assert len(other.tasks) == 300 and set(other.services) == {web.id}
            assert set(other.nodes) == {room.cluster.node_id}

        await shared.open(known)
        assert shared.away == "" and len(other.tasks) == 300
        await room.services.remove("web")
        await shared.close()
        await room.services.close()
    state.close()
