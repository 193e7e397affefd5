from types import SimpleNamespace
from typing import cast

from husk.swarm.membership.cluster import Cluster
from husk.swarm.model.settings import DATA_PATH_PORT
from husk.swarm.network.local_node import LocalManager, LocalNode


def test_a_manager_is_where_its_records_say() -> None:
    record = SimpleNamespace(data_path_port=0)
    node = SimpleNamespace(data_address="192.0.2.1")
    cluster = SimpleNamespace(node_id="m", active=True, nodes=[1], node=node, record=record)
    here: LocalNode = LocalManager(cast(Cluster, cluster))
    assert (here.node_id, here.active, here.data_address) == ("m", True, "192.0.2.1")
    assert (here.several, here.data_path_port) == (False, DATA_PATH_PORT)
    cluster.nodes.append(2)
    record.data_path_port = 7789
    assert (here.several, here.data_path_port) == (True, 7789)
