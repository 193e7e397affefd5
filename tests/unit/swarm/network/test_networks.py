"""The networks of a swarm: the ingress network made once, who may be on which, and who keeps one from going."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.engine.model.network import NetworkRequest
from husk.engine.networks.sharing import Place
from husk.errors import Forbidden, InvalidParameter, NotFound, SystemFault, Unavailable
from husk.swarm.model.swarm import Membership
from husk.swarm.network.networks import SwarmNetworks, ingress_of
from tests.support.but import but
from tests.unit.engine.records import container
from tests.unit.swarm.swarm_room import SwarmRoom, port, spec


async def test_a_swarm_has_an_ingress_network_which_is_not_made_again(room: SwarmRoom) -> None:
    assert ingress_of(room.networks.listing()) is not None and room.swarm_networks.any()
    assert room.networks.pools[0], "its subnet is of the swarm's own addresses"
    await room.networks.remove("ingress")
    await room.services.started()
    assert room.networks.listing() == []


async def test_an_ingress_network_that_could_not_be_made_is_tried_again(room: SwarmRoom) -> None:
    await room.networks.remove("ingress")
    room.store.learn(but(room.cluster.record, ingress_made=False))
    room.networks.fails = SystemFault("no address is left")
    await room.services.started()
    assert not room.cluster.record.ingress_made
    room.networks.fails = None
    await room.services.started()
    assert ingress_of(room.networks.listing()) is not None and room.cluster.record.ingress_made


async def test_a_service_names_networks_and_is_kept_with_their_ids(room: SwarmRoom) -> None:
    lan = room.networks.add("lan")
    room.networks.add("host", driver="host", scope="local")
    wanted = spec("web", "lan", "host")
    room.swarm_networks.resolve(wanted)
    assert [attachment.target for attachment in wanted.task_template.networks] == [lan.id, "host"]


async def test_where_a_service_cannot_be(room: SwarmRoom) -> None:
    room.networks.add("mine", driver="bridge", scope="local")
    with pytest.raises(Forbidden, match="The network mine cannot be used with services"):
        room.swarm_networks.resolve(spec("web", "mine"))
    with pytest.raises(InvalidParameter, match="cannot be explicitly attached to the ingress network"):
        room.swarm_networks.resolve(spec("web", "ingress"))
    with pytest.raises(NotFound):
        room.swarm_networks.resolve(spec("web", "nowhere"))


async def test_a_network_of_the_swarm_needs_one(room: SwarmRoom) -> None:
    made = await room.swarm_networks.create(NetworkRequest(name="lan", driver="overlay"))
    assert made.scope == "swarm"
    await room.cluster.leave(True)
    with pytest.raises(Unavailable):
        await room.swarm_networks.create(NetworkRequest(name="more", driver="overlay"))


async def test_a_network_stays_while_a_service_is_declared_on_it(room: SwarmRoom) -> None:
    lan, free = room.networks.add("lan"), room.networks.add("free")
    service = await room.services.create(spec("web", "lan", ports=[port(80)]), None)
    ingress = room.networks.find("ingress")
    assert [room.swarm_networks.needed(one) for one in (lan, free, ingress)] == [True, False, True]
    with pytest.raises(InvalidParameter, match=f"network {lan.id} is in use by service {service.id}"):
        await room.swarm_networks.let_go(lan)
    with pytest.raises(InvalidParameter, match=f"ingress network cannot be removed because service {service.id}"):
        await room.swarm_networks.let_go(ingress)
    await room.swarm_networks.let_go(free)
    await room.services.remove("web")
    await room.swarm_networks.let_go(ingress)


async def test_a_worker_removes_no_network_of_the_swarm(room: SwarmRoom) -> None:
    """The refusal is the same whoever is on it, and also while this host is about to be one."""
    lan, place = room.networks.add("lan"), Membership(node_id="n", role="worker")
    room.networks.on["lan"] = [container("c")]
    await room.cluster.enrol(place)
    with pytest.raises(Unavailable, match="Worker nodes can't be used to view or modify cluster state"):
        await room.swarm_networks.let_go(lan)
    await room.cluster.part()
    room.cluster.between = place
    with pytest.raises(Unavailable, match="Worker nodes"):
        await room.swarm_networks.let_go(lan)
    room.cluster.between = None
    await room.swarm_networks.let_go(lan)  # what outlived its swarm can go


async def test_a_removal_waits_for_tasks_that_are_about_to_leave(
    room: SwarmRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    lan = room.networks.add("lan")
    service = await room.services.create(spec("web", "lan"), None)
    leaving = await room.run(service, lan="10.1.0.2")
    await room.services.remove("web")
    room.networks.on["lan"] = [room.containers.find(leaving.status.container_id), container("of nobody")]
    waited = 0

    async def sleep(seconds: float) -> None:
        nonlocal waited
        waited += 1
        if waited == 3:
            room.networks.on["lan"].pop(0)

    monkeypatch.setattr("husk.swarm.network.networks.asyncio.sleep", sleep)
    await room.swarm_networks.let_go(lan)
    assert waited == 3


async def test_with_the_swarm_its_networks_go_as_far_as_they_can(room: SwarmRoom) -> None:
    room.networks.add("busy")
    room.networks.add("free")
    room.networks.add("mine", driver="bridge", scope="local")
    room.networks.on["busy"] = [container("box")]
    await room.swarm_networks.leave()
    assert list(room.networks.records) == ["busy", "mine"]


async def test_networks_of_one_host_have_no_others(room: SwarmRoom) -> None:
    lan = room.networks.add("lan")
    assert (room.swarm_networks.hosts(lan), room.swarm_networks.usage(lan)) == ([], {})
    assert room.swarm_networks.places_elsewhere("task") == []
    await room.swarm_networks.clear()


async def test_a_network_that_hosts_share_tells_where_it_is(room: SwarmRoom) -> None:
    mine = room.cluster.node_id
    places = [
        Place(network="id-of-lan", address="10.1.0.2", node=mine, kind="host"),
        Place(network="id-of-lan", address="10.1.0.3", node="gone", kind="host"),
    ]
    shared = SimpleNamespace(of=lambda network: places)
    networks = SwarmNetworks(
        store=room.store, cluster=room.cluster, networks=cast(Any, room.networks), shared=lambda: cast(Any, shared)
    )
    lan = room.networks.add("lan")
    assert networks.hosts(lan) == [(mine, "192.0.2.1")]
    await networks.let_go(lan)
