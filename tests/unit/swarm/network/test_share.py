"""Knowledge and requests that a node may have of networks: nothing of networks that its tasks are not on."""

from typing import Any

import msgspec
import pytest

from husk.engine.model.network import Network
from husk.engine.networks.sharing import Place
from husk.errors import Forbidden, InvalidParameter
from husk.network.wireguard.parties import text_of_key
from husk.swarm.model.node import Node, NodeStatus
from husk.swarm.model.services import ContainerSpec, NetworkAttachment, PortConfig, Service, Task, TaskSpec, VirtualIP
from husk.swarm.network.share import (
    AddressRequest,
    KnownNetworks,
    TunnelKey,
    checked,
    checked_key,
    ingress_of,
    networks_of,
    share,
)
from tests.support.but import but
from tests.unit.swarm.manager.test_planner import make_service, make_task


def network(id: str, number: int, *, attachable: bool = False, ingress: bool = False) -> Network:
    return Network(
        id=id,
        name=id,
        driver="overlay",
        created="",
        scope="swarm",
        vni=number,
        subnet=f"10.0.{number}.0/24",
        attachable=attachable,
        ingress=ingress,
    )


def place(network: str, address: str, node: str, kind: str = "endpoint", task: str = "", name: str = "") -> Place:
    names = (name,) if name else ()
    return Place(network=network, address=address, node=node, kind=kind, task=task, names=names)  # type: ignore[arg-type]


class Room:
    def __init__(self) -> None:
        self.networks = {
            one.id: one
            for one in (
                network("front", 1),
                network("back", 2),
                network("open", 3, attachable=True),
                network("ingress", 4, ingress=True),
            )
        }
        self.services: dict[str, Service] = {}
        self.tasks: list[Task] = []
        self.places: list[Place] = []
        self.nodes = {
            id: Node(id=id, version=1, created_at="", updated_at="", status=NodeStatus(state="ready", addr=id.upper()))
            for id in ("m", "w", "x")
        }
        self.web = self.service("web", "front", node="w", alias="site")
        self.db = self.service("db", "back", node="m")
        self.shop = self.service("shop", "back", node="x", published=8080)

    def service(self, name: str, on: str, node: str, published: int = 0, alias: str = "") -> Service:
        service = make_service(1)
        service = but(service, id=f"{name}-id", spec__name=name)
        service.spec.labels = {"secret": f"label of {name}"}
        attachment = NetworkAttachment(target=on, aliases=[alias] if alias else [])
        service.spec.task_template = TaskSpec(networks=[attachment])
        number = self.networks[on].vni
        service = but(service, virtual_ips=[VirtualIP(network_id=on, addr=f"10.0.{number}.2/24")])
        if published:
            service = but(service, ports=[PortConfig(published_port=published, target_port=80, publish_mode="ingress")])
            service.virtual_ips.append(VirtualIP(network_id="ingress", addr="10.0.4.9/24"))
        self.services[service.id] = service
        task = make_task(1, node_id=node)
        task = but(task, id=f"{name}-task", service_id=service.id, service_name=name)
        task = but(task, status__state="running", status__container_id=f"container{name}")
        self.tasks.append(task)
        self.places.append(place(on, f"10.0.{number}.{10 + len(self.tasks)}", node, task=task.id, name=f"tasks.{name}"))
        if published:
            self.places.append(place("ingress", "10.0.4.10", node, task=task.id, name=f"tasks.{name}"))
        return service

    @property
    def world(self) -> KnownNetworks:
        return KnownNetworks(
            networks=self.networks,
            services=self.services,
            nodes=self.nodes,
            tasks_on=lambda node: [task for task in self.tasks if task.node_id == node],
            tasks_of=lambda service: [task for task in self.tasks if task.service_id == service],
            places_of=lambda network: [place for place in self.places if place.network == network.id],
            places_on=lambda node: [place for place in self.places if place.node == node],
        )

    def words(self, node: str) -> str:
        return msgspec.json.encode([*share(node, self.world).items()]).decode()


def test_a_node_knows_the_networks_of_its_own_tasks_and_nothing_of_others() -> None:
    room = Room()
    known = share("w", room.world)
    names = {name for name in known if name[0] != "address"}
    assert names == {
        ("overlay", "front"), ("overlay", "ingress"), ("service", "web-id"), ("service", "shop-id"),
        ("task", "web-task"), ("task", "shop-task"), ("node", "w"), ("node", "x"),
    }  # fmt: skip
    words = room.words("w")
    for word in ("back", "10.0.2.", "db", "label of", "tasks.shop", '"shop"', "containershop", "open"):
        assert word not in words, word
    for word in ("10.0.1.2", "site", "tasks.web", "containerweb", "10.0.4.9", "10.0.4.10", "8080"):
        assert word in words, word
    shop = known["service", "shop-id"]
    assert isinstance(shop, Service) and shop.spec.name == "shop-id"
    assert [entry.network_id for entry in shop.virtual_ips] == ["ingress"]


