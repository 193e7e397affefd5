"""The first records of a swarm."""

import pytest

from husk.errors import InvalidParameter
from husk.swarm.membership.founding import Home, first_node, new_swarm
from husk.swarm.model.node import NodeDescription
from husk.swarm.model.settings import SwarmSpec


def test_the_first_node_is_a_manager_that_others_reach() -> None:
    node = first_node(Home("2001:db8::1", 5, "192.0.2.9"), "drain", NodeDescription(hostname="alpha"), "now")
    assert node.manager is not None and node.manager.addr == "[2001:db8::1]:5"
    assert (node.is_manager, node.status.state, node.status.addr) == (True, "ready", "2001:db8::1")
    assert (node.data_address, node.spec.availability, node.created_at) == ("192.0.2.9", "drain", "now")
    assert first_node(Home("192.0.2.1"), "", NodeDescription(), "").spec.availability == "active"


def test_a_swarm_has_pools_of_its_own_unless_it_is_told_others() -> None:
    swarm = new_swarm(SwarmSpec(), [], 0, 0, "now")
    assert (swarm.default_address_pool, swarm.subnet_size, swarm.data_path_port) == (["10.0.0.0/8"], 24, 4789)
    told = new_swarm(SwarmSpec(), ["10.9.0.0/16"], 26, 5000, "now")
    assert (told.default_address_pool, told.subnet_size, told.data_path_port) == (["10.9.0.0/16"], 26, 5000)
    assert swarm.id != told.id


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        new_swarm(SwarmSpec(), [], 0, 80, "now")
    with pytest.raises(InvalidParameter):
        first_node(Home("192.0.2.1"), "asleep", NodeDescription(), "now")
