"""The networks that there are, on doubles of bridge and firewall: made, found, removed, and restored after a daemon."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import msgspec
import pytest

from husk.config import AddressPool, Config
from husk.engine.model.container import Container, Draft, Endpoint
from husk.engine.model.container_config import EndpointRequest
from husk.engine.model.events import Event, Events
from husk.engine.model.filters import Filters
from husk.engine.model.network import ConfigSource, IpamConfig, IpamRequest, Network, NetworkRequest
from husk.engine.networks.live import KIND
from husk.engine.networks.service import NetworkDrivers, Networks
from husk.errors import Conflict, DiskFault, Forbidden, HuskError, NotFound, SystemFault
from husk.network.drop_policies import DropPolicy
from husk.network.settings import BridgeSettings, Opening
from husk.storage.state.store import Change
from tests.support.but import but
from tests.support.full_store import FullStore
from tests.unit.engine.records import container


class FakeBridge:
    def __init__(self, host: "FakeHost", settings: BridgeSettings, subnet: str | None) -> None:
        self._host = host
        self.settings = settings
        self.interface = settings.interface
        number = len(host.bridges)
        self.subnet, self.gateway = subnet or f"10.{number}.0.0/24", f"10.{number}.0.1"
        self.subnet6, self.gateway6 = "", ""
        self.taken: list[str] = []
        self.full: set[int] = set()
        self.warm = False

    def warm_up(self) -> None:
        self.warm = True

    @property
    def usage(self) -> dict[str, tuple[int, int]]:
        return {self.subnet: (len(self.taken), 250 - len(self.taken))}

    def take_address(self, version: int) -> str:
        if version in self.full:
            raise SystemFault("no address is left")
        if version == 6:
            return ""
        self.taken.append(f"10.0.0.{100 + len(self.taken)}")
        return self.taken[-1]

    def free_address(self, address: str) -> None:
        self.taken.remove(address)

    async def close(self, remove: bool) -> None:
        self._host.closed[self.interface] = remove
        if remove:
            del self._host.bridges[self.interface]


class FakeHost:
    """The networks of a daemon on this host; `fails` is what the next bridge says."""

    def __init__(self) -> None:
        self.bridges: dict[str, FakeBridge] = {}
        self.closed: dict[str, bool] = {}
        self.fails: HuskError | None = None
        self.openings: Sequence[Opening] = ()
        self.swept: list[tuple[object, ...]] = []
        self.applied = 0
        self.removed: list[str] = []
        # What others' rules drop.
        self.policies: list[DropPolicy] = []

    async def open(self, settings: BridgeSettings, subnet: str | None, *_: object) -> FakeBridge:
        if self.fails is not None:
            raise self.fails
        self.bridges[settings.interface] = FakeBridge(self, settings, subnet)
        return self.bridges[settings.interface]

    async def open_all(self, openings: Sequence[Opening], *_: object) -> list[FakeBridge]:
        self.openings = openings
        return [await self.open(opening.settings, opening.subnet) for opening in openings]

    @property
    def drivers(self) -> NetworkDrivers:
        return NetworkDrivers(
            bridges=cast(Any, self),
            firewall=self.firewall,
            guardian=lambda guarded: cast(Any, SimpleNamespace(open=lambda: None, close=AsyncMock())),
            policies=lambda: cast(Any, SimpleNamespace(look=lambda interfaces: self.policies)),
            sweep=lambda *given: self.swept.append(given),
        )

    def firewall(self, table: str) -> Any:
        def apply() -> None:
            self.applied += 1

        nothing: Callable[[object], None] = lambda ports: None  # noqa: E731
        return SimpleNamespace(
            table=table, publish=nothing, withdraw=nothing, apply=apply, remove=lambda: self.removed.append(table)
        )


@pytest.fixture
def host() -> FakeHost:
    return FakeHost()


class House:
    def __init__(self, directory: Path, state: FullStore, host: FakeHost) -> None:
        self.config = Config(data_root=directory / "data", exec_root=directory / "run")
        self.state, self.host = state, host
        self.happened: list[Event] = []
        self.events = Events()
        self.events.observe(self.happened.append)
        self.containers: list[Container] = []

    async def open(self, **settings: object) -> Networks:
        self.config = msgspec.structs.replace(self.config, **settings)
        return await Networks.open(
            self.config, self.state, self.events, map(Draft, self.containers), self.find, self.host.drivers
        )

    def find(self, reference: str) -> Container:
        raise NotFound(f"No such container: {reference}")

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(event.action, event.attributes.get("name", "")) for event in self.happened]


@pytest.fixture
def house(tmp_path: Path, state: FullStore, host: FakeHost) -> House:
    return House(tmp_path, state, host)


@pytest.fixture
async def networks(house: House) -> Networks:
    return await house.open()


def member(networks: Networks, name: str, on: str) -> Draft:
    """A container that runs on a network."""
    live = networks._roster.by_name[on]
    draft = live.members[name] = Draft(container(name, status="running"))
    draft.put(Endpoint(network_name=on, network_id=live.record.id, endpoint_id="e" * 64))
    return draft


# --- made and removed


async def test_three_networks_are_there_from_the_beginning(networks: Networks, house: House, host: FakeHost) -> None:
    assert [(one.name, one.driver) for one in networks.listing()] == [
        ("bridge", "bridge"), ("host", "host"), ("none", "null"),
    ]  # fmt: skip
    assert list(host.bridges) == [house.config.bridge_name] and host.applied == 1
    assert {one.name for one in house.state.records("network", Network).values()} == {"bridge", "host", "none"}


async def test_what_can_wait_begins_when_the_engine_is_there(
    networks: Networks, host: FakeHost, caplog: pytest.LogCaptureFixture
) -> None:
    [bridge] = host.bridges.values()
    assert not bridge.warm
    host.policies = [DropPolicy("ip", "filter", "FORWARD")]
    networks.restored()
    assert not bridge.warm and "drops forwarded packets" not in caplog.text
    await networks.close(remove=False)
    assert bridge.warm and "chain FORWARD of the nftables table ip filter drops forwarded packets" in caplog.text


async def test_a_network_is_recorded_with_the_subnet_that_it_got(networks: Networks, house: House) -> None:
    made = await networks.create(NetworkRequest(name="lan"))
    assert (made.subnet, made.gateway) == ("10.1.0.0/24", "10.1.0.1")
    assert house.state.records("network", Network)[made.id] == made
    assert networks.find("lan") is networks.find(made.id) is networks.find(made.id[:10]) is made
    assert house.told[-1] == ("create", "lan")


async def test_subnets_come_from_the_swarms_pools_where_it_says_so(networks: Networks, host: FakeHost) -> None:
    await networks.create(NetworkRequest(name="usual"))
    await networks.create(NetworkRequest(name="swarms"), (AddressPool("10.99.0.0/16", 24),))
    usual, swarms = list(host.bridges.values())[1:]
    assert swarms.settings.pools == (AddressPool("10.99.0.0/16", 24),) != usual.settings.pools


@pytest.mark.parametrize(
    "request_",
    [
        NetworkRequest(name=""),
        NetworkRequest(name="bridge"),
        NetworkRequest(name="lan", driver="nonsense"),
        NetworkRequest(name="lan", ipam=IpamRequest(config=[IpamConfig(subnet="nonsense")])),
    ],
)
async def test_what_is_refused_leaves_nothing(networks: Networks, host: FakeHost, request_: NetworkRequest) -> None:
    with pytest.raises(HuskError):
        await networks.create(request_)
    assert len(host.bridges) == 1 and len(networks.listing()) == 3


async def test_a_bridge_that_cannot_be_made_or_recorded_leaves_nothing(
    networks: Networks, house: House, host: FakeHost
) -> None:
    host.fails = SystemFault("no subnet is left")
    with pytest.raises(SystemFault):
        await networks.create(NetworkRequest(name="lan"))
    host.fails = None
    house.state.full = True
    with pytest.raises(DiskFault, match="no space left"):
        await networks.create(NetworkRequest(name="lan"))
    assert list(host.bridges) == [house.config.bridge_name]
    assert len(networks.listing()) == 3 and house.told == []


async def test_a_network_that_is_not_known_is_asked_for(networks: Networks) -> None:
    asked: list[str] = []

    async def seek(reference: str) -> None:
        asked.append(reference)

    await networks.seek("lan")
    networks.seeker = seek
    made = await networks.create(NetworkRequest(name="lan"))
    for reference in ("lan", made.id[:12], "bridge", "host", "default", "", "container:x", "far"):
        await networks.seek(reference)
    assert asked == ["far"]


async def test_a_removed_network_takes_its_bridge_with_it(networks: Networks, house: House, host: FakeHost) -> None:
    made = await networks.create(NetworkRequest(name="lan"))
    await networks.remove(made.id[:12])
    assert len(host.bridges) == 1 and house.told[-1] == ("destroy", "lan")
    assert made.id not in house.state.records("network", Network)
    with pytest.raises(NotFound, match="network lan not found"):
        networks.find("lan")


async def test_who_keeps_a_network_from_going(networks: Networks, host: FakeHost) -> None:
    await networks.create(NetworkRequest(name="lan"))
    with pytest.raises(Forbidden, match="bridge is a pre-defined network and cannot be removed"):
        await networks.remove("bridge")
    with pytest.raises(Conflict, match="network lan is in use"):
        await networks.remove("lan", lambda network: True)
    member(networks, "box", "lan")
    with pytest.raises(Forbidden, match=r'network lan has active endpoints \(name:"box" id:"eeeeeeeeeeee"\)'):
        await networks.remove("lan")
    assert networks.find("lan") and len(host.bridges) == 2


async def test_a_network_that_cannot_be_forgotten_is_still_there(
    networks: Networks, house: House, host: FakeHost
) -> None:
    made = await networks.create(NetworkRequest(name="lan"))
    house.state.full, house.state.refuses = True, lambda change: True
    with pytest.raises(DiskFault):
        await networks.remove("lan")
    assert networks.find("lan") is made and made.bridge_name in host.bridges


async def test_settings_for_others_stay_while_a_network_has_them(networks: Networks, host: FakeHost) -> None:
    await networks.create(NetworkRequest(name="template", config_only=True))
    assert len(host.bridges) == 1
    source = NetworkRequest(name="lan", config_from=ConfigSource(network="template"))
    await networks.create(source)
    with pytest.raises(Forbidden, match='configuration network "template" is in use'):
        await networks.remove("template")


async def test_prune_takes_what_nobody_needs(
    networks: Networks, house: House, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("free", "busy", "needed", "kept"):
        await networks.create(NetworkRequest(name=name, labels={"keep": "1"} if name == "kept" else {}))
    await networks.create(NetworkRequest(name="template", config_only=True))
    member(networks, "box", "busy")
    removed = await networks.prune(Filters({"label!": ["keep"]}), lambda network: network.name == "needed")
    assert removed == ["free"] and house.told[-1] == ("prune", "")
    assert await networks.prune(Filters({"until": ["1h"]})) == []
    left = {network.name for network in networks.listing()}
    assert left == {"bridge", "host", "none", "busy", "needed", "kept", "template"}


# --- looking


async def test_members_and_addresses(networks: Networks) -> None:
    await networks.create(NetworkRequest(name="lan"))
    member(networks, "box", "lan")
    member(networks, "step", "lan").change(name="")
    lan = networks.find("lan")
    assert [record.name for record in networks.members(lan)] == ["box"], "a build's step is not shown"
    await networks.service_addresses.take(lan)
    assert networks.addresses(lan) == {"10.1.0.0/24": (1 + 2, 249)}
    assert networks.addresses(networks.find("host")) == {}


# --- a new container's places


async def test_a_new_container_has_places_on_the_networks_that_are_there(networks: Networks) -> None:
    lan = await networks.create(NetworkRequest(name="lan"))
    assert list(networks.endpoints("default", {})) == ["bridge"]
    assert networks.endpoints("lan", {}, ["db:database"])["lan"].request.links == ["db:database"]
    assert networks.new_endpoint(lan.id[:12], container("box"), EndpointRequest()).network_id == lan.id


# --- the life of the daemon


async def test_the_next_daemon_has_the_same_networks(networks: Networks, house: House, host: FakeHost) -> None:
    lan = await networks.create(NetworkRequest(name="lan"))
    bridge = networks.find("bridge")
    await networks.close(remove=False)
    assert host.closed == {house.config.bridge_name: False, lan.bridge_name: True}
    again = await house.open()
    assert again.find("lan").subnet == lan.subnet and again.find("bridge").id == bridge.id
    assert {opening.settings.interface for opening in host.openings} == {house.config.bridge_name, lan.bridge_name}


async def test_only_what_runs_holds_its_place_over_a_restart(networks: Networks, house: House, host: FakeHost) -> None:
    running, ended = container("running", status="running"), container("ended", status="exited")
    for record in (running, ended):
        record = but(record, sandbox_path=f"/netns/{record.name}")
    house.containers = [running, ended]
    await house.open()
    assert host.swept[-1][3] == [running]


async def test_a_network_in_use_keeps_its_bridge_when_the_daemon_goes(networks: Networks, host: FakeHost) -> None:
    lan = await networks.create(NetworkRequest(name="lan"))
    member(networks, "box", "lan")
    await networks.close(remove=False)
    assert host.closed[lan.bridge_name] is False and host.removed == []


async def test_a_daemon_that_leaves_for_good_leaves_nothing(networks: Networks, house: House, host: FakeHost) -> None:
    await networks.create(NetworkRequest(name="lan"))
    await networks.close(remove=True)
    assert host.bridges == {} and host.removed == [house.config.nft_table]


async def test_ports_that_lead_to_other_hosts_do_so_without_the_daemon(
    networks: Networks, house: House, host: FakeHost
) -> None:
    lan = await networks.create(NetworkRequest(name="lan"))
    ingress = but(await networks.create(NetworkRequest(name="in")), ingress=True)
    await house.state.commit(Change(KIND, ingress.id, msgspec.json.encode(ingress)))
    networks = await house.open()
    networks.balancing.leads_elsewhere = True
    await networks.close(remove=True)
    kept = {name for name, removed in host.closed.items() if not removed}
    assert kept == {house.config.bridge_name, ingress.bridge_name} and host.closed[lan.bridge_name] is True
    assert host.removed == []


async def test_a_daemon_may_be_without_a_bridge(house: House, host: FakeHost) -> None:
    networks = await house.open(bridge="none")
    assert [one.name for one in networks.listing()] == ["host", "none"] and host.bridges == {}
    assert networks.endpoints("default", {})["bridge"].network_id == ""


async def test_what_the_store_does_not_take_is_not_there(networks: Networks, house: House, host: FakeHost) -> None:
    before, bridges = networks.listing(), set(host.bridges)
    house.state.full = True
    with pytest.raises(DiskFault):
        await networks.create(NetworkRequest(name="lan"))
    assert networks.listing() == before and set(host.bridges) == bridges and ("create", "lan") not in house.told
    with pytest.raises(NotFound):
        networks.find("lan")
