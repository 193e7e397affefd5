"""A manager and its worker, each on a host of its own: encrypted overlay networks, and what is seen of them between
the hosts."""

import json
import os
import signal
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from ipaddress import ip_address

import pytest

from husk.kernel import namespaces
from husk.network.wireguard.parties import inner_address
from husk.network.wireguard.program import running
from tests.support.hosts import UPLINK, HostDaemon, Hosts
from tests.support.overlays import Connection, echo
from tests.support.reach import SERVE, address, all_answer, fetched, reaches, resolved, sandbox, tasks
from tests.support.waiting import until

QUICK = ("--detach", "--no-resolve-image", "--stop-grace-period", "0s")
MARK = b"nobody between the hosts may read this"
VXLAN, WIREGUARD = 4789, 51820


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Hosts(2) as made:
        yield made


@pytest.fixture(scope="module")
def daemons(hosts: Hosts) -> Iterator[list[HostDaemon]]:
    manager, worker = (host.daemon() for host in hosts)
    manager.docker("swarm", "init", "--advertise-addr", hosts[0].address)
    # From the time when the manager was alone.
    manager.docker("network", "create", "--driver", "overlay", "--opt", "encrypted", "--attachable", "secret")
    manager.docker("run", "-d", "--name", "old", "--network", "secret", "busybox", "sh", "-c", SERVE)
    token = manager.docker("swarm", "join-token", "-q", "worker").stdout.strip()
    worker.docker("swarm", "join", "--token", token, hosts[0].address)
    manager.docker("network", "create", "--driver", "overlay", "--attachable", "plain")
    for network in ("secret", "plain"):
        options = ("--mode", "global", "--network", network)
        manager.docker("service", "create", "--name", f"on-{network}", *QUICK, *options, "busybox", "sh", "-c", SERVE)
    until(lambda: all(len(tasks(d, s)) == 1 for d in (manager, worker) for s in ("on-secret", "on-plain")), "tasks", 30)
    yield [manager, worker]
    for daemon in (worker, manager):
        daemon.docker("rm", "-f", "old", check=False)
        daemon.docker("swarm", "leave", "--force")
        assert daemon.close() == []


def tunnel(daemon: HostDaemon) -> str:
    return f"wg-{daemon.config.instance}"


def programs(daemon: HostDaemon) -> list[int]:
    return running(tunnel(daemon))


def ports(frames: list[bytes]) -> set[int]:
    """To which UDP ports frames over IPv4 went."""
    packets = [frame[14:] for frame in frames if frame[12:14] == b"\x08\x00"]
    return {int(struct.unpack_from("!H", one, (one[0] & 15) * 4 + 2)[0]) for one in packets if one[9] == 17}


def exchange(hosts: Hosts, daemons: list[HostDaemon], network: str) -> list[bytes]:
    """A task tells the other something; all that is seen of it between the hosts."""
    manager, worker = daemons
    [server], [client] = tasks(manager, f"on-{network}"), tasks(worker, f"on-{network}")
    inside = [partial(namespaces.run_inside, sandbox(d, c)) for d, c in ((manager, server), (worker, client))]
    where = address(manager, server, network)
    with ExitStack() as stack:
        stack.enter_context(echo(inside[0], 81, "word"))
        until(lambda: reaches(inside[1], where, 81, "word"), f"an answer on {network}")
        frames = stack.enter_context(hosts.listening())
        connection = stack.enter_context(Connection(inside[1], where, 81))
        # Packets of the largest size, both ways.
        assert connection.says(MARK * 1000)
    return frames


def test_names_and_virtual_addresses_lead_to_both(daemons: list[HostDaemon]) -> None:
    every = {task[:12] for daemon in daemons for task in tasks(daemon, "on-secret")}
    places = {address(daemon, task, "secret") for daemon in daemons for task in tasks(daemon, "on-secret")}
    [old] = daemons[0].docker("ps", "-q", "--filter", "name=old").stdout.split()
    before = address(daemons[0], "old", "secret")
    for daemon in daemons:
        [asking] = tasks(daemon, "on-secret")
        until(partial(lambda d, c: resolved(d, c, "tasks.on-secret") == places, daemon, asking), "the tasks' addresses")
        (virtual,) = resolved(daemon, asking, "on-secret")
        until(partial(all_answer, partial(fetched, daemon, asking, virtual), every), "all tasks behind the name")
        until(partial(lambda d, c: fetched(d, c, before) == old, daemon, asking), "what was there before")
    assert [len(programs(daemon)) for daemon in daemons] in ([1, 1], [0, 0]), "one for all, or the kernel"


def test_nothing_of_it_is_to_be_read_between_the_hosts(hosts: Hosts, daemons: list[HostDaemon]) -> None:
    plain, secret = exchange(hosts, daemons, "plain"), exchange(hosts, daemons, "secret")
    assert any(MARK in frame for frame in plain) and VXLAN in ports(plain)
    assert not any(MARK in frame for frame in secret)
    assert WIREGUARD in ports(secret) and VXLAN not in ports(secret)
    assert max(map(len, secret)) <= 1514, "nothing had to be cut into pieces"


