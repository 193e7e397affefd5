"""A container comes on a network or off it: what is recorded, what happens at once, and what its files say."""

from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from husk.engine.containers.connect import Connections, refresh_files, write_files
from husk.engine.containers.index import Instance
from husk.engine.model.container import Container, Draft, Endpoint
from husk.engine.model.container_config import EndpointRequest, HostConfig
from husk.engine.model.network import Network
from husk.engine.networks.connector import Connected
from husk.engine.networks.service import Networks
from husk.errors import Conflict, DiskFault, Forbidden, InvalidParameter, NotFound
from tests.support.but import but
from tests.support.room import Room
from tests.unit.engine.records import container


class FakeNetworks:
    """Networks by name, which give out one address each."""

    def __init__(self, *names: str) -> None:
        self.known = {name: Network(id=name * 4, name=name, driver="bridge", created="") for name in names}
        self.joined: list[str] = []

    async def seek(self, reference: str) -> None:
        """No swarm has others."""

    def find(self, reference: str) -> Network:
        for network in self.known.values():
            if reference in (network.name, network.id):
                return network
        raise NotFound(f"network {reference} not found")

    def new_endpoint(self, reference: str, record: Container, request: EndpointRequest) -> Endpoint:
        network = self.find(reference)
        return Endpoint(network_name=network.name, network_id=network.id, request=request)

    async def join(self, draft: Draft, endpoint: Endpoint) -> None:
        self.joined.append(endpoint.network_name)
        draft.put(but(endpoint, endpoint_id="e", ip_address=f"10.0.0.{len(self.joined) + 1}"))

    async def leave(self, draft: Draft, endpoint: Endpoint) -> None:
        self.joined.remove(endpoint.network_name)

    def described(self, record: Container) -> Connected:
        return Connected(host_gateways=(), resolver=True)


class Switch:
    def __init__(self, room: Room) -> None:
        self.room = room
        self.networks = FakeNetworks("back", "host")
        self.connections = Connections(room.index, cast(Networks, self.networks), room.host.paths, room.tasks)

    async def connect(self, instance: Instance, network: str = "back") -> None:
        await self.connections.connect(network, instance.id, EndpointRequest())

    async def running(self) -> Instance:
        """One that has a sandbox."""
        instance = await self.room.started(container())
        instance.believe(but(instance.record, sandbox_path="/run/netns/x"))
        assert instance.record.on_networks
        return instance

    def stored(self, instance: Instance) -> set[str]:
        stored = self.room.stored(instance)
        assert stored is not None
        return set(stored.endpoints)

    def hosts(self, instance: Instance) -> str:
        return self.room.host.paths.of(instance.id).hosts.read_text()


@pytest.fixture
def switch(room: Room) -> Switch:
    return Switch(room)


async def test_a_stopped_container_has_it_noted_for_its_next_start(switch: Switch, room: Room) -> None:
    instance = await room.add(container())
    await switch.connect(instance)
    assert switch.stored(instance) == {"back"} and switch.networks.joined == []
    await switch.connections.disconnect("back", instance.id, force=False)
    assert switch.stored(instance) == set()


async def test_a_running_one_gets_its_interface_and_reads_its_address(switch: Switch) -> None:
    instance = await switch.running()
    await switch.connect(instance)
    assert switch.networks.joined == ["back"] and switch.stored(instance) == {"back"}
    assert "10.0.0.2\t" in switch.hosts(instance)
    await switch.connections.disconnect("back", instance.id, force=False)
    assert switch.networks.joined == [] and switch.stored(instance) == set()
    assert "10.0.0.2\t" not in switch.hosts(instance)


async def test_a_second_request_changes_nothing(switch: Switch) -> None:
    instance = await switch.running()
    await switch.connect(instance)
    await switch.connect(instance)
    assert switch.networks.joined == ["back"]


async def test_what_the_disk_does_not_take_is_undone(switch: Switch) -> None:
    instance = await switch.running()
    switch.room.state.full = True
    with pytest.raises(DiskFault):
        await switch.connect(instance)
    assert switch.networks.joined == [] and instance.record.endpoints == instance.draft.record.endpoints == {}
    assert switch.stored(instance) == set()


