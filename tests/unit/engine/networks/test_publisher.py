"""Ports are held and led to where the container is reached, moved when that changes, and all given back."""

import asyncio
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.engine.model.container import Draft, Endpoint
from husk.engine.model.container_config import HostConfig, PortBinding
from husk.engine.model.network import Network
from husk.engine.networks.live import LiveNetwork, Roster
from husk.engine.networks.publisher import Departures, NoConnectivity, Publisher
from husk.network.ports import PortRequest, PortTaken, PortTarget, PublishedPort
from tests.unit.engine.records import container


class FakePorts:
    """Every request gets port 8080, as long as nobody has it."""

    def __init__(self) -> None:
        self.held: list[PublishedPort] = []

    def taking(self, requests: Sequence[PortRequest], target: PortTarget, taken: list[PublishedPort]) -> Iterator[None]:
        if self.held:
            raise PortTaken("Bind for 0.0.0.0:8080 failed: port is already allocated")
        self.held = [PublishedPort("tcp", "0.0.0.0", 8080, target.at("0.0.0.0")[0], 80) for _ in requests]
        taken += self.held
        yield

    def hold_again(self, ports: Sequence[PublishedPort]) -> None:
        self.held = list(ports)

    def give_back(self, ports: Sequence[PublishedPort]) -> None:
        self.held = [port for port in self.held if port not in ports]

    def retarget(self, ports: Sequence[PublishedPort]) -> None:
        self.held = list(ports)


class World:
    def __init__(self) -> None:
        roster = Roster()
        for name, reached in (("home", True), ("lan", True), ("macvlan", False)):
            record = Network(id=name, name=name, driver="bridge", created="")
            roster.by_name[name] = LiveNetwork(record, cast(Any, SimpleNamespace(reaches_host=reached)))
        self.rules: set[PublishedPort] = set()
        self.ports = FakePorts()
        firewall = SimpleNamespace(publish=self.rules.update, withdraw=self.rules.difference_update)
        self.publisher = Publisher(roster, cast(Any, firewall), cast(Any, self.ports), Departures())


def box(*networks: str, name: str = "box", ports: Sequence[int] = (8080,)) -> Draft:
    names = ("80/tcp",) if len(ports) == 1 else tuple(f"{port}/tcp" for port in ports)
    bindings: dict[str, list[PortBinding] | None] = {
        name: [PortBinding(host_port=str(port))] for name, port in zip(names, ports, strict=True)
    }
    draft = Draft(container(name, host_config=HostConfig(network_mode=networks[0], port_bindings=bindings)))
    draft.change(endpoints={network: endpoint(network, number) for number, network in enumerate(networks)})
    return draft


def endpoint(network: str, number: int = 0) -> Endpoint:
    return Endpoint(
        network_name=network, network_id="", ip_address=f"10.{number}.0.2", gateway=f"10.{number}.0.1", endpoint_id="e"
    )


async def test_a_port_is_held_and_led_to_the_container_until_it_is_withdrawn() -> None:
    world, draft = World(), box("home")
    await world.publisher.publish(draft)
    assert [port.container_ip for port in world.ports.held] == ["10.0.0.2"]
    assert world.rules == set(draft.record.published) == set(world.ports.held)
    await world.publisher.withdraw(draft)
    await world.publisher.withdraw(draft)
    assert (draft.record.published, world.rules, world.ports.held) == ([], set(), [])


async def test_a_container_that_is_not_reached_from_the_host_publishes_nothing() -> None:
    world, draft = World(), box("macvlan")
    await world.publisher.publish(draft)
    assert (draft.record.published, world.ports.held) == ([], [])


async def test_a_taken_port_is_told_with_the_endpoint() -> None:
    world = World()
    await world.publisher.publish(box("home"))
    with pytest.raises(NoConnectivity, match=r"on endpoint other \(e\): Bind for 0.0.0.0:8080 failed"):
        await world.publisher.publish(box("home", name="other"))


async def test_a_change_of_networks_moves_the_port() -> None:
    world, draft = World(), box("home", "lan")
    await world.publisher.publish(draft)
    draft.take("home")
    await world.publisher.move(draft)
    assert [port.container_ip for port in draft.record.published] == ["10.1.0.2"]
    assert world.rules == set(draft.record.published) == set(world.ports.held)


async def test_a_running_container_of_an_earlier_daemon_keeps_its_ports() -> None:
    before, world, draft = World(), World(), box("home")
    await before.publisher.publish(draft)
    assert world.publisher.adopt(draft) == draft.record.published == world.ports.held


async def test_thousands_of_ports_leave_others_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def taking(requests: Sequence[PortRequest], target: PortTarget, taken: list[PublishedPort]) -> Iterator[None]:
        for one in requests:
            made = PublishedPort("tcp", "0.0.0.0", one.first, "10.0.0.2", one.container_port)
            world.ports.held.append(made)
            taken.append(made)
            if one.first % 100 == 0:
                yield

    monkeypatch.setattr(world.ports, "taking", taking)
    draft = box("home", ports=range(1, 1001))
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.get_running_loop().create_task(others())
    await world.publisher.publish(draft)
    assert len(draft.record.published) == len(world.ports.held) == 1000 and turns >= 10
    before = turns
    await world.publisher.withdraw(draft)
    assert not world.ports.held and turns - before >= 9
    other.cancel()


async def test_of_many_ports_none_is_held_when_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def taking(requests: Sequence[PortRequest], target: PortTarget, taken: list[PublishedPort]) -> Iterator[None]:
        for one in requests:
            if one.first == 1000:
                raise PortTaken("Bind for 0.0.0.0:1000 failed: port is already allocated")
            made = PublishedPort("tcp", "0.0.0.0", one.first, "10.0.0.2", one.container_port)
            world.ports.held.append(made)
            taken.append(made)
            yield

    monkeypatch.setattr(world.ports, "taking", taking)
    draft = box("home", ports=range(1, 1001))
    with pytest.raises(NoConnectivity):
        await world.publisher.publish(draft)
    assert not world.ports.held and not draft.record.published
