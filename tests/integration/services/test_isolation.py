"""The whole matrix: from every kind of network, the hosts and a machine beside them, to everything that could be
reached there. Who must get an answer gets it, from whom it was meant to; and nobody else gets any.

A manager and its worker, each on a host of its own; beside them a machine that belongs to nobody, with a route to every
network through the first host, and a container of that host on the wire itself (macvlan), with the same routes through
the second. Each container listens at a port that is not published, over TCP and UDP, IPv4 and IPv6; each service does
so behind its virtual address too.
"""

import contextlib
import json
import selectors
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from ipaddress import ip_address, ip_network
from typing import Any, NamedTuple

import pytest

from husk.kernel import namespaces
from husk.network.announcement import checksum
from husk.network.ipam import mac_address
from tests.support import frames
from tests.support.hosts import UPLINK, HostDaemon, Hosts
from tests.support.reach import sandbox, tasks
from tests.support.waiting import until

QUICK = ("--detach", "--no-resolve-image", "--stop-grace-period", "0s")
SLEEP = ("busybox", "sleep", "600")
# At this all listen; the services' ports lead to it, and so does that of a container.
PORT, FORGED, SHARED, PLAIN, VXLAN = 7000, 7001, 8080, 8081, 4789
BRIDGES = {
    "bridge": (),
    "user": ("-d", "bridge", "--ipv6"),
    "apart": ("-d", "bridge", "--ipv6", "-o", "com.docker.network.bridge.enable_icc=false"),
    "inner": ("-d", "bridge", "--ipv6", "--internal"),
}
OVERLAYS: dict[str, tuple[str, ...]] = {
    "open": ("--ipv6",),
    "secret": ("--ipv6", "--opt", "encrypted"),
    "closed": ("--ipv6", "--internal"),
}
WIRE = "wire"
KINDS = {"": socket.SOCK_STREAM, " over UDP": socket.SOCK_DGRAM}
Inside = Callable[[Callable[[], Any]], Any]


class Party(NamedTuple):
    """Somebody who asks, and perhaps answers."""

    name: str
    inside: Inside
    # The host that it is on, and the network; "" for a host itself.
    host: str
    network: str = ""
    address: str = ""
    address6: str = ""


class Place(NamedTuple):
    """A place to ask, and the host that answers there."""

    name: str
    address: str
    port: int
    answering: frozenset[str]
    # Who gets an answer, by what is known of who asks.
    reached: Callable[[Party], bool]


class World(NamedTuple):
    parties: list[Party]
    places: list[Place]


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Hosts(3) as made:
        yield made


@pytest.fixture(scope="module")
def daemons(hosts: Hosts) -> Iterator[list[HostDaemon]]:
    # No address is on both.
    manager, worker = hosts[0].daemon(), hosts[1].daemon("--bip", "172.31.9.1/24")
    manager.docker("swarm", "init", "--advertise-addr", hosts[0].address)
    token = manager.docker("swarm", "join-token", "-q", "worker").stdout.strip()
    worker.docker("swarm", "join", "--token", token, hosts[0].address)
    yield [manager, worker]
    for daemon in (worker, manager):
        daemon.remove_containers()
        daemon.docker("swarm", "leave", "--force")
        assert daemon.close() == []


def network_of(daemon: HostDaemon, name: str) -> dict[str, Any]:
    [found] = json.loads(daemon.docker("network", "inspect", name).stdout)
    return dict(found)


def party(daemon: HostDaemon, container: str, network: str) -> Party:
    found = json.loads(daemon.docker("inspect", container).stdout)[0]["NetworkSettings"]["Networks"]
    inside = partial(namespaces.run_inside, sandbox(daemon, container))
    name = f"{network} on {daemon.where.name} ({container[:12]})"
    own = found[network]
    return Party(name, inside, daemon.where.name, network, own["IPAddress"], own["GlobalIPv6Address"])