def test_connections_outlive_daemons_and_the_program(daemons: list[HostDaemon]) -> None:
    manager, worker = daemons
    [server], [client] = tasks(manager, "on-secret"), tasks(worker, "on-secret")
    inside = [partial(namespaces.run_inside, sandbox(d, c)) for d, c in ((manager, server), (worker, client))]
    where = address(manager, server, "secret")
    before = [programs(daemon) for daemon in daemons]
    with ExitStack() as stack:
        stack.enter_context(echo(inside[0], 82, "word"))
        until(lambda: reaches(inside[1], where, 82, "word"), "an answer")
        connection = stack.enter_context(Connection(inside[1], where, 82, seconds=60))
        for daemon in daemons:
            if daemon is manager:
                daemon.stop()
            else:
                daemon.kill9()
            assert connection.says(MARK)
            daemon.start()
            assert connection.says(MARK)
        until(lambda: reaches(inside[1], where, 82, "word"), "new connections")
        assert [programs(daemon) for daemon in daemons] == before
        for daemon, running in zip(daemons, before, strict=True):
            for pid in running:
                os.kill(pid, signal.SIGKILL)
                until(partial(lambda d: programs(d) not in ([], before[0], before[1]), daemon), "it runs again")
            assert connection.says(MARK)
        # A key that nobody knows any more: all of it ends at once.
        if before[1]:
            worker.kill9()
            [pid] = programs(worker)
            os.kill(pid, signal.SIGKILL)
            worker.start()
            assert connection.says(MARK)


def test_what_somebody_deletes_comes_back(daemons: list[HostDaemon]) -> None:
    manager, worker = daemons
    for network in ("plain", "secret"):
        [asking], [asked] = tasks(worker, f"on-{network}"), tasks(manager, f"on-{network}")
        where = address(manager, asked, network)
        until(partial(lambda c, w, a: fetched(worker, c, w) == a[:12], asking, where, asked), "an answer")
        for interface in [name for name in worker.where.links() if name.startswith("vx-")]:
            worker.where.run("ip", "link", "delete", interface)
        until(partial(lambda c, w, a: fetched(worker, c, w) == a[:12], asking, where, asked), f"{network} again")
    worker.where.run("ip", "link", "delete", tunnel(worker))
    until(lambda: fetched(worker, asking, where) == asked[:12], "the tunnel again", 30)


def forged(vni: int, target: str, mac: str) -> bytes:
    """A frame that says it is of this network: a datagram for a task's port 9, in VXLAN."""
    udp = struct.pack("!HHHH", 9, 9, 8 + len(MARK), 0) + MARK
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0)
    head += ip_address("10.0.0.99").packed + ip_address(target).packed
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack("!H", ~total & 0xFFFF) + head[12:]
    frame = bytes.fromhex(mac.replace(":", "")) + bytes.fromhex("0242deadbeef") + b"\x08\x00" + head + udp
    return struct.pack("!II", 0x08 << 24, vni << 8) + frame


@pytest.mark.parametrize(("network", "heard"), [("plain", True), ("secret", False)])
def test_plain_packets_do_not_get_into_it(daemons: list[HostDaemon], network: str, heard: bool) -> None:
    manager, worker = daemons
    [task] = tasks(manager, f"on-{network}")
    where = address(manager, task, network)
    found = json.loads(manager.docker("inspect", task).stdout)[0]["NetworkSettings"]["Networks"][network]
    node = json.loads(manager.http("GET", "/info").body)["Swarm"]["NodeID"]
    said = manager.where.run("ip", "-d", "link", "show", f"vx-{found['NetworkID'][:12]}").split()
    packet = forged(int(said[said.index("vxlan") + 2]), where, found["MacAddress"])

    def listen() -> socket.socket:
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
        made.settimeout(0.1)
        return made

    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as four:
            four.sendto(packet, (manager.where.address, VXLAN))
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as six:
            six.sendto(packet, (manager.where.address6, VXLAN))
            # As if the host's address inside of the tunnel were one of the wire, too.
            six.sendto(packet, (inner_address(node), VXLAN, 0, socket.if_nametoindex(UPLINK)))

    inner, rules = inner_address(node), f"{manager.config.nft_table}-wg"
    manager.where.run("ip", "address", "add", f"{inner}/128", "dev", UPLINK, "nodad")
    try:
        with namespaces.run_inside(sandbox(manager, task), listen) as ear:

            def arrives() -> bool:
                # The kernel alone: no rule is needed for it.
                manager.where.run("nft", "delete", "table", "ip6", rules, check=False)
                worker.where.inside(send)
                try:
                    while MARK not in ear.recv(1 << 16):
                        pass
                except TimeoutError:
                    return False
                return True

            if heard:
                until(arrives, "what was forged, on a network that is not encrypted")
            else:
                assert not any(arrives() for _ in range(5))
        until(lambda: rules in manager.where.run("nft", "list", "tables"), "the rules again")
    finally:
        manager.where.run("ip", "address", "delete", f"{inner}/128", "dev", UPLINK)


def test_a_host_without_wireguard_says_so(daemons: list[HostDaemon]) -> None:
    manager, worker = daemons
    if not programs(worker):
        pytest.skip("the kernel has WireGuard")
    manager.docker("service", "rm", "on-secret")
    until(lambda: programs(worker) == [] and tunnel(worker) not in worker.where.links(), "no tunnel without a network")
    worker.program_environment["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    worker.restart()
    refused = worker.docker("run", "--rm", "--network", "secret", "busybox", "true", check=False)
    assert refused.returncode != 0 and "install the program wireguard-go" in refused.stderr
    there = json.loads(worker.http("GET", "/info").body)["Swarm"]["NodeID"]
    options = ("--network", "secret", "--constraint", f"node.id=={there}", "--restart-condition", "none")
    manager.docker("service", "create", "--name", "refused", *QUICK, *options, "busybox", "sleep", "600")
    said = ("service", "ps", "--no-trunc", "--format", "{{.Error}}", "refused")
    until(lambda: "install the program wireguard-go" in manager.docker(*said).stdout, "the reason")
    assert [name for name in worker.where.links() if name.startswith(("wg-", "vx-"))] != [], "others go on"
    manager.docker("service", "rm", "refused")