async def test_who_is_on_the_hosts_network_stays_there(switch: Switch, room: Room) -> None:
    instance = await room.add(container())
    await switch.connect(instance, "host")
    instance.believe(but(instance.record, state=but(instance.record.state, status="running")))
    with pytest.raises(InvalidParameter, match="cannot disconnect container from host network"):
        await switch.connections.disconnect("host", instance.id, force=True)


async def test_one_that_does_not_run_is_let_off_the_hosts_network(switch: Switch, room: Room) -> None:
    instance = await room.add(container())
    await switch.connect(instance, "host")
    await switch.connections.disconnect("host", instance.id, force=False)
    assert instance.record.endpoints == {}


async def test_one_that_is_not_on_it_cannot_leave(switch: Switch, room: Room) -> None:
    instance = await room.add(container())
    with pytest.raises(Forbidden, match="is not connected to the network back"):
        await switch.connections.disconnect("back", instance.id, force=False)


async def test_a_container_that_is_gone_has_no_endpoint(switch: Switch) -> None:
    with pytest.raises(NotFound, match="endpoint gone not found"):
        await switch.connections.disconnect("back", "gone", force=True)
    with pytest.raises(NotFound, match="No such container"):
        await switch.connections.disconnect("back", "gone", force=False)
    with pytest.raises(NotFound, match="network nowhere"):
        await switch.connections.disconnect("nowhere", "gone", force=True)


@pytest.mark.parametrize("by", ["name", "id"])
async def test_a_network_that_is_gone_can_be_left(switch: Switch, room: Room, by: str) -> None:
    instance = await room.add(container())
    await switch.connect(instance)
    gone = switch.networks.known.pop("back")
    await switch.connections.disconnect(getattr(gone, by), instance.id, force=False)
    assert switch.stored(instance) == set()


async def test_one_that_is_being_removed_is_left_alone(switch: Switch, room: Room) -> None:
    instance = await room.add(container())
    instance.believe(but(instance.record, state=replace(instance.record.state, status="removing")))
    with pytest.raises(Conflict, match="is marked for removal"):
        await switch.connect(instance)


# --- its files


def prepared(room: Room, record: Container, network: Connected) -> Path:
    room.host.paths.directory(record.id).mkdir(parents=True, exist_ok=True)
    write_files(record, room.host.paths, network)
    return room.host.paths.of(record.id).resolv_conf


def test_files_are_shared_with_whom_the_network_is(room: Room) -> None:
    record, other = container(), container()
    paths = write_files(record, room.host.paths, Connected(host_gateways=(), shared_with=other.id))
    its = room.host.paths.of(other.id)
    assert (paths.hosts, paths.hostname, paths.resolv_conf) == (its.hosts, its.hostname, its.resolv_conf)
    assert paths.rootfs == room.host.paths.of(record.id).rootfs
    assert not its.hosts.exists(), "they are written by the other's start"


def test_the_resolver_follows_the_networks(room: Room) -> None:
    record = container(host_config=HostConfig(dns=["10.9.9.9"]))
    path = prepared(room, record, Connected(host_gateways=()))
    assert path.read_text() == "nameserver 10.9.9.9\n"
    assert refresh_files(record, room.host.paths.of(record.id), Connected(host_gateways=(), resolver=True))
    assert path.read_text().startswith("nameserver 127.0.0.11\n")
    assert refresh_files(record, room.host.paths.of(record.id), Connected(host_gateways=()))
    assert path.read_text() == "nameserver 10.9.9.9\n"


def test_a_resolv_conf_of_the_containers_own_stays(room: Room) -> None:
    record = container(host_config=HostConfig(dns=["10.9.9.9"]))
    path = prepared(room, record, Connected(host_gateways=()))
    path.write_text("nameserver 1.2.3.4\n")
    assert refresh_files(record, room.host.paths.of(record.id), Connected(host_gateways=(), resolver=True))
    assert path.read_text() == "nameserver 1.2.3.4\n"