@pytest.fixture(scope="module")
def world(hosts: Hosts, daemons: list[HostDaemon]) -> Iterator[World]:
    manager, worker = daemons
    machine = hosts[2]
    for name, options in BRIDGES.items():
        if options:
            manager.docker("network", "create", *options, name)
        publish = ("-p", f"{PLAIN}:{PORT}", "-p", f"{PLAIN}:{PORT}/udp") if name == "user" else ()
        for number in range(2):
            manager.docker("run", "-d", "--name", f"{name}{number}", "--network", name, *publish, *SLEEP)
            publish = ()
    worker.docker("run", "-d", "--name", "bridge2", *SLEEP)
    for name, options in OVERLAYS.items():
        manager.docker("network", "create", "-d", "overlay", "--attachable", *options, name)
        manager.docker(
            "service", "create", "--name", f"on-{name}", *QUICK, "--mode", "global", "--network", name, *SLEEP
        )
        manager.docker("run", "-d", "--name", f"{name}0", "--network", name, *SLEEP)
    shared = ("--publish", f"{SHARED}:{PORT}", "--publish", f"{SHARED}:{PORT}/udp")
    manager.docker("service", "create", "--name", "web", *QUICK, "--mode", "global", *shared, *SLEEP)
    on_wire = ("--subnet", "192.0.2.0/24", "--ip-range", "192.0.2.192/28")
    manager.docker("network", "create", "-d", "macvlan", "-o", f"parent={UPLINK}", *on_wire, WIRE)
    manager.docker("run", "-d", "--name", "wire0", "--network", WIRE, "--privileged", *SLEEP)
    manager.docker("service", "create", "--name", "idle", *QUICK, "--replicas", "0", "--network", "open", *SLEEP)
    services = [*(f"on-{name}" for name in OVERLAYS), "web"]
    until(lambda: all(len(tasks(d, s)) == 1 for d in daemons for s in services), "all tasks", 60)
    parties = [party(manager, f"{name}{number}", name) for name in BRIDGES for number in range(2)]
    parties += [party(worker, "bridge2", "bridge"), *(party(manager, f"{name}0", name) for name in OVERLAYS)]
    tasks_of: dict[str, list[Party]] = {}
    for name in (*OVERLAYS, "ingress"):
        service = "web" if name == "ingress" else f"on-{name}"
        tasks_of[name] = [party(daemon, tasks(daemon, service)[0], name) for daemon in daemons]
    parties += [one for some in tasks_of.values() for one in some]
    parties.append(party(manager, "wire0", WIRE))
    nodes = [daemon.where for daemon in daemons]
    outside = Party("a machine beside them", machine.inside, "", "", machine.address, machine.address6)
    everybody = [*parties, *(Party(host.name, host.inside, host.name) for host in nodes), outside]
    places = [place for one in parties for place in direct(one)]
    for service, name in (*((f"on-{name}", name) for name in OVERLAYS), ("web", "ingress"), ("idle", "open")):
        [told] = json.loads(manager.docker("service", "inspect", service).stdout)
        own = network_of(manager, name)["Id"]
        for virtual in [one["Addr"] for one in told["Endpoint"]["VirtualIPs"] if one["NetworkID"] == own]:
            address = virtual.partition("/")[0]
            if service != "idle":
                places.append(behind(name, address, tasks_of[name]))
            # Published ports are had at the host's own addresses.
            for port in (SHARED, PLAIN):
                shown = f"port {port} of {service}'s virtual address {address}"
                places.append(Place(shown, address, port, frozenset(), nobody))
    web = frozenset(one.name for one in tasks_of["ingress"])
    for host in nodes:
        reached = partial(leads_to, host.name)
        places.append(Place(f"the service's port of {host.name}", host.address, SHARED, web, reached))
    published = frozenset({party(manager, "user0", "user").name})
    for address in (manager.where.address, manager.where.address6):
        reached = partial(leads_to, manager.where.name, by6=":" in address)
        places.append(Place(f"a container's port at {address}", address, PLAIN, published, reached))
    for network in (*BRIDGES, *OVERLAYS, "ingress"):
        for config in network_of(manager, network)["IPAM"]["Config"]:
            subnet = ip_network(config["Subnet"])
            own, other = (
                (one.address6 if subnet.version == 6 else one.address) for one in (manager.where, worker.where)
            )
            machine.run("ip", "route", "add", str(subnet), "via", own)
            if subnet.version == 4:
                route = ["ip", "route", "add", str(subnet), "via", other]
                parties[-1].inside(partial(subprocess.run, route, check=True))
    with ExitStack() as stack:
        for one in parties:
            stack.enter_context(telling(one.inside, one.name))
        yield World(everybody, places)


def nobody(_: Party) -> bool:
    return False


def leads_out(asking: Party) -> bool:
    """All reach the hosts' addresses, but those whose network leads nowhere."""
    return asking.network not in ("inner", "closed")


