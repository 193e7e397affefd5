"""How containers come on networks, with doubles of the drivers."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.engine.model.container import Container, Endpoint
from husk.engine.model.container_config import Config, HostConfig
from husk.engine.model.events import Events
from husk.engine.model.network import Network
from husk.engine.networks.connector import Connector
from husk.engine.networks.live import LiveNetwork, Roster
from husk.errors import Unavailable
from husk.network.bridge import BridgeDriver, BridgeFull


class FullBridge:
    """A driver whose bridge has no port left."""

    gateway, gateway6 = "10.9.0.1", ""

    async def acquire(self, options: object) -> None:
        raise BridgeFull("bridge br-crowd has 1023 ports already")


async def test_a_full_network_is_told_by_its_name_with_what_to_do() -> None:
    network = Network(id="n" * 64, name="crowd", created="", driver="bridge")
    roster = Roster()
    roster.by_name["crowd"] = LiveNetwork(network, cast(BridgeDriver, FullBridge()))
    nothing = cast(Any, SimpleNamespace())
    connector = Connector(roster, nothing, nothing, nothing, Events(), nothing, Path("/nowhere"))
    record = Container(
        id="c" * 64,
        name="one-too-many",
        created="",
        created_ns=0,
        image_id="",
        config=Config(),
        host_config=HostConfig(network_mode="crowd"),
        path="true",
        args=[],
        endpoints={"crowd": Endpoint(network_name="crowd", network_id="")},
    )
    with pytest.raises(Unavailable) as told:
        await connector.connect(record)
    assert told.value.message == (
        "failed to set up container networking: network crowd is full: a Linux bridge takes at most 1,023 ports, "
        "one per container. Put the container on another network (docker network create)"
    )
