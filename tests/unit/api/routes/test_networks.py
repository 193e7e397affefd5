"""Networks over HTTP: what is listed and shown, who makes and removes them, and who is put on them."""

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import ClientSession

from husk.engine.model.container import Endpoint, State
from husk.engine.model.network import Network, NetworkRequest
from tests.support.but import but
from tests.unit.api.fake_engine import NOW, FakeEngine, container
from tests.unit.api.swarm import swarm_behind
from tests.unit.swarm.swarm_room import SwarmRoom, spec


class Makers:
    """A record of who was asked to make, remove, prune and connect."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.made: list[NetworkRequest] = []
        self.removed: list[str] = []
        self.connected: list[tuple[object, ...]] = []
        engine.networks.create, engine.networks.remove = self.create, self.remove
        engine.networks.prune = self.prune
        engine.verbs.connections = SimpleNamespace(connect=self.connect, disconnect=self.connect)

    def add(self, name: str, **fields: Any) -> Network:
        record = Network(id=name * 8, name=name, created=NOW, **{"driver": "bridge"} | fields)
        self.engine.networks.records.append(record)
        return record

    async def create(self, request: NetworkRequest) -> Network:
        self.made.append(request)
        return self.add(request.name)

    async def remove(self, reference: str) -> None:
        self.removed.append(reference)

    async def prune(self, filters: object, needed: Any) -> list[str]:
        return [network.name for network in self.engine.networks.records if not needed(network) and not network.builtin]

    async def connect(self, *asked: object) -> None:
        self.connected.append(asked)


@pytest.fixture
def makers(engine: FakeEngine) -> Makers:
    return Makers(engine)


@pytest.fixture
async def room(engine: FakeEngine, tmp_path: Path) -> AsyncIterator[SwarmRoom]:
    async with swarm_behind(engine, tmp_path) as made:
        yield made


async def names(client: ClientSession, filters: str) -> list[str]:
    return [one["Name"] for one in await (await client.get("/networks", params={"filters": filters})).json()]


async def test_a_list_by_filters(client: ClientSession, makers: Makers, engine: FakeEngine) -> None:
    makers.add("lan")
    makers.add("busy")
    box = container(state=State(status="running"))
    box = but(box, endpoints={**box.endpoints, "busy": Endpoint(network_name="busy", network_id="busy" * 8)})
    engine.containers.add(box)
    assert await names(client, '{"type": ["custom"]}') == ["lan", "busy"]
    assert await names(client, '{"dangling": ["true"]}') == ["lan"]
    assert await names(client, '{"dangling": ["false"]}') == ["bridge", "host", "none", "busy"]
    for bad in ('{"type": ["odd"]}', '{"dangling": ["perhaps"]}', '{"shape": ["x"]}'):
        assert (await client.get("/networks", params={"filters": bad})).status == 400


async def test_nothing_of_a_swarm_is_loaded_where_there_is_none(
    client: ClientSession, makers: Makers, engine: FakeEngine
) -> None:
    makers.add("lan")
    engine.swarm = cast(Any, None)
    assert await names(client, '{"dangling": ["true"]}') == ["lan"]
    assert await (await client.post("/networks/prune")).json() == {"NetworksDeleted": ["lan"]}
    assert (await client.get("/networks/bridge?scope=swarm")).status == 404


async def test_older_clients_find_an_empty_table_of_containers(client: ClientSession, makers: Makers) -> None:
    old, new = [(await (await client.get(f"/v1.{n}/networks")).json())[0] for n in (51, 52)]
    assert old["Containers"] == {} and "Containers" not in new


async def test_one_network_with_who_is_on_it(client: ClientSession, makers: Makers, engine: FakeEngine) -> None:
    lan = makers.add("lan", subnet="10.0.0.0/24")
    box = container(state=State(status="running"))
    endpoint = Endpoint(network_name="lan", network_id=lan.id, ip_address="10.0.0.2", prefix_len=24)
    box = but(box, endpoints={"lan": endpoint})
    engine.containers.add(box)
    networks: Any = engine.networks
    networks.addresses = lambda network: {"10.0.0.0/24": (4, 252)}
    # Nobody has asked for a swarm: its modules are not to be loaded for this.
    engine.swarm = cast(Any, None)
    shown = await (await client.get("/v1.52/networks/lan")).json()
    assert shown["Containers"][box.id]["IPv4Address"] == "10.0.0.2/24" and shown["Status"]
    assert "Status" not in await (await client.get("/v1.51/networks/lan")).json()
    assert (await client.get("/networks/lan?scope=swarm")).status == 404
    assert (await client.get("/networks/nowhere")).status == 404


async def test_a_network_of_the_swarm_shows_its_services(
    client: ClientSession, makers: Makers, room: SwarmRoom
) -> None:
    await room.init()
    lan = makers.add("lan", driver="overlay", scope="swarm", subnet="10.1.0.0/24")
    room.networks.records["lan"] = lan
    service = await room.services.create(spec("web", "lan"), None)
    await room.run(service, lan="10.1.0.2")
    shown = await (await client.get("/networks/lan?verbose=1")).json()
    assert list(shown["Services"]) == ["web"]
    assert "Services" not in await (await client.get("/networks/lan")).json()
    assert (await (await client.get("/networks/bridge?scope=swarm")).json())["Scope"] == "swarm"


async def test_networks_are_made_by_the_engine_or_by_the_swarm(
    client: ClientSession, makers: Makers, room: SwarmRoom
) -> None:
    response = await client.post("/networks/create", json={"Name": "lan"})
    assert response.status == 201 and makers.made[-1].enable_ipv4 is None
    await client.post("/v1.47/networks/create", json={"Name": "old", "EnableIPv4": False})
    assert makers.made[-1].enable_ipv4 is True
    overlay = {"Name": "over", "Driver": "overlay"}
    assert (await client.post("/networks/create", json=overlay)).status == 503
    await room.init()
    assert (await client.post("/networks/create", json=overlay)).status == 201
    assert "over" in room.networks.records and len(makers.made) == 2
    assert (await client.post("/networks/create")).status == 400


async def test_what_a_service_needs_is_neither_removed_nor_pruned(
    client: ClientSession, makers: Makers, room: SwarmRoom
) -> None:
    await room.init()
    lan = makers.add("lan", driver="overlay", scope="swarm", subnet="10.1.0.0/24")
    room.networks.records["lan"] = lan
    free = makers.add("free")
    await room.services.create(spec("web", "lan"), None)
    assert (await client.delete("/networks/lan")).status == 400
    assert (await client.delete("/networks/free")).status == 204 and makers.removed == [free.id]
    assert await (await client.post("/networks/prune")).json() == {"NetworksDeleted": ["free"]}


async def test_containers_are_put_on_and_taken_off(client: ClientSession, makers: Makers) -> None:
    makers.add("lan")
    settings = {"IPAMConfig": {"IPv4Address": "10.0.0.9"}}
    asked = {"Container": "web", "EndpointConfig": settings}
    assert (await client.post("/networks/lan/connect", json=asked)).status == 200
    assert makers.connected[0][:2] == ("lan", "web")
    wrong = {"Container": "web", "EndpointConfig": {"IPAMConfig": {"IPv4Address": "nonsense"}}}
    assert (await client.post("/networks/lan/connect", json=wrong)).status == 400
    await client.post("/networks/lan/disconnect", json={"Container": "web", "Force": True})
    assert makers.connected[1:] == [("lan", "web", True)]
