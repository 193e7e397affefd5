from husk.swarm.model.node import Node, NodeStatus, manager_at
from tests.support.but import but


def test_where_packets_of_networks_go() -> None:
    node = Node(id="n", version=1, created_at="", updated_at="", status=NodeStatus(addr="192.0.2.1"))
    assert node.data_address == "192.0.2.1"
    node = but(node, data_path="198.51.100.1")
    assert (node.data_address, node.facts.address) == ("198.51.100.1", "192.0.2.1")


def test_where_a_manager_is() -> None:
    assert manager_at("192.0.2.1").addr == "192.0.2.1:2377" and manager_at("2001:db8::1", 5).addr == "[2001:db8::1]:5"
