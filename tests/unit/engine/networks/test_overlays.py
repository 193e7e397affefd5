"""Requests to the driver of overlay networks, and their order. The driver and the kernel are doubles."""

import asyncio
from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.aio.tasks import Tasks
from husk.engine.model.network import MTU, Network
from husk.engine.networks.live import LiveNetwork, Roster
from husk.engine.networks.overlays import OverlayDrivers, Overlays, OverlayWay, Underlay, encrypted, interface_of
from husk.errors import SystemFault, Unavailable
from husk.network import overlay, senders
from husk.network.bridge import BridgeDriver
from husk.network.peers import OverlayPeer
from husk.network.settings import TunnelSettings
from husk.network.wireguard.parties import Mesh
from tests.support.waiting import until_async

MESH = Mesh("fe80::1")
UNDERLAY = Underlay("192.0.2.1", 4789, MESH)
TUNNEL = TunnelSettings("wg-test", "husk", "husk-wg", 51820)
PEERS = (OverlayPeer("10.0.9.6", "02:42:0a:00:09:06", "192.0.2.2"),)
WAY = OverlayWay(4097, "10.0.9.254", PEERS)


class Driver:
    """A network's bridge."""

    def __init__(self, name: str, done: list[Any]) -> None:
        self.interface = name
        self.done = done

    async def fit(self, mtu: int) -> None:
        self.done.append(("fit", mtu))


class Host:
    """A host that takes what the driver is asked for: what was `done`, and from whom packets are `taken` at each
    change, None when there are no rules for it any more."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.taken: list[senders.Senders | None] = []
        # Interfaces that it refuses.
        self.broken: set[str] = set()
        self.ways: dict[str, Way] = {}
        self.roster = Roster()
        self.deleted: Callable[[Collection[str] | None], None] = lambda names: None
        # Set while changes of the tunnel go on at once.
        self.ready = asyncio.Event()
        self.ready.set()

    def overlays(self, **networks: dict[str, str]) -> Overlays:
        for name, options in networks.items():
            record = Network(id=id_of(name), name=name, driver="overlay", created="", options=options, vni=4097)
            driver = cast(BridgeDriver, Driver("br-" + name, self.done))
            self.roster.by_name[name] = LiveNetwork(record, driver)
        drivers = OverlayDrivers(
            open=cast(Any, self._open),
            remove=lambda interface, owner: self.done.append(("remove", interface, owner)),
            underlay_mtu=lambda local: 1500,
            rules=lambda table: cast(Any, Rules(self)),
            tunnel=lambda settings, ended: cast(Any, Guard(self)),
            deletions=self._listen,
        )
        return Overlays(self.roster, "husk", TUNNEL, drivers=drivers, soon=0.0)

    async def _open(self, settings: overlay.OverlaySettings) -> "Way":
        if settings.interface in self.broken:
            raise SystemFault(f"{settings.interface} cannot be set up")
        self.done.append(("open", settings.interface, settings.link or settings.local, settings.mtu))
        way = self.ways[settings.interface] = Way(self, settings)
        return way

    def _listen(self, told: Callable[[Collection[str] | None], None]) -> Any:
        self.deleted = told
        return SimpleNamespace(close=lambda: None)


class Way:
    """`Overlay`."""

    def __init__(self, host: Host, settings: overlay.OverlaySettings) -> None:
        self.host, self.settings = host, settings
        self.is_there = True

    async def tell(self, peers: tuple[OverlayPeer, ...]) -> int:
        if "peers" in self.host.broken:
            raise OSError("no room")
        self.host.done.append(("tell", self.settings.interface, len(peers)))
        return 1

    def mend(self) -> None:
        self.is_there = True
        if self.settings.interface in self.host.broken:
            raise SystemFault("its bridge is not there")
        self.host.done.append(("mend", self.settings.interface))

    async def close(self, remove: bool) -> None:
        if self.settings.interface in self.host.broken:
            raise OSError("busy")
        self.host.done.append(("close", self.settings.interface, remove))


class Guard:
    """`WireguardTunnel`."""

    public = ("key", 51820)
    interface = "wg-test"

    def __init__(self, host: Host) -> None:
        self.host = host

    async def open(self) -> None:
        if "wg-test" in self.host.broken:
            raise Unavailable("install it")
        self.host.done.append(("tunnel",))

    async def apply(self, mesh: Mesh, mtu: int) -> None:
        if "wg-test" in self.host.broken:
            raise Unavailable("install it")
        self.host.done.append(("encrypt", mesh, mtu))
        await self.host.ready.wait()

    async def remove(self) -> None:
        self.host.done.append(("decrypt",))

    async def let_go(self) -> None:
        self.host.done.append(("let go",))


class Rules:
    """`SenderRules`."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def change(self, told: senders.Senders) -> None:
        if "rules" in self.host.broken:
            raise SystemFault("no rules")
        self.host.taken.append(told)

    def remove(self) -> None:
        self.host.taken.append(None)


