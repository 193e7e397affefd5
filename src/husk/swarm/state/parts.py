"""The parts of the swarm's records: the first phase of its putting together. It needs nothing of the swarm.

What goes up from here: `SwarmRecords.woken`, that there may be something to plan.
"""

from typing import NamedTuple

from husk.config import ClusterStoreConfig, Config
from husk.errors import Conflict, HuskError
from husk.storage.secrets.member_key import MemberKey
from husk.storage.secrets.sealing import Sealer
from husk.storage.secrets.traces import KEY
from husk.storage.state.store import StateStore
from husk.swarm.model.refusals import LOCKED
from husk.swarm.model.swarm import MEMBERSHIP, SELF, Membership
from husk.swarm.state import member_files, open_store
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.shared import Shared
from husk.swarm.state.sqlite import SqliteStore
from husk.swarm.surroundings import SwarmSurroundings

# In the data root and in the exec root: of this host's member of the swarm's own etcd.
MEMBER = "swarm.etcd"


class StateParts(NamedTuple):
    """`shared` where hosts share the store from the start on. `host` has the records that are this host's alone: also
    those of the swarm, where it is in no store that hosts share."""

    records: SwarmRecords
    sealer: Sealer
    member_key: MemberKey
    host: StateStore
    shared: Shared | None


def build_state(around: SwarmSurroundings, where: ClusterStoreConfig | None) -> StateParts:
    """Build the parts on the records in this store; None for this host's own. Blocks for as long as it takes to read
    all of those."""
    config = around.config
    sealer = Sealer(config.data_root / KEY)
    key = config.data_root / MEMBER / member_files.KEY
    member_key = MemberKey(key, config.exec_root / MEMBER, sealer, around.memory)
    if where is None:
        return StateParts(SwarmRecords.load(SqliteStore(around.state)), sealer, member_key, around.state, None)
    records = _of_others(where, config, around.state, member_key, sealer)
    return StateParts(records, sealer, member_key, around.state, Shared(records, records.store))


def _of_others(
    where: ClusterStoreConfig, config: Config, state: StateStore, member_key: MemberKey, sealer: Sealer
) -> SwarmRecords:
    """Return the records in a store that hosts share; none of them is known yet."""
    moved = store_of(state) is not None
    if not moved and state.has("swarm"):
        raise Conflict(
            "This host is a swarm of its own, whose records are in its data root: start the daemon without "
            "--cluster-store, leave that swarm (docker swarm leave --force), and start it with that again"
        )
    return SwarmRecords(open_store.open_store(where, _why_shut(member_key, sealer) if moved else ""))


def store_of(state: StateStore) -> ClusterStoreConfig | None:
    """Return the store that the records of this host's swarm were moved to; None for SQLite, or without a swarm."""
    membership = state.records(MEMBERSHIP, Membership).get(SELF)
    return membership.cluster_store if membership is not None else None


def _why_shut(key: MemberKey, sealer: Sealer) -> str:
    """Return the reason why the swarm's own etcd cannot be asked before the swarm is unlocked; empty where it can."""
    sealer.look()
    try:
        return "" if key.open() else LOCKED
    except (HuskError, OSError) as error:
        return f"the key of this manager's member of etcd cannot be used: {error}"
