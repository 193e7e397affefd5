"""The share of a node in the swarm's networks: those that its own tasks are on, and the ingress network. Pure.

Of each it is told the definition, all addresses, the services there and which of their tasks run, and where the hosts
are: what its names, virtual addresses and tables of the kernel are made of. Of hosts with which it shares an encrypted
network it is told the public keys, too. Of services that it knows by their
published ports alone it is told neither the name nor anything else. As `share`, this is kept whatever the node asks.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from ipaddress import ip_address, ip_network
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from husk.engine.model.network import Network
from husk.engine.networks.overlays import encrypted
from husk.engine.networks.sharing import Place
from husk.errors import Forbidden, InvalidParameter, NotFound
from husk.network.wireguard.parties import key_of_text, text_of_key
from husk.swarm.model.node import Node, NodeStatus
from husk.swarm.model.services import (
    EndpointSpec,
    Mode,
    NetworkAttachment,
    Service,
    ServiceSpec,
    Task,
    TaskSpec,
    TaskStatus,
    any_ingress,
    is_assigned,
    is_reached,
)
from husk.swarm.spec.containers import attachments

Name = tuple[str, str]
NODE, SERVICE, TASK, NETWORK, ADDRESS = "node", "service", "task", "overlay", "address"
NOT_YOURS = "no task of this node is on that network"
_MOST_NAMES, _LONGEST = 64, 255
_WORD = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_CONTAINER = re.compile(r"[0-9a-f]{64}")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


class KnownNetworks(NamedTuple):
    """All there is, as a manager knows it."""

    networks: Mapping[str, Network]
    services: Mapping[str, Service]
    nodes: Mapping[str, Node]
    tasks_on: Callable[[str], Iterable[Task]]
    tasks_of: Callable[[str], Iterable[Task]]
    places_of: Callable[[Network], Iterable[Place]]
    places_on: Callable[[str], Iterable[Place]]


def networks_of(node_id: str, world: KnownNetworks) -> set[str]:
    """The networks that a node's tasks are on, or its plain containers where those may be, by id."""
    own = {task.id: task for task in world.tasks_on(node_id) if is_assigned(task)}
    found = set()
    for task in own.values():
        if (service := world.services.get(task.service_id)) is not None:
            found |= {attachment.target for attachment in attachments(service)}
    for place in world.places_on(node_id):
        network = world.networks.get(place.network)
        attached = place.kind == "endpoint" and network is not None
        if attached and (place.task in own if place.task else network is not None and network.attachable):
            found.add(place.network)
    return {id for id in found if id in world.networks}


def ingress_of(world: KnownNetworks) -> set[str]:
    """The ingress network, where ports are published: every node answers there."""
    published = any(any_ingress(service.ports) for service in world.services.values())
    return {id for id, network in world.networks.items() if network.ingress and published}


def share(node_id: str, world: KnownNetworks, sought: Collection[str] = ()) -> dict[Name, Struct]:
    """All that a node is told, by (kind, key). `sought` are networks that a plain container of it is about to be on."""
    named, ingress = named_by(node_id, world, sought), frozenset(ingress_of(world))
    common = view(named, ingress, world)
    return {**common, **own(node_id, common, world)}


def named_by(node_id: str, world: KnownNetworks, sought: Collection[str] = ()) -> frozenset[str]:
    """The networks that a node is told all of."""
    return frozenset(networks_of(node_id, world)) | {id for id in sought if id in world.networks}


def view(named: frozenset[str], ingress: frozenset[str], world: KnownNetworks) -> dict[Name, Struct]:
    """Return what all nodes are told alike that are told all of the `named` networks; of `ingress` without names."""
    # Every node shows the ingress network, as with Docker; what is on it is told where ports are published.
    known: dict[Name, Struct] = {(NETWORK, id): one for id, one in world.networks.items() if one.ingress}
    nodes, known_by_key = set(), set()
    for id in sorted(named | ingress):
        network = world.networks[id]
        known[NETWORK, id] = network
        for place in world.places_of(network):
            known[ADDRESS, place.key] = place if id in named else replace(place, names=())
            nodes.add(place.node)
            if encrypted(network) and place.kind != "service":
                known_by_key.add(place.node)
    for service in world.services.values():
        if (reduced := _service(service, named, ingress)) is not None:
            known[SERVICE, service.id] = reduced
            for task in world.tasks_of(service.id):
                if is_reached(task):
                    known[TASK, task.id] = _task(task, reduced.spec.name, False)
    for id in nodes:
        if (node := world.nodes.get(id)) is not None:
            known[NODE, id] = _node(node, with_key=id in known_by_key)
    return known