@pytest.fixture
async def host() -> Host:
    return Host()


@pytest.fixture
def broken(host: Host) -> set[str]:
    return host.broken


@pytest.fixture
def taken(host: Host) -> list[senders.Senders | None]:
    return host.taken


@pytest.fixture
def done(host: Host) -> list[Any]:
    return host.done


def id_of(name: str) -> str:
    return name.ljust(64, "0")


async def test_a_network_is_opened_once_and_told_what_is_new(host, done):
    networks = host.overlays(a={})
    for way in (WAY, WAY, OverlayWay(WAY.vni, WAY.own, ())):
        await networks.apply(UNDERLAY, {id_of("a"): way, id_of("elsewhere"): way})
    name = "vx-a00000000000"
    first = [("fit", 1450), ("open", name, "192.0.2.1", 1450), ("tell", name, 1)]
    assert done == [*first, ("tell", name, 0)]


async def test_peers_that_were_told_by_half_are_told_again(host, done, broken):
    networks = host.overlays(a={})
    await networks.apply(UNDERLAY, {id_of("a"): WAY})
    broken.add("peers")
    with pytest.raises(OSError, match="no room"):
        await networks.apply(UNDERLAY, {id_of("a"): OverlayWay(WAY.vni, WAY.own, ())})
    broken.clear()
    done.clear()
    await networks.apply(UNDERLAY, {id_of("a"): WAY})
    assert done == [("tell", "vx-a00000000000", 1)]


async def test_a_network_that_no_longer_leads_elsewhere_is_closed(host, done):
    networks = host.overlays(a={})
    await networks.apply(UNDERLAY, {id_of("a"): WAY})
    await networks.apply(UNDERLAY, {})
    assert done[-1] == ("close", "vx-a00000000000", True)
    done.clear()
    networks.mend()
    assert done == []


async def test_a_network_that_is_refused_keeps_no_other_from_its_way(host, done, broken):
    networks = host.overlays(a={}, b={})
    ways = {id_of("a"): WAY, id_of("b"): WAY}
    broken.add("vx-a00000000000")
    with pytest.raises(SystemFault, match="vx-a00000000000 cannot be set up"):
        await networks.apply(UNDERLAY, ways)
    assert ("tell", "vx-b00000000000", 1) in done
    broken.clear()
    await networks.apply(UNDERLAY, ways)
    assert ("tell", "vx-a00000000000", 1) in done


async def test_an_interface_that_does_not_go_is_not_forgotten(host, done, broken):
    networks = host.overlays(a={}, b={})
    await networks.apply(UNDERLAY, {id_of("a"): WAY})
    broken.add("vx-a00000000000")
    with pytest.raises(OSError, match="busy"):
        await networks.apply(UNDERLAY, {id_of("b"): WAY})
    assert ("tell", "vx-b00000000000", 1) in done
    broken.clear()
    await networks.apply(UNDERLAY, {id_of("b"): WAY})
    assert done[-1] == ("close", "vx-a00000000000", True)


async def test_an_interface_that_somebody_deleted_is_made_again(host, done):
    networks = host.overlays(a={})
    await networks.apply(UNDERLAY, {id_of("a"): WAY})
    host.ways["vx-a00000000000"].is_there = False
    done.clear()
    await networks.apply(UNDERLAY, {id_of("a"): WAY})
    assert [what[0] for what in done] == ["fit", "open", "tell"]


