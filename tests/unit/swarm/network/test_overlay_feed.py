"""News to a host's networks about other hosts. Networks and overlays are doubles, the records are real."""

from random import Random
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from husk.engine.model.container import Container, Draft, Endpoint
from husk.engine.model.container_config import ContainerConfig, HostConfig
from husk.engine.model.network import Network
from husk.engine.networks.live import LiveNetwork
from husk.engine.networks.sharing import Occupant, Place
from husk.errors import InvalidParameter, SystemFault
from husk.network.endpoint import EndpointOptions
from husk.network.peers import OverlayPeer
from husk.network.wireguard.parties import Party, inner_address, text_of_key
from husk.storage.state.store import StateStore
from husk.swarm.model.services import NetworkAttachment, PortConfig, TaskSpec, VirtualIP
from husk.swarm.network.allocator import OverlayAllocator
from husk.swarm.network.local_node import LocalNode
from husk.swarm.network.overlay_feed import OverlayFeed, OverlayView
from husk.swarm.network.share import TunnelKey
from husk.swarm.state.leader import NoLeadership
from husk.swarm.state.records import SwarmRecords
from husk.swarm.state.sqlite import SqliteStore
from tests.support.but import but
from tests.support.overlay_places import every_place
from tests.unit.swarm.manager.test_planner import make_service, make_task


class FakePresence:
    def __init__(self, live: LiveNetwork) -> None:
        self.here: list[LiveNetwork] = [live]
        self.ingress: object = None
        self.left: list[str] = []
        self.alone: list[LiveNetwork] = []
        self.noted: list[str] = []
        self.leave_fails: OSError | None = None

    async def bring(self, live: object) -> None:
        raise SystemFault("no WireGuard here")

    async def know(self, networks: object) -> None: ...

    def numbered(self, live: LiveNetwork, others: set[int]) -> Network:
        return msgspec.structs.replace(live.record, vni=max(others) + 1)

    async def adopt(self, live: LiveNetwork, number: int) -> None:
        live.record = msgspec.structs.replace(live.record, vni=number)
        self.alone.remove(live)
        self.here.append(live)

    async def leave(self, live: LiveNetwork) -> None:
        if self.leave_fails is not None:
            raise self.leave_fails
        self.left.append(live.record.name)
        self.here.remove(live)

    async def note(self, live: LiveNetwork, addresses: list[str]) -> None:
        self.noted = sorted(addresses)


class Room:
    def __init__(self, store: SqliteStore) -> None:
        self.records = SwarmRecords(store)
        nodes = {
            f"n{n}": SimpleNamespace(
                id=f"n{n}",
                tunnel_key="",
                tunnel_port=0,
                status=SimpleNamespace(addr=f"192.0.2.{n}", state="ready"),
                data_address=f"192.0.2.{n}",
                is_manager=n < 3,
            )
            for n in (1, 2, 3)
        }
        self.records.nodes = cast(Any, nodes)
        self.cluster = SimpleNamespace(
            node_id="n1",
            active=True,
            several=True,
            data_address="192.0.2.1",
            data_path_port=4789,
        )
        self.shared = OverlayAllocator(self.records, cast(LocalNode, self.cluster), lambda: None)
        self.used: set[str] = set()
        driver = SimpleNamespace(uses=lambda address: address in self.used)
        self.network = Network(
            id="lan-id", name="lan", driver="overlay", created="", vni=4097, subnet="10.0.9.0/24", gateway="10.0.9.1"
        )
        self.live = LiveNetwork(self.network, cast(Any, driver))
        self.live.members["c"] = cast(Any, SimpleNamespace(id="c", record=SimpleNamespace(id="c", endpoints={})))
        self.presence = FakePresence(self.live)
        self.applied: list[Any] = []
        self.fails = False
        self.overlays = SimpleNamespace(apply=self._apply, public=None)
        self.feed = self.make_feed()

    def make_feed(self) -> OverlayFeed:
        networks = SimpleNamespace(presence=self.presence, overlays=self.overlays)
        return OverlayFeed(
            store=self.records,
            cluster=cast(LocalNode, self.cluster),
            networks=cast(Any, networks),
            shared=self.shared,
            unsaved=lambda: False,
        )

    def told(self, feed: OverlayFeed) -> object:
        """All that came of it last, in no order."""
        underlay, ways = self.applied[-1]
        told = [(id, way.vni, way.own, way.own6, frozenset(way.peers)) for id, way in sorted(ways.items())]
        return self.live.elsewhere, underlay, told, sorted(feed.sources())

    async def _apply(self, underlay: Any, ways: Any) -> None:
        if self.fails:
            raise SystemFault("no VXLAN here")
        self.applied.append((underlay, ways))

    async def take(self, node: str, address: str, who: Occupant) -> None:
        """Somebody takes an address."""
        own, self.cluster.node_id = self.cluster.node_id, node
        places = await self.shared.take(self.network, who, EndpointOptions(address=address))
        self.shared.underway.difference_update(place.key for place in places)
        self.cluster.node_id = own


