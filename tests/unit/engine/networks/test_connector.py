"""The connector on drivers that are doubles: what a container takes from its networks it gives back, whatever fails."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import msgspec
import pytest
from msgspec.structs import replace

from husk.engine.model.container import Container, Draft, Endpoint
from husk.engine.model.container_config import ContainerConfig, HostConfig, PortBinding
from husk.engine.model.events import Event, Events
from husk.engine.model.network import Network
from husk.engine.networks.connector import Connector, Sandboxes
from husk.engine.networks.live import LiveNetwork, Roster
from husk.engine.networks.publisher import NoConnectivity
from husk.engine.networks.sharing import Occupant
from husk.errors import Conflict, Forbidden, InvalidParameter, NotFound, SystemFault, Unavailable
from husk.network.endpoint import EndpointOptions
from husk.network.ports import PortRequest, PortTaken, PortTarget, PublishedPort
from husk.network.provision import BridgeFull
from husk.network.sandbox import NO_ROUTE, DefaultRoute, Lease
from tests.support.but import but
from tests.support.waiting import until_async
from tests.unit.engine.records import container


class FakeDriver:
    """A network whose endpoints are numbers."""

    def __init__(self, name: str, number: int) -> None:
        self.name, self.number = name, number
        self.gateway, self.gateway6 = f"10.{number}.0.1", ""
        self.reaches_host = True
        self.given: list[Lease] = []
        self.back: list[Lease] = []
        self.refusals: list[Exception] = []

    async def acquire(self, options: EndpointOptions) -> Lease:
        return await self.attach(f"/netns/{self.name}", options)

    async def attach(self, path: str, options: EndpointOptions) -> Lease:
        if self.refusals:
            raise self.refusals.pop()
        host = len(self.given) + 2
        address = options.address or f"10.{self.number}.0.{host}"
        made = Lease(path, f"veth{self.number}{host}", address, 24, self.gateway, options.mac or "02:42", self.name)
        self.given.append(made)
        return made

    def release(self, given: Lease) -> None:
        self.back.append(given)

    async def detach(self, given: Lease) -> None:
        self.back.append(given)


class FakePorts:
    def __init__(self) -> None:
        self.held: list[PublishedPort] = []
        self.taken: set[int] = set()

    def taking(self, requests: Sequence[PortRequest], target: PortTarget, taken: list[PublishedPort]) -> Iterator[None]:
        made = [PublishedPort("tcp", "0.0.0.0", 8080, target.at("0.0.0.0")[0], 80) for _ in requests]
        if any(port.host_port in self.taken for port in made):
            raise PortTaken("Bind for 0.0.0.0:8080 failed: port is already allocated")
        self.held += made
        taken += made
        yield

    def hold_again(self, ports: Sequence[PublishedPort]) -> None:
        self.held += ports

    def give_back(self, ports: Sequence[PublishedPort]) -> None:
        for port in ports:
            self.held.remove(port)

    def retarget(self, ports: Sequence[PublishedPort]) -> None:
        self.held = list(ports)


class FakeFirewall:
    """The ports that lead somewhere; `withdrawing` happens when some are to lead nowhere any more."""

    def __init__(self) -> None:
        self.ports: set[PublishedPort] = set()
        self.fails: SystemFault | None = None
        self.withdrawing: Callable[[], None] = lambda: None

    def publish(self, ports: Sequence[PublishedPort]) -> None:
        self.ports.update(ports)

    def withdraw(self, ports: Sequence[PublishedPort]) -> None:
        self.withdrawing()
        self.ports.difference_update(ports)
        if self.fails is not None:
            raise self.fails


class House:
    """Two networks that somebody made, the default bridge, and a connector for all."""

    def __init__(self) -> None:
        self.drivers = {name: FakeDriver(name, number) for number, name in enumerate(("bridge", "home", "lan"))}
        self.roster = Roster()
        for name, driver in self.drivers.items():
            record = Network(id=name * 8, name=name, driver="bridge", created="", subnet=f"10.{driver.number}.0.0/24")
            self.roster.by_name[name] = LiveNetwork(record, cast(Any, driver))
        self.firewall = FakeFirewall()
        # The default routes that were set in sandboxes, which exist nowhere, and those that cannot be set.
        self.routes: list[tuple[str, DefaultRoute, DefaultRoute]] = []
        self.no_route: SystemFault | None = None
        self.ports = FakePorts()
        self.names = SimpleNamespace(serve=AsyncMock(), stop=Mock())
        self.told: list[tuple[str, str]] = []
        events = Events()
        events.observe(self._note)
        self.containers: dict[str, Draft] = {}
        self.recorded: dict[str, Container] = {}
        self.connector = Connector(
            self.roster,
            cast(Any, self.firewall),
            cast(Any, self.ports),
            lambda: cast(Any, self.names),
            events,
            self.find,
            Path("/netns"),
            sandboxes=Sandboxes(
                build_empty=lambda directory: f"{directory}/empty",
                set_default_route=self._set_default_route,
                abandon=lambda path: self.routes.append((path, NO_ROUTE, NO_ROUTE)),
            ),
        )

    def _set_default_route(self, path: str, route: DefaultRoute, route6: DefaultRoute) -> None:
        if self.no_route is not None:
            raise self.no_route
        self.routes.append((path, route, route6))

    def _note(self, event: Event) -> None:
        self.told.append((event.action, event.attributes["name"]))

    def find(self, reference: str) -> Container:
        try:
            return self.recorded.get(reference) or self.containers[reference].record
        except KeyError:
            raise NotFound(f"No such container: {reference}") from None

    def container(
        self, *networks: str, name: str = "box", mode: str = "", published: bool = False, **host: Any
    ) -> Draft:
        bindings: dict[str, list[PortBinding] | None] | None = (
            {"80/tcp": [PortBinding(host_port="8080")]} if published else None
        )
        record = container(
            name,
            config=ContainerConfig(hostname=f"{name}-host"),
            host_config=HostConfig(network_mode=mode or next(iter(networks), "none"), port_bindings=bindings, **host),
        )
        draft = Draft(record)
        draft.change(endpoints={network: Endpoint(network_name=network, network_id="") for network in networks})
        self.containers[name] = self.containers[record.id] = draft
        return draft

    def nothing_is_left_of(self, draft: Draft) -> None:
        record = draft.record
        assert (record.sandbox_path, record.published) == ("", [])
        assert all(not endpoint.ip_address and not endpoint.endpoint_id for endpoint in record.endpoints.values())
        assert all(record.id not in live.members for live in self.roster.by_name.values())
        assert not self.firewall.ports and not self.ports.held
        for driver in self.drivers.values():
            assert {lease.host_interface for lease in driver.given} == {lease.host_interface for lease in driver.back}


@pytest.fixture
def house() -> House:
    return House()


async def test_the_network_of_its_mode_gives_the_sandbox_and_the_others_join_it(
    house: House,
) -> None:
    draft = house.container("home", "lan", mode="lan")
    connected = await house.connector.connect(draft)
    assert draft.record.sandbox_path == "/netns/lan"
    assert [lease.sandbox_path for lease in house.drivers["home"].given] == ["/netns/lan"]
    assert connected.resolver and connected.host_gateways == ("10.0.0.1",)
    assert house.routes == [("/netns/lan", DefaultRoute("10.1.0.1", "home"), NO_ROUTE)]
    assert house.told == [("connect", "lan"), ("connect", "home")]
    await house.connector.disconnect(draft)
    house.nothing_is_left_of(draft)
    assert sorted(house.told[2:]) == [("disconnect", "home"), ("disconnect", "lan")]


async def test_giving_back_twice_is_giving_back_once(house: House) -> None:
    draft = house.container("home", published=True)
    await house.connector.connect(draft)
    assert house.firewall and draft.record.published[0].container_ip == draft.record.endpoints["home"].ip_address
    await house.connector.disconnect(draft)
    await house.connector.disconnect(draft)
    house.nothing_is_left_of(draft)


async def test_all_is_given_back_though_the_firewall_cannot_be_written(house: House) -> None:
    draft = house.container("home", "lan", published=True)
    await house.connector.connect(draft)
    house.firewall.fails = SystemFault("nftables: Cannot allocate memory")
    with pytest.raises(SystemFault):
        await house.connector.disconnect(draft)
    house.nothing_is_left_of(draft)


async def test_a_second_network_that_refuses_leaves_nothing_that_is_not_in_the_record(house: House) -> None:
    draft = house.container("home", "lan", published=True)
    house.drivers["lan"].refusals = [Forbidden("Address already in use")]
    with pytest.raises(Forbidden, match=r"^failed to set up container networking: Address already in use$"):
        await house.connector.connect(draft)
    assert draft.record.endpoints["home"].ip_address
    await house.connector.disconnect(draft)
    house.nothing_is_left_of(draft)


async def test_a_full_network_is_told_by_its_name_with_what_to_do(house: House) -> None:
    house.drivers["home"].refusals = [BridgeFull("bridge br-home has 1023 ports already")]
    with pytest.raises(Unavailable) as told:
        await house.connector.connect(house.container("home"))
    assert told.value.message == (
        "failed to set up container networking: network home is full: a Linux bridge takes at most 1,023 ports, "
        "one per container. Put the container on another network (docker network create)"
    )


async def test_a_port_that_another_has_is_told_as_dockerd_tells_it(house: House) -> None:
    draft = house.container("home", published=True)
    house.ports.taken = {8080}
    with pytest.raises(NoConnectivity, match=r"external connectivity on endpoint box .*:8080 failed"):
        await house.connector.connect(draft)
    await house.connector.disconnect(draft)
    house.nothing_is_left_of(draft)


async def test_an_address_on_its_way_back_is_waited_for(house: House) -> None:
    """The end of a container is known before its address is free again."""
    leaving = house.container("home", name="old", published=True)
    coming = house.container("home", name="new")
    await house.connector.connect(leaving)
    driver, connector = house.drivers["home"], house.connector
    loop, may_go, started = asyncio.get_running_loop(), threading.Event(), list[Any]()

    def begin() -> None:
        driver.refusals = [Forbidden("Address already in use")]
        started.append(loop.create_task(connector.connect(coming)))

    def withdrawing() -> None:
        loop.call_soon_threadsafe(begin)
        assert may_go.wait(10)

    house.firewall.withdrawing = withdrawing
    disconnecting = loop.create_task(connector.disconnect(leaving))
    await until_async(lambda: started and not driver.refusals, "the other one was refused")
    may_go.set()
    await disconnecting
    await started[0]
    assert coming.record.endpoints["home"].ip_address


async def test_a_network_that_is_gone(house: House) -> None:
    draft = house.container("gone")
    with pytest.raises(NotFound, match="network gone not found"):
        await house.connector.connect(draft)


async def test_without_a_default_network_it_has_itself_alone(house: House) -> None:
    del house.roster.by_name["bridge"]
    draft = house.container("bridge")
    connected = await house.connector.connect(draft)
    assert (draft.record.sandbox_path, connected.host_gateways, connected.resolver) == ("/netns/empty", (), False)
    await house.connector.disconnect(draft)
    assert draft.record.sandbox_path == ""


async def test_a_container_is_a_member_until_its_endpoint_is_taken(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network that hosts share goes from this one with its last member: its driver is needed until then."""
    draft = house.container("home", "lan", mode="lan")
    await house.connector.connect(draft)
    driver, live = house.drivers["home"], house.roster.by_name["home"]

    async def detach(given: Lease) -> None:
        assert draft.id in live.members
        driver.back.append(given)

    monkeypatch.setattr(driver, "detach", detach)
    await house.connector.leave(draft, draft.take("home"))
    assert driver.back and draft.id not in live.members