def own(node_id: str, common: Mapping[Name, Struct], world: KnownNetworks) -> dict[Name, Struct]:
    """Return what a node alone is told, besides a view or in place of a part of it: of itself, and of its own tasks."""
    known: dict[Name, Struct] = {}
    for task in world.tasks_on(node_id):
        reduced = common.get((SERVICE, task.service_id))
        if isinstance(reduced, Service) and task.alive:
            known[TASK, task.id] = _task(task, reduced.spec.name, True)
    if (node := world.nodes.get(node_id)) is not None:
        known[NODE, node_id] = _node(node, with_key=True)
    return known


def _service(service: Service, named: Set[str], ingress: Set[str]) -> Service | None:
    virtual = [entry for entry in service.virtual_ips if entry.network_id in named | ingress]
    networks = [
        NetworkAttachment(target=one.target, aliases=one.aliases) for one in attachments(service) if one.target in named
    ]
    by_name = bool(networks) or any(entry.network_id in named for entry in virtual)
    ports = service.ports if by_name or virtual else []
    if not by_name and not any_ingress(ports):
        return None
    mode = service.spec.endpoint_spec.mode if service.spec.endpoint_spec is not None else ""
    return Service(
        id=service.id,
        version=0,
        created_at="",
        updated_at="",
        spec=ServiceSpec(
            name=service.spec.name if by_name else service.id,
            endpoint_spec=EndpointSpec(mode=mode) if mode else None,
            task_template=TaskSpec(networks=networks),
            mode=Mode(),
        ),
        ports=[port for port in ports if port.publish_mode == "ingress"],
        virtual_ips=virtual,
    )


def _task(task: Task, service_name: str, own: bool) -> Task:
    return Task(
        id=task.id,
        version=0,
        created_at="",
        created_ns=0,
        updated_at="",
        service_id=task.service_id,
        service_name=service_name,
        slot=task.slot,
        node_id=task.node_id,
        spec=TaskSpec(),
        spec_version=0,
        status=TaskStatus(timestamp="", state=task.status.state, container_id=task.status.container_id if own else ""),
        desired_state=task.desired_state,
    )


def _node(node: Node, with_key: bool) -> Node:
    return Node(
        id=node.id,
        version=0,
        created_at="",
        updated_at="",
        status=NodeStatus(state=node.status.state, addr=node.status.addr),
        data_path=node.data_path,
        tunnel_key=node.tunnel_key if with_key else "",
        tunnel_port=node.tunnel_port if with_key else 0,
    )


class TunnelKey(Struct, kw_only=True):
    """The public key and the port of a node's end of the tunnel that encrypted networks run over."""

    key: str
    port: int


def checked_key(node_id: str, told: TunnelKey, nodes: Mapping[str, Node]) -> TunnelKey:
    """The same in its usual form; raises where it is no key, or another node's."""
    if not 1 <= told.port <= 65535:
        raise InvalidParameter(f"{told.port} is no UDP port")
    key = text_of_key(key_of_text(told.key))
    if any(node.tunnel_key == key for node in nodes.values() if node.id != node_id):
        raise Forbidden("this key is another node's")
    return TunnelKey(key=key, port=told.port)


class AddressRequest(Struct, kw_only=True, omit_defaults=True):
    """An address that a node asks for: for a container, or for itself (`host`)."""

    network: str
    host: bool = False
    names: tuple[str, ...] = ()
    container: str = ""
    task: str = ""
    address: str = ""
    address6: str = ""
    mac: str = ""
    ipv6: bool = True


def attachable(reference: str, world: KnownNetworks) -> Network:
    """The network that a node asks for by id, name, or unique leading part of an id; plain containers may be there."""
    exact = [network for network in world.networks.values() if reference in (network.id, network.name)]
    near = [network for network in world.networks.values() if reference and network.id.startswith(reference)]
    found = exact or near
    if len(found) != 1:
        raise NotFound(f"network {reference[:_LONGEST]} not found")
    if not found[0].attachable:
        name = found[0].name
        raise Forbidden(
            f"Could not attach to network {name}: rpc error: code = PermissionDenied desc = network {name} not "
            "manually attachable"
        )
    return found[0]