@pytest.fixture
async def room(state: StateStore) -> Room:
    made = Room(SqliteStore(state))
    await made.shared.add(made.network)
    return made


async def test_a_host_is_told_who_is_where(room: Room) -> None:
    await room.take("n2", "10.0.9.20", Occupant("host"))
    await room.take("n2", "10.0.9.21", Occupant("endpoint", ("Web.1", "web"), "x", "task"))
    await room.take("n1", "10.0.9.10", Occupant("host"))
    await room.take("n1", "10.0.9.11", Occupant("endpoint", ("mine",), "c"))
    room.used = {"10.0.9.11"}
    assert await room.feed.settle()
    ((underlay, ways),) = room.applied
    assert (underlay.local, underlay.port) == ("192.0.2.1", 4789)
    way = ways["lan-id"]
    assert (way.vni, way.own, way.own6) == (4097, "10.0.9.10", "")
    assert [(peer.address, peer.host) for peer in way.peers] == [("10.0.9.20", "192.0.2.2"), ("10.0.9.21", "192.0.2.2")]
    assert room.feed.sources() == [("10.0.9.21", "10.0.9.10")]
    assert room.live.elsewhere == {}, "nobody has told that the task is healthy"
    task = but(make_task(1, node_id="n2"), id="task")
    for state, told in (("starting", []), ("running", ["10.0.9.21"])):
        room.records.learn(but(task, status__state=state))
        await room.feed.settle()
        assert [str(address) for address in room.live.elsewhere.get("web.1", ())] == told
    assert "mine" not in room.live.elsewhere
    # The names of a node that is down lead nowhere.
    room.records.nodes["n2"].status.state = "down"  # type: ignore[misc]  # these are no records
    await room.feed.settle()
    assert room.live.elsewhere == {}


async def test_nobody_keeps_a_name_that_a_service_has_since(room: Room) -> None:
    """With its tasks' addresses in the answers (`--endpoint-mode dnsrr`, `tasks.db`) that would be one of them."""
    await room.take("n2", "10.0.9.21", Occupant("endpoint", ("db", "Tasks.DB", "mine"), "x"))
    await room.take("n2", "10.0.9.22", Occupant("endpoint", ("db", "tasks.db", "db.1"), "y", "task"))
    room.records.learn(but(make_task(1, node_id="n2"), id="task", service_id="db-id", status__state="running"))
    everybody = {"db": {"10.0.9.21", "10.0.9.22"}, "mine": {"10.0.9.21"}, "db.1": {"10.0.9.22"}}

    async def told() -> dict[str, set[str]]:
        await room.feed.settle()
        names = room.live.elsewhere
        assert names.get("db", {}).keys() == names.get("tasks.db", {}).keys()
        return {name: set(names[name]) for name in names if name != "tasks.db"}

    assert await told() == everybody
    service = but(make_service(1), id="db-id", version=0, spec__name="db")
    service.spec.task_template = TaskSpec(networks=[NetworkAttachment(target="lan-id")])
    await room.records.save(service)
    assert await told() == everybody | {"db": {"10.0.9.22"}}
    await room.records.delete(room.records.services["db-id"])
    assert await told() == everybody


async def test_each_host_has_an_address_of_its_own(room: Room) -> None:
    await room.take("n1", "10.0.9.9", Occupant("service"))
    room.records.services["s"] = make_service(virtual_ips=[VirtualIP(network_id="lan-id", addr="10.0.9.9/24")])
    assert await room.feed.settle() and await room.feed.settle()
    (own,) = [place for place in every_place(room.shared) if place.kind == "host"]
    assert own.node == "n1" and room.presence.noted == sorted([own.address, "10.0.9.9"])


async def test_what_nobody_has_is_given_back(room: Room) -> None:
    for node, address, who in (
        ("n1", "10.0.9.11", Occupant("endpoint", (), "dead")),
        ("n1", "10.0.9.12", Occupant("endpoint", (), "going")),
        ("n1", "10.0.9.13", Occupant("service")),
        ("n2", "10.0.9.14", Occupant("endpoint", (), "theirs")),
        ("gone", "10.0.9.15", Occupant("endpoint", (), "lost")),
    ):
        await room.take(node, address, who)
    room.used = {"10.0.9.12"}
    assert not await room.feed.settle()  # one is on its way
    left = {place.address for place in every_place(room.shared) if place.kind != "host"}
    assert left == {"10.0.9.12", "10.0.9.14"}
    room.used = set()
    room.live.members.clear()
    assert await room.feed.settle()
    assert room.presence.left == ["lan"]
    assert {place.address for place in every_place(room.shared)} == {"10.0.9.14"}


