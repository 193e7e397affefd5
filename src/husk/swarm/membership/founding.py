"""The first records of a swarm: itself, and the one node that it has then. Pure but for the ids."""

from typing import NamedTuple

from husk.swarm.model import settings
from husk.swarm.model.ids import new_id
from husk.swarm.model.node import Node, NodeDescription, NodeStatus, manager_at
from husk.swarm.model.settings import NodeSpec, SwarmSpec
from husk.swarm.model.swarm import Swarm
from husk.swarm.state.transactions import NEW
from husk.text.endpoints import MANAGER_PORT

_POOLS = ("10.0.0.0/8",)
_SUBNET_SIZE = 24


class Home(NamedTuple):
    """The addresses where others reach the first node."""

    address: str
    port: int = MANAGER_PORT
    # Of packets of networks, where it is another address.
    data_path: str = ""


def first_node(home: Home, availability: str, description: NodeDescription, now: str) -> Node:
    return Node(
        id=new_id(),
        version=NEW,
        created_at=now,
        updated_at=now,
        spec=NodeSpec(availability=settings.availability(availability) or "active"),
        description=description,
        status=NodeStatus(state="ready", addr=home.address),
        manager=manager_at(home.address, home.port),
        data_path=home.data_path,
    )


def new_swarm(spec: SwarmSpec, pools: list[str], subnet_size: int, data_path_port: int, now: str) -> Swarm:
    """One without keys and tokens yet. InvalidParameter: it cannot be as it is asked for."""
    settings.check(spec)
    return Swarm(
        id=new_id(),
        version=NEW,
        created_at=now,
        updated_at=now,
        spec=settings.initial(spec),
        worker_token="",
        manager_token="",
        default_address_pool=pools or list(_POOLS),
        subnet_size=subnet_size or _SUBNET_SIZE,
        data_path_port=settings.data_path_port(data_path_port),
    )