def test_the_ingress_network_is_everywhere_and_what_is_on_it_while_something_is_published() -> None:
    room = Room()
    assert ingress_of(room.world) == {"ingress"} and ("overlay", "ingress") in share("w", room.world)
    room.services[room.shop.id] = but(room.shop, ports=[])
    assert ingress_of(room.world) == set()
    known = share("w", room.world)
    assert ("overlay", "ingress") in known, "every node shows it"
    assert not [name for name in known if name[0] == "address" and name[1].startswith("ingress/")]
    assert ("service", "shop-id") not in known
    del room.networks["ingress"]
    assert ("overlay", "ingress") not in share("w", room.world)


def test_a_network_is_known_until_the_last_task_there_is_gone() -> None:
    room = Room()
    assert networks_of("w", room.world) == {"front"}
    room.tasks[0] = but(room.tasks[0], desired_state="remove")
    del room.services["web-id"]
    assert networks_of("w", room.world) == {"front"}, "its task has an address there"
    room.tasks[0] = but(room.tasks[0], status__state="pending")
    assert networks_of("w", room.world) == set()
    # Plain containers are where those may be.
    room.places += [place("open", "10.0.3.5", "w"), place("back", "10.0.2.99", "w")]
    assert networks_of("w", room.world) == {"open"}


def test_only_tasks_that_run_and_are_wanted_lead_somewhere() -> None:
    room = Room()
    other = make_task(2, node_id="m")
    other = but(other, id="other", service_id="web-id")
    room.tasks.append(other)
    for state, wanted, told in (("starting", "running", False), ("running", "running", True),
                                ("running", "shutdown", False)):  # fmt: skip
        room.tasks[-1] = but(other, status__state=state, desired_state=wanted)
        assert (("task", "other") in share("w", room.world)) == told
    room.tasks[0] = but(room.tasks[0], status__state="starting")
    assert ("task", "web-task") in share("w", room.world), "its own"


def test_what_a_node_may_ask_for() -> None:
    room = Room()
    name = room.tasks[0].name
    own = AddressRequest(
        network="front", task="web-task", container="c1" * 32, names=(name, "tasks.web", "site", "c1" * 6)
    )
    assert checked("w", own, room.world) == own
    checked("w", AddressRequest(network="front", host=True), room.world)
    checked("w", AddressRequest(network="ingress", host=True), room.world)
    checked("w", AddressRequest(network="open", container="c1" * 32), room.world)
    checked("x", AddressRequest(network="ingress", task="shop-task"), room.world)
    for node, wish in (
        ("w", AddressRequest(network="back", host=True)),
        ("w", AddressRequest(network="back", task="db-task")),
        ("w", AddressRequest(network="front", task="db-task")),
        ("w", AddressRequest(network="front", container="9f" * 32)),
        ("w", AddressRequest(network="ingress", task="web-task")),
        ("w", AddressRequest(network="nothing", host=True)),
        ("w", AddressRequest(network="front", host=True, mac="02:00:00:00:00:01")),
        ("w", AddressRequest(network="front", task="web-task", mac="02:00:00:00:00:01")),
        ("stranger", AddressRequest(network="front", task="web-task")),
    ):
        with pytest.raises(Forbidden):
            checked(node, wish, room.world)
    for wrong in (
        AddressRequest(network="front", task="web-task", address="10.0.2.7"),
        AddressRequest(network="front", task="web-task", address="x"),
        AddressRequest(network="front", task="web-task", address6="fd00::1"),
        AddressRequest(network="open", mac="no"),
        AddressRequest(network="front", task="web-task", container="../etc"),
        # A name of choice, were it one.
        AddressRequest(network="front", task="web-task", container="db", names=("db",)),
    ):
        with pytest.raises(InvalidParameter):
            checked("w", wrong, room.world)