async def test_join_moves_ports_and_leave_moves_them_back(house: House) -> None:
    draft = house.container("lan", published=True)
    await house.connector.connect(draft)
    on_lan = draft.record.published[0].container_ip
    await house.connector.join(draft, Endpoint(network_name="home", network_id=""))
    added = draft.record.endpoints["home"]
    # The network whose name comes first leads outside.
    assert draft.record.published[0].container_ip == added.ip_address != on_lan
    assert house.firewall.ports == set(draft.record.published)
    await house.connector.leave(draft, draft.take("home"))
    assert draft.record.published[0].container_ip == on_lan
    assert house.drivers["home"].back == house.drivers["home"].given


async def test_a_join_that_fails_takes_the_endpoint_out_of_the_record(house: House) -> None:
    draft = house.container("lan")
    await house.connector.connect(draft)
    house.drivers["home"].refusals = [SystemFault("no")]
    with pytest.raises(SystemFault):
        await house.connector.join(draft, Endpoint(network_name="home", network_id=""))
    assert list(draft.record.endpoints) == ["lan"] and draft.id not in house.roster.by_name["home"].members


async def test_a_container_without_a_sandbox_cannot_join(house: House) -> None:
    draft = house.container(mode="none")
    with pytest.raises(Conflict, match="runs without a network of its own"):
        await house.connector.join(draft, Endpoint(network_name="home", network_id=""))