def leads_to(host: str, asking: Party, by6: bool = False) -> bool:
    """As `leads_out`, to one host: from its own wire the kernel lets nobody to it."""
    has6 = bool(asking.address6) or not asking.network
    return leads_out(asking) and not (asking.network == WIRE and asking.host == host) and (has6 or not by6)


def direct(target: Party) -> list[Place]:
    def reached(asking: Party) -> bool:
        if target.network == WIRE:
            # Its own host is none of its neighbours: who comes by that has no answer.
            return asking == target or (asking.host != target.host and leads_out(asking))
        if asking.network == target.network:
            same = asking.host == target.host or target.network not in BRIDGES
            return same and (target.network != "apart" or asking.name == target.name)
        return not asking.network and asking.host == target.host

    addresses = filter(None, (target.address, target.address6))
    answering = frozenset({target.name})
    return [Place(f"{target.name} itself ({address})", address, PORT, answering, reached) for address in addresses]


def behind(network: str, address: str, targets: list[Party]) -> Place:
    """A service's virtual address. That on the ingress network leads nowhere: what is reached there is published."""

    def reached(asking: Party) -> bool:
        return network != "ingress" and (asking.network == network or (not asking.network and bool(asking.host)))

    return Place(
        f"{network}'s virtual address {address}", address, PORT, frozenset(one.name for one in targets), reached
    )


def unspecified(asking: Party, place: Place) -> bool:
    """A host is no part of the networks that lead to others: what it says to a container elsewhere is not held."""
    elsewhere = " itself (" in place.name and f" on {asking.host} " not in place.name
    return not asking.network and bool(asking.host) and elsewhere and not place.name.startswith(WIRE)