async def test_a_bridge_that_is_missing_keeps_no_other_from_being_mended(host, done, broken, caplog):
    networks = host.overlays(a={}, b={})
    await networks.apply(UNDERLAY, {id_of("a"): WAY, id_of("b"): WAY})
    broken.add("vx-a00000000000")
    done.clear()
    networks.mend()
    assert done == [("mend", "vx-b00000000000")] and "its bridge is not there" in caplog.text


async def test_another_number_opens_it_anew(host, done):
    networks = host.overlays(a={})
    await networks.apply(UNDERLAY, {id_of("a"): WAY})
    await networks.apply(UNDERLAY, {id_of("a"): OverlayWay(4098, WAY.own, PEERS)})
    assert [what[0] for what in done].count("open") == 2
    done.clear()
    networks.mend()
    assert done == [("mend", "vx-a00000000000")]


async def test_what_is_encrypted_has_its_tunnel_before_it_is_opened_and_loses_it_after_the_last(host, done):
    networks = host.overlays(a={"encrypted": ""}, b={MTU: "1300"})
    await networks.apply(UNDERLAY, {id_of("a"): WAY, id_of("b"): WAY})
    assert done[0] == ("encrypt", MESH, 1440)
    assert ("open", "vx-a00000000000", "wg-test", 1370) in done
    assert ("open", "vx-b00000000000", "192.0.2.1", 1300) in done
    assert networks.public == ("key", 51820)
    host.roster.by_name["a"].depart()
    await networks.apply(UNDERLAY, {id_of("b"): WAY})
    assert done.index(("close", "vx-a00000000000", True)) < done.index(("decrypt",))
    assert networks.public is None


async def test_a_tunnel_stays_for_a_network_that_is_about_to_be_here(host, done):
    networks = host.overlays(a={"encrypted": ""}, b={"encrypted": ""})
    (a, b), roster = host.roster.by_name.values(), host.roster.by_name
    a.depart()
    del roster["b"]
    await networks.secure(a.record)
    await networks.apply(UNDERLAY, {})
    await networks.remove(b.record)
    assert ("decrypt",) not in done and networks.public is not None
    networks.came(a.record)
    await networks.apply(UNDERLAY, {})
    assert done[-1] == ("decrypt",)


async def test_without_a_tunnel_nothing_goes_another_way(host, done, broken):
    networks = host.overlays(a={"encrypted": ""}, b={})
    broken.add("wg-test")
    with pytest.raises(Unavailable, match="install it"):
        await networks.secure(host.roster.by_name["a"].record)
    with pytest.raises(Unavailable, match="install it"):
        await networks.apply(UNDERLAY, {id_of("a"): WAY, id_of("b"): WAY})
    assert [what[1] for what in done if what[0] == "open"] == ["vx-b00000000000"]
    broken.clear()
    await networks.secure(host.roster.by_name["a"].record)
    await networks.apply(UNDERLAY, {id_of("a"): WAY, id_of("b"): WAY})
    assert ("open", "vx-a00000000000", "wg-test", 1370) in done


async def test_what_is_gone_is_made_again_behind_its_tunnel(host, done):
    networks = host.overlays(a={"encrypted": ""}, b={})
    await networks.apply(UNDERLAY, {id_of("a"): WAY, id_of("b"): WAY})
    host.ways["vx-a00000000000"].is_there = False
    done.clear()
    await networks.look()
    assert done == [("encrypt", MESH, 1440), ("mend", "vx-a00000000000")]


async def test_what_cannot_be_made_again_keeps_no_other_from_it(host, done, broken):
    networks = host.overlays(a={"encrypted": ""}, b={}, c={})
    await networks.apply(UNDERLAY, {id_of(name): WAY for name in "abc"})
    for way in host.ways.values():
        way.is_there = False
    broken |= {"wg-test", "vx-b00000000000"}
    done.clear()
    with pytest.raises(Unavailable, match="install it"):
        await networks.look()
    assert done == [("mend", "vx-c00000000000")], "nothing that is encrypted, without the tunnel"


@pytest.mark.parametrize("deleted", [{"vx-a00000000000"}, None])
async def test_a_deletion_is_noticed(deleted):
    other, host = Host(), Host()
    for one in (other, host):
        await one.overlays(a={}).apply(UNDERLAY, {id_of("a"): WAY})
        one.ways["vx-a00000000000"].is_there = False
    other.deleted({"eth0"})
    host.deleted(deleted)
    await until_async(lambda: ("mend", "vx-a00000000000") in host.done, "it is made again")
    assert ("mend", "vx-a00000000000") not in other.done, "that was nothing of ours"


