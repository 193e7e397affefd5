"""The record of a swarm, as an earlier release has written it."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec

from husk.engine.services.cluster import Cluster
from husk.engine.services.machine import Machine
from husk.storage.secrets.sealing import Sealer
from husk.storage.state.store import StateStore

T = TypeVar("T")

RECORD: dict[str, Any] = {
    "id": "s", "version": 12, "created_at": "", "updated_at": "", "node_id": "n", "node_version": 10,
    "node_updated_at": "",
    "spec": {
        "Name": "default", "Labels": {}, "Orchestration": {"TaskHistoryRetentionLimit": 3},
        "Raft": {"SnapshotInterval": 7, "Unknown": [1], "KeepOldSnapshots": None}, "Dispatcher": {},
        "CAConfig": {"NodeCertExpiry": 5, "ExternalCAs": None}, "EncryptionConfig": {"AutoLockManagers": False},
        "TaskDefaults": {},
    },
    "node_spec": {"Name": "", "Labels": {}, "Role": "manager", "Availability": "drain"},
    "advertise_address": "192.0.2.1", "worker_token": "w", "manager_token": "m",
}  # fmt: skip


class State:
    def read(self, kind: str, decode: Callable[[bytes], T]) -> dict[str, T]:
        return {"s": decode(msgspec.json.encode(RECORD))}

    def aside(self, *kinds: str) -> frozenset[str]:
        return frozenset()


class Key:
    locked = False

    def settle(self, autolock: bool) -> None:
        assert not autolock


def test_settings_that_were_kept_as_they_came_are_read() -> None:
    cluster = Cluster(cast(StateStore, State()), cast(Sealer, Key()), {}, Machine())
    spec = cluster.swarm.spec
    assert (spec.history, spec.raft.snapshot_interval, spec.ca_config.external_cas) == (3, 7, [])
    assert cluster.node_facts().availability == "drain"
    assert cluster.swarm.data_path_port == 4789