@contextlib.contextmanager
def telling(where: Inside, word: str) -> Iterator[None]:
    """Tell this word to whoever comes, over TCP and UDP, IPv4 and IPv6."""

    def listen() -> list[socket.socket]:
        made = []
        for family, any in ((socket.AF_INET, ""), (socket.AF_INET6, "::")):
            for kind in KINDS.values():
                made.append(one := socket.socket(family, kind))
                if family == socket.AF_INET6:
                    one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                one.bind((any, PORT))
                if kind == socket.SOCK_STREAM:
                    one.listen(256)
                one.setblocking(False)
        return made

    ended = threading.Event()

    def answer(ear: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if ear.type == socket.SOCK_DGRAM:
                ear.sendto(word.encode(), ear.recvfrom(100)[1])
            else:
                with ear.accept()[0] as channel:
                    channel.sendall(word.encode())

    def serve() -> None:
        with selectors.DefaultSelector() as waiting:
            for ear in ears:
                waiting.register(ear, selectors.EVENT_READ)
            while not ended.is_set():
                for key, _ in waiting.select(0.1):
                    answer(key.fileobj)  # type: ignore[arg-type]

    ears = where(listen)
    serving = threading.Thread(target=serve, daemon=True)
    serving.start()
    try:
        yield
    finally:
        ended.set()
        serving.join()
        for ear in ears:
            ear.close()


def asked(asking: Party, places: list[Place], last: list[Place]) -> dict[str, str]:
    """Return the one that answers at each place; of those that never do, none. `last` are those that do: when all of
    these have answered, the others have had their time."""
    found: dict[str, str] = {}
    with selectors.DefaultSelector() as waiting, contextlib.ExitStack() as stack:
        wanted = {place.name + how for place in last for how in KINDS}
        for place in (*places, *last):
            for how, kind in KINDS.items():

                def begin(place: Place = place, kind: int = kind) -> socket.socket:
                    made = socket.socket(socket.AF_INET6 if ":" in place.address else socket.AF_INET, kind)
                    made.setblocking(False)
                    with contextlib.suppress(OSError):
                        made.connect_ex((place.address, place.port))
                        if kind == socket.SOCK_DGRAM:
                            made.send(b"?")
                    return made

                channel = stack.enter_context(asking.inside(begin))
                waiting.register(channel, selectors.EVENT_READ, place.name + how)

        def hear(seconds: float) -> bool:
            ready = waiting.select(seconds)
            for key, _ in ready:
                waiting.unregister(key.fileobj)
                with contextlib.suppress(OSError):
                    if told := key.fileobj.recv(200):  # type: ignore[union-attr]
                        found[key.data] = told.decode()
            return bool(ready)

        while wanted - found.keys() and hear(10):
            pass
        # One that was asked before has its answer here by now.
        hear(0)
    return found


def test_who_reaches_whom(world: World) -> None:
    wrong = []
    for asking in world.parties:
        held = [place for place in world.places if not unspecified(asking, place)]
        reached = [place for place in held if place.reached(asking)]
        found = asked(asking, [place for place in held if place not in reached], reached)
        for place in held:
            for how in KINDS:
                answer = found.get(place.name + how, "")
                if place in reached and answer not in place.answering:
                    wrong.append(f"{asking.name} gets {answer or 'no answer'} from {place.name}{how}")
                if place not in reached and answer:
                    wrong.append(f"{asking.name} is answered by {answer} at {place.name}{how}")
    assert not wrong, "\n" + "\n".join(wrong)


def test_what_hosts_send_one_another_is_taken_from_hosts_alone(world: World, daemons: list[HostDaemon]) -> None:
    nodes = [daemon.where for daemon in daemons]
    interface = f"vx-{network_of(daemons[0], 'open')['Id'][:12]}"
    number = int(nodes[0].run("ip", "-d", "link", "show", interface).partition("vxlan id ")[2].split()[0])
    first, second = (next(p for p in world.parties if p.network == "open" and p.host == node.name) for node in nodes)
    strangers = [p for p in world.parties if p.name not in (first.name, second.name) and p.host not in ("", p.name)]
    strangers.append(world.parties[-1])
    one, two = nodes
    for node, other, target, sender in ((one, two, first, second), (two, one, second, first)):

        def wrapped(data: bytes, target: Party = target, sender: Party = sender) -> bytes:
            source, to = (mac_address(ip_address(one.address)) for one in (sender, target))
            frame = frames.udp(source, to, (sender.address, 9), (target.address, FORGED), data)
            return struct.pack("!II", 1 << 27, number << 8) + frame

        def send(data: bytes, *addresses: str) -> None:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
                for address in addresses:
                    # One without a way there has tried it, too.
                    with contextlib.suppress(OSError):
                        channel.sendto(data, (address, VXLAN))

        def listen(target: Party = target) -> socket.socket:
            made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            made.bind((target.address, FORGED))
            made.settimeout(10)
            return made

        with target.inside(listen) as ear:
            for stranger in strangers:
                at = [node.address, f"{stranger.address.rpartition('.')[0]}.1", "127.0.0.1"]
                stranger.inside(partial(send, wrapped(f"forged by {stranger.name}".encode()), *at))
            # In the other host's name or in pieces, by who may make any packet.
            for stranger in strangers[:-1]:
                if stranger.host == node.name and leads_out(stranger) and stranger.network != WIRE:
                    gateway = f"{stranger.address.rpartition('.')[0]}.1"
                    for claimed in (other.address, stranger.address):
                        lie = wrapped(f"in the name of {claimed}".encode())
                        for pieces in (1, 3):
                            way = (gateway, (claimed, 9), (node.address, VXLAN), lie, pieces)
                            stranger.inside(partial(spoof, *way))
            for pieces in (1, 3):
                told = f"from the host in {pieces}".encode()
                way = (node.address, (other.address, 9), (node.address, VXLAN), wrapped(told), pieces)
                other.inside(partial(spoof, *way))
                assert ear.recv(100) == told
            ear.setblocking(False)
            with pytest.raises(BlockingIOError):
                ear.recv(100)


def spoof(neighbour: str, sender: tuple[str, int], receiver: tuple[str, int], data: bytes, pieces: int = 1) -> None:
    """Send to the neighbour what the sender may have sent, in so many pieces."""
    entry = subprocess.check_output(["ip", "neigh", "show", neighbour], text=True)
    whole = frames.udp("02:42:00:00:00:99", entry.split("lladdr ")[1].split()[0], sender, receiver, data)
    head, body = whole[:34], whole[34:]
    size = -(-len(body) // pieces // 8) * 8
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind(("eth0", 0))
        for begin in range(0, len(body), size):
            more = 0x2000 if begin + size < len(body) else 0
            some = body[begin : begin + size]
            ip = head[14:16] + struct.pack("!HHH", 20 + len(some), 4711, more | begin // 8) + head[22:24] + b"\0\0"
            ip += head[26:34]
            raw.send(head[:14] + ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:] + some)
