"""The parts of this host's place in a swarm, on the records.

What goes up from here: `EtcdMembership.ended`, that this host's member of etcd has ended by itself.
"""

from typing import NamedTuple

from husk.swarm.membership.certificates import NodeCertificates
from husk.swarm.membership.cluster import PATIENCE, Cluster
from husk.swarm.membership.etcd_membership import ETCD, EtcdDriver, EtcdMembership
from husk.swarm.membership.nodes import Nodes
from husk.swarm.model.clocks import CLOCK, Clock
from husk.swarm.state.parts import MEMBER, StateParts
from husk.swarm.surroundings import SwarmSurroundings

# In the data root.
NODE = "swarm.node"


class MembershipParts(NamedTuple):
    cluster: Cluster
    certificates: NodeCertificates
    etcd_membership: EtcdMembership
    nodes: Nodes


def build_membership(
    around: SwarmSurroundings,
    state: StateParts,
    etcd: EtcdDriver = ETCD,
    clock: Clock = CLOCK,
    patience: float = PATIENCE,
) -> MembershipParts:
    config, records, sealer = around.config, state.records, state.sealer
    labels = dict(label.partition("=")[::2] for label in config.labels)
    cluster = Cluster(around.state, records, sealer, labels, around.machine, around.networks.subnets, patience=patience)
    etcd_membership = EtcdMembership(
        records,
        cluster,
        sealer,
        config.data_root / MEMBER,
        key=state.member_key,
        clock=clock,
        ports=config.swarm_etcd_ports,
        driver=etcd,
    )
    cluster.opened.subscribe(etcd_membership.unlocked)
    cluster.locking.subscribe(etcd_membership.follow_lock)
    return MembershipParts(
        cluster=cluster,
        certificates=NodeCertificates(records, cluster, sealer, config.data_root / NODE),
        etcd_membership=etcd_membership,
        nodes=Nodes(records, cluster, spare=etcd_membership.spare),
    )