async def test_sharing_the_network_of_another(house: House) -> None:
    owner = house.container("home", name="owner")
    owner.change(state=replace(owner.record.state, status="running"))
    await house.connector.connect(owner)
    guest = house.container(name="guest", mode="container:owner")
    connected = await house.connector.connect(guest)
    assert (guest.record.sandbox_path, connected.shared_with) == ("/netns/home", owner.id)
    assert guest.record.config.hostname == "owner-host"
    await house.connector.disconnect(guest)
    assert owner.record.endpoints["home"].ip_address and not house.drivers["home"].back


@pytest.mark.parametrize(
    ("status", "mode", "error", "message"),
    [
        ("exited", "container:owner", Conflict, "non running container: container owner is exited"),
        ("restarting", "container:owner", Conflict, "of a restarting container"),
        ("running", "container:nobody", InvalidParameter, "No such container: nobody"),
        ("running", "container:guest", InvalidParameter, "cannot join own network"),
    ],
)
async def test_what_cannot_be_shared(
    house: House, status: Any, mode: str, error: type[Exception], message: str
) -> None:
    there = house.container("home", name="owner")
    there.change(state=replace(there.record.state, status=status))
    guest = house.container(name="guest", mode=mode)
    with pytest.raises(error, match=message):
        await house.connector.connect(guest)