async def test_a_host_that_cannot_or_need_not(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    room.fails = True
    assert not await room.feed.settle() and not await room.feed.settle()
    assert caplog.text.count("no VXLAN here") == 1
    room.fails = False
    room.cluster.several = False
    assert await room.feed.settle()
    assert room.applied[-1][1] == {}
    room.cluster.active = False
    assert await room.feed.settle() and len(room.applied) == 1


async def test_a_network_that_cannot_leave_keeps_no_other_from_its_way(room: Room) -> None:
    room.presence.leave_fails = OSError("busy")
    await room.take("n1", "10.0.9.254", Occupant("host"))
    room.live.members.clear()
    assert not await room.feed.settle()
    [(_, ways)] = room.applied
    assert list(ways) == ["lan-id"]


async def test_networks_that_cannot_be_had_keep_no_other_from_its_address(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    room.records.services["s"] = make_service(ports=[PortConfig(target_port=80, published_port=80)])
    room.presence.ingress = SimpleNamespace()
    full = Network(id="full-id", name="full", driver="overlay", created="", vni=4098, subnet="10.0.8.0/30")
    await room.shared.add(full)
    for _ in range(2):
        await room.shared.take(full, Occupant("service"))
    live = LiveNetwork(full, room.live.driver)
    live.members["c"] = room.live.members["c"]
    room.presence.here.insert(0, live)
    await room.take("n1", "10.0.9.11", Occupant("endpoint", (), "dead"))
    assert not await room.feed.settle() and not await room.feed.settle()
    (own,) = room.shared.of(room.network)
    assert (own.kind, own.node) == ("host", "n1"), "and what nobody has is given back"
    assert list(room.applied[-1][1]) == ["lan-id"]
    assert caplog.text.count("no WireGuard here; no available IPv4 addresses") == 1


async def test_a_host_with_two_addresses_of_its_own_keeps_one(room: Room) -> None:
    task = make_task(1, node_id="n3")
    room.records.tasks[task.id] = task
    room.records.index.note(task)
    await room.take("n3", "10.0.9.31", Occupant("endpoint", (), "c", task.id))
    for node, address in (("n1", "10.0.9.11"), ("n1", "10.0.9.10"), ("n3", "10.0.9.13"), ("n3", "10.0.9.12")):
        await room.take(node, address, Occupant("host"))
    assert await room.feed.settle()
    left = {(place.node, place.address) for place in every_place(room.shared) if place.kind == "host"}
    assert left == {("n1", "10.0.9.10"), ("n3", "10.0.9.12")}


async def test_what_a_worker_does_not_know_any_more_is_given_back_for_it(room: Room) -> None:
    for address, who in (
        ("10.0.9.11", Occupant("endpoint", (), "c1", "gone")),
        ("10.0.9.12", Occupant("endpoint", (), "c2", "there")),
        ("10.0.9.13", Occupant("endpoint", (), "plain")),
        ("10.0.9.14", Occupant("host")),
        ("10.0.9.15", Occupant("service")),
    ):
        await room.take("n3", address, who)
    task = make_task(1, node_id="n3")
    task = but(task, id="there")
    room.records.tasks["there"] = task
    room.records.index.note(task)
    await room.feed.settle()
    assert {place.address for place in every_place(room.shared) if place.node == "n3"} == {
        f"10.0.9.{n}" for n in (12, 13, 14)
    }
    del room.records.tasks["there"]
    room.records.index.drop(task)
    await room.feed.settle()
    assert {place.address for place in every_place(room.shared) if place.node == "n3"} == {"10.0.9.13"}


async def test_a_network_of_this_host_alone_becomes_everybodys(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    record = Network(id="old-id", name="old", driver="overlay", created="", scope="swarm", subnet="10.0.8.0/24")
    old = LiveNetwork(record, cast(Any, SimpleNamespace(uses=lambda address: True)))
    container = Container(
        id="c" * 64,
        name="box",
        created="",
        created_ns=0,
        image_id="",
        config=ContainerConfig(),
        host_config=HostConfig(),
        path="",
        args=[],
    )
    endpoint = Endpoint(network_name="old", network_id="old-id", ip_address="10.0.8.5", mac_address="02:42:00:00:00:05")
    draft = old.members[container.id] = Draft(container)
    draft.put(endpoint)
    room.records.services["s"] = make_service(virtual_ips=[VirtualIP(network_id="old-id", addr="10.0.8.2/24")])
    room.presence.alone = [old]
    await room.feed.settle()
    assert old.record.vni == 4098 and room.shared.networks["old-id"].vni == 4098
    places = {place.address: place for place in room.shared.of(record)}
    assert places["10.0.8.2"].kind == "service"
    assert (places["10.0.8.5"].container, places["10.0.8.5"].mac) == (container.id, "02:42:00:00:00:05")
    assert "box" in places["10.0.8.5"].names
    # One that was cut off after the swarm's record was written goes on; one whose address is another's is told of.
    old.record = record
    room.presence.here.remove(old)
    room.presence.alone = [old]
    draft.put(but(endpoint, ip_address="10.0.8.77"))
    await room.feed.settle()
    assert old.record.vni == 4098 and "10.0.8.77" in {place.address for place in room.shared.of(record)}


async def test_a_network_that_could_not_be_everybodys_is_tried_again_and_keeps_no_other_from_it(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = room.shared.add
    for name in ("large", "small"):
        record = Network(id=name, name=name, driver="overlay", created="", scope="swarm", subnet="10.0.8.0/24")
        room.presence.alone.append(LiveNetwork(record, cast(Any, SimpleNamespace(uses=lambda address: True))))

    async def refuse(network: Network) -> None:
        if network.id == "large":
            raise InvalidParameter("etcdserver: request is too large")
        await add(network)

    monkeypatch.setattr(room.shared, "add", refuse)
    assert not await room.feed.settle()
    assert [live.record.name for live in room.presence.alone] == ["large"] and "small" in room.shared.networks
    monkeypatch.undo()
    assert await room.feed.settle() and not room.presence.alone


async def test_hosts_of_an_encrypted_network_are_known_by_their_keys(room: Room) -> None:
    room.live.record = room.network = but(room.network, options={"encrypted": ""})
    for node, address in (("n2", "10.0.9.20"), ("n1", "10.0.9.10")):
        await room.take(node, address, Occupant("host"))
    key = text_of_key(b"2" * 32)
    cast(Any, room.records.nodes["n2"]).tunnel_key, cast(Any, room.records.nodes["n2"]).tunnel_port = key, 51821
    told: list[TunnelKey] = []

    async def announce(one: TunnelKey) -> None:
        told.append(one)
        own = cast(Any, room.records.nodes["n1"])
        own.tunnel_key, own.tunnel_port = one.key, one.port

    room.overlays.public = ("mine", 51820)
    cast(Any, room.shared).announce = announce
    assert await room.feed.settle() and await room.feed.settle()
    assert told == [TunnelKey(key="mine", port=51820)], "once"
    underlay, ways = room.applied[-1]
    assert underlay.mesh.own == inner_address("n1")
    assert underlay.mesh.parties == (Party(b"2" * 32, inner_address("n2"), "192.0.2.2", 51821),)
    assert {peer.host for peer in ways["lan-id"].peers} == {inner_address("n2")}


@pytest.mark.parametrize(
    ("field", "value"), [("data_address", "fe80::1%x\nremove=true"), ("data_address", "eth0"), ("tunnel_key", "short")]
)
async def test_a_host_whose_record_is_wrong_keeps_no_other_out(
    room: Room, caplog: pytest.LogCaptureFixture, field: str, value: str
) -> None:
    room.live.record = room.network = but(room.network, options={"encrypted": ""})
    for node in ("n1", "n2", "n3"):
        await room.take(node, f"10.0.9.{node[1]}0", Occupant("host"))
        cast(Any, room.records.nodes[node]).tunnel_key = text_of_key(node[1].encode() * 32)
    setattr(room.records.nodes["n2"], field, value)
    room.records.leadership = NoLeadership()  # nobody gives back what these have
    assert await room.feed.settle() and await room.feed.settle()
    assert [party.inner for party in room.applied[-1][0].mesh.parties] == [inner_address("n3")]
    assert caplog.text.count("node n2 is left out of encrypted networks") == 1


async def test_hosts_of_other_networks_are_not(room: Room) -> None:
    await room.take("n2", "10.0.9.20", Occupant("host"))
    cast(Any, room.records.nodes["n2"]).tunnel_key = text_of_key(b"2" * 32)
    assert await room.feed.settle()
    assert room.applied[-1][0].mesh.parties == ()


async def test_what_is_kept_is_what_a_look_at_everything_gives(room: Room, chance: Random) -> None:
    """The result is the same after every change: of addresses, tasks, nodes, and this host's own address."""
    task = make_task(1, node_id="n2")
    for step in range(150):
        node = chance.choice(("n1", "n2", "n3"))
        address = f"10.0.9.{chance.randrange(2, 20)}"
        known = room.shared.places.get("lan-id", {}).get(address)
        match chance.randrange(5):
            case 0 | 1 if known is None:
                kind = chance.choice(("endpoint", "endpoint", "host", "service"))
                whose = chance.choice(("t1", "t2", "")) if kind == "endpoint" else ""
                names = (chance.choice(("web", "Web", "db")), f"own{step}")
                await room.take(node, address, Occupant(cast(Any, kind), names, "c", whose))
            case 2 if known is not None:
                await room.shared.give_back([known])
            case 3:
                state = cast(Any, chance.choice(("starting", "running", "failed")))
                room.records.learn(but(task, id=chance.choice(("t1", "t2")), status__state=state))
            case 4:
                other: Any = room.records.nodes[node]
                other.status.state = chance.choice(("ready", "down"))
                if node != "n1":
                    other.data_address = chance.choice(("", f"192.0.2.{node[1:]}", "192.0.2.77"))
        await room.feed.settle()  # which may give back what nobody has
        await room.feed.settle()
        kept = room.told(room.feed)
        fresh = room.make_feed()
        await fresh.settle()
        assert kept == room.told(fresh)
        fresh.close()


async def test_a_look_that_fails_begins_anew(room: Room) -> None:
    await room.take("n1", "10.0.9.10", Occupant("host"))
    await room.take("n2", "10.0.9.21", Occupant("endpoint", ("web",), "c"))
    node = cast(Any, room.records.nodes["n2"])
    status = node.status
    node.status = None
    with pytest.raises(AttributeError):
        await room.feed.settle()
    node.status = status
    assert await room.feed.settle()
    assert room.feed.sources() == [("10.0.9.21", "10.0.9.10")]


async def test_one_that_is_not_asked_any_more_hears_nothing(room: Room) -> None:
    assert room.shared.observers
    room.feed.close()
    assert not room.shared.observers


def place(address: str, *names: str, kind: str = "endpoint") -> Place:
    return Place(network="lan", address=address, node="n2", kind=kind, names=names)  # type: ignore[arg-type]


def shown(view: OverlayView) -> dict[str, list[str]]:
    return {name: [str(address) for address in found.values()] for name, found in view.names.items()}


def test_an_address_has_its_peer_its_names_and_the_address_it_answers_to() -> None:
    view = OverlayView(("10.0.9.2", "fd00::2"))
    view.note(place("10.0.9.5", "Web", "web", "c5"), "m5", "192.0.2.2", told=True)
    view.note(place("fd00::5", "web"), "m5", "192.0.2.2", told=True)
    view.note(place("10.0.9.6", "web", kind="host"), "m6", "192.0.2.2", told=False)
    assert view.peers["10.0.9.5"] == OverlayPeer("10.0.9.5", "m5", "192.0.2.2") and len(view.peers) == 3
    assert list(view.sources.values()) == [("10.0.9.5", "10.0.9.2"), ("fd00::5", "fd00::2")]
    assert shown(view) == {"web": ["10.0.9.5", "fd00::5"], "c5": ["10.0.9.5"]}


def test_what_is_the_same_stays_the_same_object_in_its_place() -> None:
    view = OverlayView(("10.0.9.2",))
    for number in (5, 6):
        view.note(place(f"10.0.9.{number}", "web"), "m", "192.0.2.2", told=True)
    before = [*view.peers.values(), *view.sources.values()]
    view.note(place("10.0.9.5", "web"), "m", "192.0.2.2", told=True)
    assert all(one is other for one, other in zip(before, (*view.peers.values(), *view.sources.values()), strict=True))


def test_what_is_no_more() -> None:
    view = OverlayView(("10.0.9.2",))
    view.note(place("10.0.9.5", "web", "a"), "m", "192.0.2.2", told=True)
    view.note(place("10.0.9.6", "web"), "m", "192.0.2.2", told=True)
    view.note(place("10.0.9.5", "b"), "m", "", told=True)
    assert shown(view) == {"web": ["10.0.9.6"], "b": ["10.0.9.5"]} and list(view.peers) == ["10.0.9.6"]
    view.note(place("10.0.9.5", "b"), "m", "", told=False)
    view.forget("10.0.9.6")
    view.forget("10.0.9.7")
    assert (shown(view), view.peers, list(view.sources)) == ({}, {}, ["10.0.9.5"])
