"""Networks of the swarm that are on this host. Bridges are doubles."""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from ipaddress import IPv4Network
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.aio.tasks import Tasks
from husk.config import AddressPool
from husk.engine.model.network import IpamConfig, IpamRequest, Network, NetworkRequest
from husk.engine.networks.live import KIND, LiveNetwork, Roster
from husk.engine.networks.presence import Presence
from husk.errors import Conflict, Unavailable
from husk.network import host
from husk.network.bridge import BridgeDriver
from husk.network.settings import BridgeSettings
from husk.storage.state.store import StateStore
from tests.support.waiting import until_async

POOLS = (AddressPool("10.66.0.0/16", 24),)


class Room:
    def __init__(self, state: StateStore, directory: Path) -> None:
        self.state = state
        self.roster = Roster()
        self.done: list[str] = []
        self.insecure = False
        self.coming: list[str] = []
        self.fails: OSError | None = None
        self.may_go = asyncio.Event()
        self.may_go.set()
        self.presence = Presence(
            roster=self.roster,
            state=state,
            firewall=cast(Any, None),
            overlays=cast(Any, SimpleNamespace(remove=self._remove, secure=self._secure, came=self._came)),
            base=BridgeSettings("", "test", directory, pool6="fd00:66::/48"),
            changing=asyncio.Lock(),
            mended=lambda: None,
        )

    async def _secure(self, network: Network) -> None:
        self.coming.append(network.name)
        if self.insecure:
            raise Unavailable("install it")
        self.done.append("tunnel")

    def _came(self, network: Network) -> None:
        if network.name in self.coming:
            self.coming.remove(network.name)

    async def _remove(self, network: Network) -> None:
        await self.may_go.wait()
        if self.fails is not None:
            raise self.fails
        self.done.append(f"way of {network.name}")

    async def open(self, settings: BridgeSettings, subnet: str, *more: Any) -> Any:
        self.done.append(f"open {subnet}" + " while it comes" * bool(self.coming))
        assert settings.warm == 0

        async def close(remove: bool) -> None:
            self.done.append(f"close {remove}")

        return SimpleNamespace(interface=settings.interface, close=close)

    async def plan(self, name: str, known: Sequence[Network] = (), used: Sequence[str] = (), **fields: Any) -> Network:
        request = NetworkRequest(name=name, driver="overlay", **fields)
        return await self.presence.plan(request, f"id-of-{name}", {}, POOLS, known, used)


