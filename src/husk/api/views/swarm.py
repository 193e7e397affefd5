"""The swarm that a daemon is in, as `GET /info` tells of it."""

from typing import TYPE_CHECKING

import msgspec

from husk.api.types.system import SwarmInfo
from husk.api.views.services import swarm_document
from husk.swarm.model.refusals import LOCKED

if TYPE_CHECKING:
    from husk.swarm.membership.cluster import Cluster


def swarm_info(cluster: "Cluster", trouble: str) -> SwarmInfo:
    """Describe a swarm of which this daemon is a manager, be it a locked one; `trouble` keeps it from managing."""
    if cluster.locked:
        return SwarmInfo(node_addr=cluster.advertise_address, local_node_state="locked", error=LOCKED)
    document: dict[str, object] = msgspec.to_builtins(swarm_document(cluster.record))
    managers = [(node.id, node.manager) for node in cluster.nodes if node.manager is not None]
    return SwarmInfo(
        node_id=cluster.node_id,
        node_addr=cluster.advertise_address,
        local_node_state="active",
        control_available=not cluster.away,
        error=trouble,
        remote_managers=[{"NodeID": id, "Addr": manager.addr} for id, manager in managers],
        nodes=len(cluster.nodes),
        managers=len(managers),
        # Who may look at the engine need not know how to join it.
        cluster={name: value for name, value in document.items() if name != "JoinTokens"},
    )