def checked(node_id: str, wish: AddressRequest, world: KnownNetworks, sought: Collection[str] = ()) -> AddressRequest:
    """The wish, with the names that may be had; raises where it is not the node's to have."""
    network = world.networks.get(wish.network)
    known = wish.network in sought or wish.network in networks_of(node_id, world)
    visible = network is not None and (known or network.ingress)
    plain = network is not None and network.attachable and not wish.host and not wish.task
    if network is None or not (visible or plain):
        raise Forbidden(NOT_YOURS)
    task = next((task for task in world.tasks_on(node_id) if task.id == wish.task and is_assigned(task)), None)
    service = world.services.get(task.service_id) if task is not None else None
    if not wish.host and not plain and not (service is not None and _is_on(service, network)):
        raise Forbidden(NOT_YOURS)
    address = _normal(wish.address, network.subnet, network) if wish.address else ""
    address6 = _normal(wish.address6, network.subnet6, network) if wish.address6 else ""
    if wish.mac and not _MAC.fullmatch(wish.mac.replace("-", ":").lower()):
        raise InvalidParameter(f"invalid MAC address {wish.mac[:40]!r}")
    # The beginning is a name, which is nobody's choice.
    if wish.container and not _CONTAINER.fullmatch(wish.container):
        raise InvalidParameter("the id of a container has 64 hexadecimal digits")
    if wish.mac and not plain:
        raise Forbidden("a plain container may choose its MAC address, and nobody else")
    names = _names(wish.names, network, service, world.services.values())
    if task is not None and service is not None:
        names = _of_task(names, wish, task, service, _others_names(node_id, network, world, service))
    elif names:
        taken = _others_names(node_id, network, world)
        names = tuple(name for name in names if name.lower() not in taken)
    return replace(wish, address=address, address6=address6, names=names)


def _is_on(service: Service, network: Network) -> bool:
    on = [attachment.target for attachment in attachments(service)]
    return network.id in (*on, *(entry.network_id for entry in service.virtual_ips))


def _normal(address: str, subnet: str, network: Network) -> str:
    """As we write it: it is the key of a record, and another spelling would be another record."""
    try:
        given = ip_address(address)
        if subnet and given in ip_network(subnet) and "%" not in address:
            return str(given)
    except ValueError:
        pass
    raise InvalidParameter(f"{address[:60]!r} is no address of network {network.name}")


def _names(names: Sequence[str], network: Network, own: Service | None, services: Iterable[Service]) -> tuple[str, ...]:
    """Without those that other services have on the network: nobody takes another's place by calling itself so."""
    taken = set()
    for service in services:
        if own is None or service.id != own.id:
            for attachment in attachments(service):
                if attachment.target == network.id:
                    for name in (service.spec.name, *attachment.aliases):
                        taken |= {name.lower(), f"tasks.{name}".lower()}
    mine = set()
    if own is not None:
        for attachment in attachments(own):
            for name in (own.spec.name, *attachment.aliases):
                mine |= {name.lower(), f"tasks.{name}".lower()}
    kept = [name for name in names[:_MOST_NAMES] if name and len(name) <= _LONGEST]
    return tuple(name for name in kept if name.lower() in mine or name.lower() not in taken)


def _of_task(
    names: Sequence[str], wish: AddressRequest, task: Task, service: Service, others: Collection[str]
) -> tuple[str, ...]:
    """Of the names those that follow from the records: a worker invents none for a task that it was given."""
    own = {task.name, wish.container[:12]}
    for attachment in attachments(service):
        if attachment.target == wish.network:
            for name in (service.spec.name, *attachment.aliases):
                own |= {name, f"tasks.{name}"}
    spec = task.spec.container_spec
    hostname = spec.hostname if spec is not None else ""
    if "{{" not in hostname:
        own.add(hostname)
    # What a template says, the node knows: one more name, of one word.
    words = [name for name in names if name not in own and _WORD.fullmatch(name) and name.lower() not in others]
    more = words[0] if words and "{{" in hostname else ""
    return tuple(name for name in names if name in own or (more and name == more))


def _others_names(node_id: str, network: Network, world: KnownNetworks, own: Service | None = None) -> set[str]:
    """Those of tasks of other services, and the own names of containers, on other nodes, in small letters. Aliases may
    be shared, as by Docker."""
    same = {task.id for task in world.tasks_of(own.id)} if own is not None else set()
    taken: set[str] = set()
    for place in world.places_of(network):
        if place.node != node_id and place.kind == "endpoint" and not (place.task and place.task in same):
            known = place.names if place.task else (*place.names[:1], place.container[:12])
            taken.update(name.lower() for name in known)
    return taken