def test_an_address_has_one_spelling() -> None:
    room = Room()
    room.networks["front"] = but(room.networks["front"], subnet6="fd00::/64")
    asked = AddressRequest(network="front", task="web-task", address6="FD00:0:0::5")
    assert checked("w", asked, room.world).address6 == "fd00::5"
    for forged in ("fd00::5%x", "fd00::5%x\nremove=true"):
        with pytest.raises(InvalidParameter):
            checked("w", msgspec.structs.replace(asked, address6=forged), room.world)


def test_nobody_is_called_as_another_service() -> None:
    room = Room()
    room.service("api", "front", node="m", alias="gate")
    asked = AddressRequest(
        network="front", task="web-task", names=("Api", "tasks.api", "gate", "tasks.GATE", "web", "own", "")
    )
    assert checked("w", asked, room.world).names == ("web",)
    plain = AddressRequest(network="open", names=("web", "x" * 300))
    assert checked("w", plain, room.world).names == ("web",), "which is another network's"


def test_a_task_has_the_names_that_follow_from_the_records() -> None:
    room = Room()
    task = room.tasks[0]
    invented = ("db", "github.com", "host-1", "host-2")
    asked = AddressRequest(
        network="front", task="web-task", container="c" * 64, names=(task.name, "c" * 12, "web", *invented)
    )
    assert checked("w", asked, room.world).names == (task.name, "c" * 12, "web")
    for hostname, more in (("host-1", ("host-1",)), ("github.com", ("github.com",)), ("{{.Node.ID}}", ("db",))):
        task.spec.container_spec = ContainerSpec(hostname=hostname)
        assert checked("w", asked, room.world).names == (task.name, "c" * 12, "web", *more), "one word for a template"
    # What the template gave elsewhere may be the same here; what others are called there may not.
    room.tasks.append(but(task, id="web-task2", node_id="x"))
    for other, own in (("web-task2", ("db",)), ("", ()), ("db-task", ())):
        room.places.append(place("front", "10.0.1.77", "x", task=other, name="DB"))
        assert checked("w", asked, room.world).names == (task.name, "c" * 12, "web", *(own or ("host-1",))), other
        room.places.pop()


def test_a_plain_container_takes_no_name_of_a_task_or_a_container_elsewhere() -> None:
    room = Room()

    def named(address: str, node: str, *names: str, task: str = "", container: str = "") -> Place:
        made = place("open", address, node, task=task)
        return msgspec.structs.replace(made, names=names, container=container)

    room.places += [
        named("10.0.3.30", "m", "db", "shared", container="e" * 64),
        named("10.0.3.31", "m", "api.1.t", "inner", task="t"),
        named("10.0.3.32", "w", "mine"),
    ]
    asked = AddressRequest(network="open", names=("Db", "shared", "e" * 12, "inner", "api.1.t", "mine", "new"))
    assert checked("w", asked, room.world).names == ("shared", "mine", "new")


def test_keys_are_known_of_hosts_on_the_same_encrypted_network():
    room = Room()
    for number, node in enumerate(list(room.nodes.values()), 1):
        room.nodes[node.id] = but(node, tunnel_key=f"key of {node.id}", tunnel_port=number)
    room.places += [place("front", "10.0.1.30", "m", "host"), place("open", "10.0.3.30", "x", "host")]
    room.places.append(place("front", "10.0.1.31", "x", "service"))
    known: dict[tuple[str, str], Any] = {**share("w", room.world, sought=["open"])}
    assert known["node", "m"].tunnel_key == known["node", "x"].tunnel_key == "", "neither network is encrypted"
    assert known["node", "w"].tunnel_key == "key of w", "its own, to compare"
    room.networks["front"] = but(room.networks["front"], options={"encrypted": ""})
    known = {**share("w", room.world, sought=["open"])}
    assert (known["node", "m"].tunnel_key, known["node", "m"].tunnel_port) == ("key of m", 1)
    assert (known["node", "x"].tunnel_key, known["node", "x"].tunnel_port) == ("", 0)


@pytest.mark.parametrize(
    ("key", "port", "error"),
    [("what", 51820, InvalidParameter), (text_of_key(b"1" * 32), 0, InvalidParameter), ("taken", 51820, Forbidden)],
)
def test_a_key_is_one_and_no_other_nodes(key, port, error):
    room = Room()
    taken = text_of_key(b"2" * 32)
    room.nodes["m"] = but(room.nodes["m"], tunnel_key=taken)
    told = TunnelKey(key=taken if key == "taken" else key, port=port)
    with pytest.raises(error):
        checked_key("w", told, room.nodes)
    assert checked_key("m", TunnelKey(key=taken, port=1), room.nodes) == TunnelKey(key=taken, port=1)