@pytest.fixture
def room(state: StateStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Room:
    made = Room(state, tmp_path)
    monkeypatch.setattr(BridgeDriver, "open", made.open)
    return made


async def test_networks_get_numbers_and_subnets_of_their_own(room: Room) -> None:
    first = await room.plan("first")
    second = await room.plan("second", [first], enable_ipv6=True)
    assert (first.vni, first.subnet, first.gateway) == (4097, "10.66.0.0/24", "10.66.0.1")
    assert (second.vni, second.subnet) == (4098, "10.66.1.0/24")
    assert second.subnet6.startswith("fd00:66:") and second.gateway6
    chosen = IpamRequest(config=[IpamConfig(subnet="10.67.0.0/24")])
    third = await room.plan("third", [first, second], ipam=chosen)
    assert (third.vni, third.subnet, third.gateway) == (4099, "10.67.0.0/24", "10.67.0.1")
    with pytest.raises(Conflict):
        await room.plan("first", [first])
    assert (await room.plan("secret", options={"encrypted": ""})).vni == 4097


async def test_subnets_that_other_hosts_use_are_avoided_where_that_can_be(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    used = ["10.66.0.0/23", "10.66.2.128/25", "fd00::/8", "what"]
    assert (await room.plan("first", used=used)).subnet == "10.66.3.0/24"
    assert not caplog.text
    # One that says it uses everything, the others do not lose what they have.
    most = await room.plan("most", used=["10.66.0.0/23", "10.66.2.5", "10.66.0.0/16", "10.0.0.0/9", "10.128.0.0/9"])
    assert most.subnet == "10.66.3.0/24" and "which refuses it" in caplog.text
    caplog.clear()
    everything = await room.plan("second", used=["10.0.0.0/8"])
    assert everything.subnet == "10.66.0.0/24" and "which refuses it" in caplog.text


async def test_a_network_that_would_cut_the_host_off_is_refused(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    network = await room.plan("lan")
    await room.presence.know({network.id: network})
    taken = [IPv4Network("0.0.0.0/0"), IPv4Network("10.66.0.64/26")]
    around = SimpleNamespace(around=lambda _: SimpleNamespace(taken=taken, taken6=[]))
    monkeypatch.setattr(host, "looking", lambda: nullcontext(around))
    live = room.roster.find("lan")
    with pytest.raises(Conflict, match=r"its subnet 10\.66\.0\.0/24 overlaps 10\.66\.0\.64/26"):
        await room.presence.bring(live)
    assert not live.bridged and room.done == [] and not room.state.records(KIND, Network)
    taken.pop()
    # Managers are often reached by the default route.
    room.presence.managers = lambda: ["192.0.2.1", "10.66.0.7"]
    with pytest.raises(Conflict, match=r"its subnet 10\.66\.0\.0/24 overlaps 10\.66\.0\.7/32"):
        await room.presence.bring(live)
    room.presence.managers = lambda: ["192.0.2.1", "manager.example"]
    await room.presence.bring(live)
    assert live.bridged


async def test_a_network_is_here_while_somebody_needs_it(room: Room) -> None:
    network = await room.plan("lan")
    await room.presence.know({network.id: network})
    live = room.roster.find("lan")
    assert not live.bridged and room.presence.here == [] and not room.state.records(KIND, Network)
    live.members["c"] = cast(Any, None)
    await asyncio.gather(room.presence.bring(live), room.presence.bring(live))
    assert room.done == ["open 10.66.0.0/24"] and room.presence.here == [live]
    await room.presence.note(live, ["10.66.0.9", "10.66.0.8"])
    assert room.state.records(KIND, Network)[network.id].service_addresses == ["10.66.0.8", "10.66.0.9"]
    await room.presence.leave(live)
    assert live.bridged
    live.members.clear()
    await room.presence.leave(live)
    assert room.done[1:] == ["way of lan", "close True"] and not live.bridged
    assert not room.state.records(KIND, Network) and room.roster.find("lan") is live
    await room.presence.know({})
    assert not room.roster.by_name


async def test_an_encrypted_one_is_not_here_without_its_tunnel(room: Room) -> None:
    network = await room.plan("lan", options={"encrypted": ""})
    await room.presence.know({network.id: network})
    live, room.insecure = room.roster.find("lan"), True
    with pytest.raises(Unavailable, match="install it"):
        await room.presence.bring(live)
    assert not live.bridged and room.done == [] and not room.state.records(KIND, Network) and not room.coming
    room.insecure = False
    await room.presence.bring(live)
    assert room.done == ["tunnel", "open 10.66.0.0/24 while it comes"] and not room.coming


async def test_one_that_is_gone_stays_for_those_who_are_on_it(room: Room) -> None:
    network = await room.plan("lan")
    await room.presence.know({network.id: network})
    live = room.roster.find("lan")
    live.members["c"] = cast(Any, None)
    await room.presence.bring(live)
    await room.presence.know({})
    assert room.presence.here == [live]
    live.members.clear()
    await room.presence.know({})
    assert not room.roster.by_name


async def test_a_network_of_this_host_hides_one_of_the_swarm(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    network = await room.plan("lan")
    own = LiveNetwork(Network(id="own", name="lan", driver="bridge", created=""))
    room.roster.by_name["lan"] = own
    for _ in range(2):
        await room.presence.know({network.id: network})
    assert room.roster.find("lan") is own and caplog.text.count("is hidden") == 1


async def test_whatever_fails_the_bridge_of_a_network_that_leaves_is_closed(room: Room) -> None:
    network = await room.plan("lan")
    await room.presence.know({network.id: network})
    live = room.roster.find("lan")
    await room.presence.bring(live)
    room.fails = OSError("busy")
    with pytest.raises(OSError, match="busy"):
        await room.presence.leave(live)
    assert room.done[-1] == "close True" and not live.bridged


async def test_who_is_cancelled_leaves_a_network_all_the_same(room: Room) -> None:
    network = await room.plan("lan")
    await room.presence.know({network.id: network})
    live = room.roster.find("lan")
    await room.presence.bring(live)
    room.may_go.clear()
    leaving = Tasks().spawn(room.presence.leave(live), "leave", awaited=True)
    await until_async(lambda: not live.bridged, "it begins")
    leaving.cancel()
    room.may_go.set()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert room.done[1:] == ["way of lan", "close True"]


async def test_a_network_of_this_host_alone_becomes_everybodys(room: Room) -> None:
    cold: list[str] = []

    async def keep_cold() -> None:
        cold.append("cold")

    driver = cast(Any, SimpleNamespace(keep_cold=keep_cold, free_address=cold.append))
    fields: dict[str, Any] = {"driver": "overlay", "created": "", "scope": "swarm"}
    old = Network(id="id-of-old", name="old", service_addresses=["10.66.0.2"], **fields)
    room.roster.by_name["old"] = LiveNetwork(old, driver)
    [live] = room.presence.alone
    assert live.record is old
    told = room.presence.numbered(live, {4097})
    assert (told.vni, told.service_addresses, live.record.vni) == (4098, [], 0)
    await room.presence.adopt(live, told.vni)
    assert live.record.vni == 4098 and cold == ["cold", "10.66.0.2"] and room.presence.alone == []
    assert room.state.records(KIND, Network)["id-of-old"].vni == 4098
    new = Network(id="id-of-new", name="new", vni=4099, **fields)
    room.presence.learn({"id-of-new": new})
    assert room.roster.by_name["new"].record.vni == 4099
