"""The parts of the swarm's networks, on the records and this host's place.

What goes up from here: `changed`, that what leads to tasks may have to be another; and `Endpoints.settled`, that it is.
"""

from typing import NamedTuple

from husk.swarm.membership.parts import MembershipParts
from husk.swarm.network.endpoints import Endpoints
from husk.swarm.network.local_node import LocalManager
from husk.swarm.network.networks import SwarmNetworks
from husk.swarm.network.server import NetworkServer
from husk.swarm.network.sharing import NetworkSharing
from husk.swarm.signals import Signal
from husk.swarm.state.parts import StateParts
from husk.swarm.surroundings import SwarmSurroundings

# The kind of networks that this host shares with others of its swarm.
OVERLAY = "overlay"


class NetworkParts(NamedTuple):
    endpoints: Endpoints
    sharing: NetworkSharing
    networks: SwarmNetworks
    server: NetworkServer
    changed: Signal[[]]


def build_network(around: SwarmSurroundings, state: StateParts, membership: MembershipParts) -> NetworkParts:
    records, cluster, networks, changed = state.records, membership.cluster, around.networks, Signal[[]]()
    endpoints = Endpoints(
        store=records, networks=networks, node_id=lambda: cluster.node_id, find_container=around.containers.find
    )
    sharing = NetworkSharing(records, cluster, networks, endpoints, changed.emit, around.events)
    if state.shared is not None or around.state.has(OVERLAY):
        sharing.begin()
    return NetworkParts(
        endpoints=endpoints,
        sharing=sharing,
        networks=SwarmNetworks(
            store=records,
            cluster=cluster,
            networks=networks,
            shared=lambda: endpoints.shared,
            left=sharing.end,
        ),
        server=NetworkServer(records, LocalManager(cluster), lambda: endpoints.shared, changed.emit),
        changed=changed,
    )