async def test_links_on_the_default_bridge(house: House) -> None:
    database = house.container("bridge", name="db")
    linker = house.container("bridge", name="web", links=["db:data"])
    with pytest.raises(Conflict, match="Cannot link to a non running container: /db AS /web/data"):
        await house.connector.connect(linker)
    database.change(state=replace(database.record.state, status="running"))
    await house.connector.connect(database)
    connected = await house.connector.connect(linker)
    assert [link.alias for link in connected.links] == ["data"]
    # When the other starts anew, the files of those that see it are to be written again: with the address that it has
    # now, which is not recorded before it runs.
    await house.connector.disconnect(database)
    house.recorded["db"] = database.record
    again = await house.connector.connect(database)
    assert [other.name for other, _ in again.linked_by] == ["web"]
    [(_, seen)] = again.linked_by
    assert [link.address for link in seen.links] == [database.record.endpoints["bridge"].ip_address] != [""]


async def test_a_running_container_of_an_earlier_daemon(house: House) -> None:
    draft = house.container("home", published=True)
    await house.connector.connect(draft)
    later = House()
    later.containers = house.containers
    assert later.connector.adopt(draft) == draft.record.published == later.ports.held
    assert draft.id in later.roster.by_name["home"].members
    await later.connector.resume(draft)
    later.names.serve.assert_awaited_once_with(draft)


async def test_a_way_out_that_the_container_has_barred_is_its_own_affair(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    draft = house.container("home", "lan")
    await house.connector.connect(draft)

    house.no_route = SystemFault("no way to the gateway")
    await house.connector.leave(draft, draft.take("lan"))
    assert "no way to the gateway" in caplog.text


async def test_an_address_on_a_network_that_hosts_share_is_claimed_first(house: House) -> None:
    lan = house.roster.by_name["lan"]
    lan.record = but(lan.record, vni=4097)
    draft = house.container("lan")
    with pytest.raises(Unavailable, match="the swarm's"):
        await house.connector.connect(draft)
    await house.connector.disconnect(draft)
    asked = []

    @asynccontextmanager
    async def claimed(network: Network, options: EndpointOptions, who: Occupant) -> AsyncIterator[EndpointOptions]:
        asked.append((network.name, who.container))
        yield msgspec.structs.replace(options, address="10.2.0.77")

    house.connector.sharing = cast(Any, SimpleNamespace(claimed=claimed))
    await house.connector.connect(draft)
    assert asked == [("lan", draft.id)] and draft.record.endpoints["lan"].ip_address == "10.2.0.77"
