"""The parts of a manager's half, on its node's half and all below it.

What goes up from here: `several`, that somebody is about to join as a manager: it is answered when there can be one.
"""

from typing import NamedTuple

from husk.swarm import port
from husk.swarm.logs.parts import LogParts
from husk.swarm.manager.ca_server import CAServer
from husk.swarm.manager.dispatcher.dispatcher import Dispatcher, DispatcherServer
from husk.swarm.manager.listener import ClusterListener
from husk.swarm.manager.liveness import Liveness, NodeMarker
from husk.swarm.manager.objects import Kind, Objects
from husk.swarm.manager.reconciler import Reconciler
from husk.swarm.manager.workers import Workers
from husk.swarm.membership.parts import MembershipParts
from husk.swarm.model.heartbeats import period_of
from husk.swarm.network.parts import NetworkParts
from husk.swarm.node.parts import NodeParts
from husk.swarm.signals import AwaitedSignal
from husk.swarm.state.parts import StateParts
from husk.swarm.surroundings import SwarmSurroundings


class ManagerParts(NamedTuple):
    reconciler: Reconciler
    workers: Workers
    listener: ClusterListener
    secrets: Objects
    configs: Objects
    several: AwaitedSignal[[]]


def build_manager(
    around: SwarmSurroundings,
    state: StateParts,
    membership: MembershipParts,
    network: NetworkParts,
    logs: LogParts,
    node: NodeParts,
) -> ManagerParts:
    records, cluster, several = state.records, membership.cluster, AwaitedSignal[[]]()
    reconciler = Reconciler(
        store=records,
        cluster=cluster,
        nodes=lambda: {one.id: one.facts for one in cluster.nodes},
        events=around.events,
        looked=node.agent.wake,
    )
    records.woken.subscribe(lambda service_ids: reconciler.wake(*service_ids))
    node.noticed.subscribe(reconciler.noticed)
    dispatcher = Dispatcher(
        store=records,
        values=node.values,
        credentials=node.credentials,
        locked=lambda: cluster.locked,
        changed=reconciler.noticed,
        networks=network.server.share,
        generation=network.server.generation,
    )
    workers = Workers(
        own_id=lambda: cluster.node_id,
        nodes=membership.nodes,
        liveness=lambda: _liveness(state, membership, reconciler),
        dispatcher=dispatcher,
        changed=reconciler.wake,
        expected=network.sharing.begin,
    )
    network.endpoints.settled.subscribe(dispatcher.look)
    ca_server = CAServer(records, cluster, membership.certificates, workers.beat, several.emit)
    dispatcher_server = DispatcherServer(dispatcher, workers, lambda: records.away())

    def served() -> "port.server.ClusterPort":
        servicers = port.parts.Servicers(
            ca=ca_server,
            dispatch=dispatcher_server,
            logs=logs.broker,
            addresses=network.server,
            enter=membership.etcd_membership,
        )
        made = port.parts.build_port(servicers)
        workers.expect()
        return made

    return ManagerParts(
        reconciler=reconciler,
        workers=workers,
        listener=ClusterListener(cluster, membership.certificates, served),
        secrets=_objects("secret", around, state, membership),
        configs=_objects("config", around, state, membership),
        several=several,
    )


def _objects(kind: Kind, around: SwarmSurroundings, state: StateParts, membership: MembershipParts) -> Objects:
    return Objects(kind, store=state.records, cluster=membership.cluster, sealer=state.sealer, events=around.events)


def _liveness(state: StateParts, membership: MembershipParts, reconciler: Reconciler) -> Liveness:
    """Begin to listen for nodes, in the store that the records are in now."""
    records = state.records

    def period() -> int:
        return period_of(records.swarm.spec.dispatcher.heartbeat_period if records.swarm is not None else 0)

    marking = NodeMarker(
        records.store,
        records.nodes.values,
        membership.nodes,
        leading=lambda: records.leadership.leading,
        marked=reconciler.wake,
        period=period,
    )
    return Liveness(records.store, marking, period)