async def test_a_daemon_that_ends_leaves_what_is_needed(host, done):
    for going_on in (True, False):
        networks = host.overlays(a={"encrypted": ""})
        await networks.apply(UNDERLAY, {id_of("a"): WAY})
        await networks.close([host.roster.by_name["a"].record] if going_on else [])
    assert [what for what in done if len(what) == 1] == [("let go",), ("decrypt",)]


async def test_a_daemon_that_ends_waits_for_a_change(host, done):
    networks = host.overlays(a={"encrypted": ""})
    await networks.apply(UNDERLAY, {id_of("a"): WAY})
    tasks = Tasks()
    done.clear()
    host.ready.clear()
    tasks.spawn(networks.look(), "change")
    await until_async(lambda: done, "the change has begun")
    ending = tasks.spawn(networks.close([]), "end", awaited=True)
    for _ in range(5):
        await asyncio.sleep(0)
    assert ("decrypt",) not in done
    host.ready.set()
    await ending
    assert done[-1] == ("decrypt",)


async def test_a_network_that_ends_takes_its_interface_along_whoever_made_it(host, done):
    networks = host.overlays(a={})
    [live] = host.roster.by_name.values()
    await networks.remove(live.record)
    await networks.remove(Network(id="b", name="b", driver="bridge", created=""))
    assert done == [("remove", "vx-a00000000000", "husk")]


async def test_packets_are_taken_from_the_hosts_of_a_network_alone(host, done, taken):
    networks = host.overlays(a={}, b={"encrypted": ""})
    await networks.apply(UNDERLAY, {id_of("a"): WAY, id_of("b"): OverlayWay(4098, WAY.own, PEERS)})
    # What is encrypted comes by the tunnel, whose rules are its own.
    assert taken == [senders.Senders(4789, "192.0.2.1", ((4097, frozenset({"192.0.2.2"})),))]
    await networks.apply(UNDERLAY, {id_of("a"): OverlayWay(WAY.vni, WAY.own, ())})
    assert taken[-1] == senders.Senders(4789, "192.0.2.1", ((4097, frozenset()),))
    await networks.close([host.roster.by_name["a"].record])
    assert None not in taken, "the interface stays, and so do its rules"
    host.roster.by_name["a"].depart()
    await networks.apply(UNDERLAY, {})
    assert taken[-1] is None and networks.senders is None


async def test_a_host_of_the_other_version_of_ip_is_told_of_once(host, done, caplog):
    networks = host.overlays(a={})
    peers = (*PEERS, OverlayPeer("10.0.9.7", "02:42:0a:00:09:07", "2001:db8::2"))
    for own in ("10.0.9.254", "10.0.9.253"):
        await networks.apply(UNDERLAY, {id_of("a"): OverlayWay(4097, own, peers)})
    assert caplog.text.count("do not lead to 2001:db8::2: this host has no such address") == 1


async def test_without_rules_nothing_is_taken_in_the_open(host, done, broken):
    networks = host.overlays(a={}, b={"encrypted": ""})
    broken.add("rules")
    with pytest.raises(SystemFault, match="no rules"):
        await networks.apply(UNDERLAY, {id_of("a"): WAY, id_of("b"): WAY})
    assert [what[1] for what in done if what[0] == "open"] == ["vx-b00000000000"]


@pytest.mark.parametrize("staying", [True, False])
async def test_rules_of_a_former_daemon_go_with_the_last_network(host, done, taken, staying):
    networks = host.overlays(a={}, b={})
    (a, b) = host.roster.by_name.values()
    if not staying:
        b.depart()
    a.depart()
    await networks.remove(a.record)
    assert taken == ([] if staying else [None])


@pytest.mark.parametrize(
    ("options", "found"), [({}, False), ({"encrypted": ""}, True), ({"encrypted": "false"}, False)]
)
def test_encryption_is_an_option(options, found):
    network = Network(id="a" * 64, name="a", driver="overlay", created="", options=options)
    assert encrypted(network) is found
    assert len(interface_of(network)) == 15
