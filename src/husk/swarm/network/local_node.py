"""This host's place among the others of its swarm, as far as networks need to know."""

from typing import Protocol

from husk.swarm.membership.cluster import Cluster
from husk.swarm.model.settings import DATA_PATH_PORT


class LocalNode(Protocol):
    @property
    def node_id(self) -> str: ...

    @property
    def active(self) -> bool:
        """True while this host is in a swarm whose records it knows."""
        ...

    @property
    def several(self) -> bool:
        """True if the swarm has other nodes."""
        ...

    @property
    def data_address(self) -> str:
        """The address that other nodes send packets of networks to."""
        ...

    @property
    def data_path_port(self) -> int:
        """The UDP port of VXLAN."""
        ...


class LocalManager:
    """Of a manager: as the swarm's records tell."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def node_id(self) -> str:
        return self._cluster.node_id

    @property
    def active(self) -> bool:
        return self._cluster.active

    @property
    def several(self) -> bool:
        return len(self._cluster.nodes) > 1

    @property
    def data_address(self) -> str:
        return self._cluster.node.data_address

    @property
    def data_path_port(self) -> int:
        return self._cluster.record.data_path_port or DATA_PATH_PORT
