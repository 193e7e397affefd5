"""Endpoints of services: addresses given, kept and given back, names and ports that lead to what runs."""

import asyncio

from husk.engine.model.network import Network
from husk.errors import Unavailable
from husk.registry.auth import Credentials
from husk.swarm.model.services import EndpointSpec, NetworkAttachment, Service, VirtualIP
from tests.support.but import but
from tests.unit.swarm.swarm_room import SwarmRoom, port, spec, task


async def test_a_service_has_an_address_on_each_network_that_resolves_names(room: SwarmRoom) -> None:
    lan = room.networks.add("lan")
    room.networks.add("bridge", driver="bridge", scope="local")
    service = await room.services.create(spec("web", "lan", "bridge", ports=[port(80)]), None)
    ingress = room.networks.find("ingress")
    assert service.virtual_ips == [
        VirtualIP(network_id=lan.id, addr="10.1.0.100/24"),
        VirtualIP(network_id=ingress.id, addr="10.0.0.100/24"),
    ]


async def test_round_robin_needs_no_address(room: SwarmRoom) -> None:
    room.networks.add("lan")
    service = await room.services.create(spec("web", "lan", endpoint_spec=EndpointSpec(mode="dnsrr")), None)
    assert (service.virtual_ips, room.networks.find("lan").service_addresses) == ([], [])


async def test_an_address_stays_over_a_change_and_goes_back_when_nobody_needs_it(room: SwarmRoom) -> None:
    find = room.networks.find
    room.networks.add("lan"), room.networks.add("other")
    service = await room.services.create(spec("web", "lan"), None)
    await room.services.update("web", service.version, spec("web", "lan", "other"), rollback=False, credentials=None)
    after = room.services.find("web")
    assert [virtual.addr for virtual in after.virtual_ips] == ["10.1.0.100/24", "10.2.0.100/24"]
    await room.services.update("web", after.version, spec("web", "other"), rollback=False, credentials=None)
    await room.endpoints.settle()
    assert (find("lan").service_addresses, find("other").service_addresses) == ([], ["10.2.0.100"])
    await room.services.remove("web")
    await room.endpoints.settle()
    assert find("other").service_addresses == []


async def test_the_address_of_a_service_that_is_about_to_be_saved_is_not_given_to_another(room: SwarmRoom) -> None:
    """The reconciler settles whenever a task changes, also between an address taken and the record that names it."""
    room.networks.add("lan")

    async def meanwhile(service: Service) -> None:
        await room.endpoints.settle()

    room.credentials.meanwhile = meanwhile
    wanted = [room.services.create(spec(name, "lan"), Credentials(username=name)) for name in ("one", "two")]
    made = await asyncio.gather(*wanted)
    assert room.networks.find("lan").service_addresses == ["10.1.0.100", "10.1.0.101"]
    assert len({service.virtual_ips[0].addr for service in made}) == 2


async def test_names_and_ports_lead_to_the_tasks_that_run(room: SwarmRoom) -> None:
    room.networks.add("lan")
    wanted = spec("web", "lan", ports=[port(8080), port(9090, mode="host")])
    wanted.task_template.networks = [NetworkAttachment(target="lan", aliases=["www"])]
    service = await room.services.create(wanted, None)
    await room.run(service, 1, lan="10.1.0.3", ingress="10.0.0.3")
    await room.run(service, 2, lan="10.1.0.2", ingress="10.0.0.2")
    ended = await room.run(service, 3, lan="10.1.0.4")
    room.store.learn(but(ended, status__state="failed"))
    gone = await room.run(service, 4, lan="10.1.0.5")
    del room.containers.records[gone.status.container_id]
    unwanted = await room.run(service, 5, lan="10.1.0.6")
    room.store.learn(but(unwanted, desired_state="shutdown"))
    elsewhere = await room.run(service, 6, lan="10.1.0.7")
    room.store.learn(but(elsewhere, node_id="a worker that names a container of ours"))
    assert await room.endpoints.settle()
    reached = room.networks.balancing.reached
    assert not reached(ended.id) and not reached(unwanted.id) and reached("one that nobody has told of")
    on_lan, _ = room.networks.balancing.services
    assert (on_lan.names, on_lan.address, on_lan.targets) == (("web", "www"), "10.1.0.100", ("10.1.0.2", "10.1.0.3"))
    (balanced,) = room.networks.balancing.ports
    assert (balanced.port, balanced.target_port, balanced.targets) == (8080, 80, ("10.0.0.2", "10.0.0.3"))


async def test_a_network_that_is_gone_leaves_the_rest_reachable(room: SwarmRoom) -> None:
    room.networks.add("lan")
    room.networks.add("other")
    service = await room.services.create(spec("web", "lan", "other"), None)
    await room.run(service, lan="10.1.0.2", other="10.2.0.2")
    del room.networks.records["lan"]
    assert await room.endpoints.settle()
    assert [virtual.addr for virtual in room.services.find("web").virtual_ips] == ["10.2.0.100/24"]
    (left,) = room.networks.balancing.services
    assert left.targets == ("10.2.0.2",)


async def test_a_service_that_can_have_no_address_leaves_the_rest_reachable(room: SwarmRoom) -> None:
    full = room.networks.add("full")
    room.networks.add("lan")
    first = await room.services.create(spec("first", "full"), None)
    web = await room.services.create(spec("web", "lan"), None)
    await room.store.save(but(room.store.services[first.id], virtual_ips=[]))
    await room.store.save(but(room.store.services[web.id], virtual_ips=[]))
    take = room.networks.service_addresses.take

    async def taken(network: Network) -> list[str]:
        if network.id == full.id:
            raise Unavailable("no available IPv4 addresses on this network's address pools")
        return await take(network)

    room.networks.service_addresses.take = taken  # type: ignore[method-assign]
    await room.run(web, lan="10.1.0.2")
    assert not await room.endpoints.settle(), "it is to be tried again"
    (led,) = room.networks.balancing.services
    assert led.names == ("web",) and led.targets == ("10.1.0.2",)
    room.networks.service_addresses.take = take  # type: ignore[method-assign]
    assert await room.endpoints.settle() and len(room.networks.balancing.services) == 2


async def test_what_a_network_knows_of_services(room: SwarmRoom) -> None:
    lan = room.networks.add("lan")
    service = await room.services.create(spec("web", "lan"), None)
    await room.run(service, lan="10.1.0.2")
    await room.store.save(task(service, slot=2, state="pending"))
    assert list(room.services.on_network(lan)) == ["web"]
