"""Real traffic between containers, the host, and an outside that the tests make: nothing real is ever reached.

The ends of the traffic are sockets of this process that live in the containers' network namespaces: no image has to
bring programs for it.
"""

import contextlib
import random
import secrets
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Interface, IPv6Interface
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from husk.kernel import namespaces, rtaddresses, rtnetlink
from husk.kernel.netlink import NetlinkSocket
from tests.support.daemon import Daemon
from tests.support.lifecycle import inspect

T = TypeVar("T")
PATIENCE = 20.0


class Outside(NamedTuple):
    """A machine beyond the host that knows the host and no container."""

    namespace: Path
    address: str
    # The host's address on the way to it.
    host: str


Interface = IPv4Interface | IPv6Interface


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    # 198.18.0.0/15 is for tests of equipment and never routed.
    prefix = f"198.{random.choice((18, 19))}.{random.randrange(256)}"
    here, there = IPv4Interface(f"{prefix}.1/24"), IPv4Interface(f"{prefix}.2/24")
    with outside_at(tmp_path / "outside", here, there) as made:
        yield made


@contextmanager
def outside_at(path: Path, here: Interface, there: Interface) -> Iterator[Outside]:
    link = "ot" + secrets.token_hex(5)
    with NetlinkSocket() as host:

        def connect(namespace: int) -> None:
            host.execute(rtnetlink.add_veth(link, "eth0", peer_namespace=namespace))
            with NetlinkSocket() as inside:
                inside.execute(rtaddresses.add_address(socket.if_nametoindex("eth0"), there), rtnetlink.set_up("eth0"))

        namespaces.create(path, connect)
        try:
            host.execute(rtaddresses.add_address(socket.if_nametoindex(link), here), rtnetlink.set_up(link))
            yield Outside(path, str(there.ip), str(here.ip))
        finally:
            namespaces.remove(path)
            host.attempt([rtnetlink.delete_link(link)])


@pytest.fixture(autouse=True)
def no_threads_left() -> Iterator[None]:
    """A thread that outlives its test reads from descriptors that belong to somebody else by then."""
    before = set(threading.enumerate())
    yield
    left = [thread for thread in threading.enumerate() if thread not in before]
    for thread in left:
        thread.join(PATIENCE)
    assert not [thread.name for thread in left if thread.is_alive()]


@pytest.fixture(autouse=True)
def no_networks_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test on the shared daemon: none of its networks, and no bridge of theirs."""
    if "daemon" not in request.fixturenames:
        yield
        return
    daemon: Daemon = request.getfixturevalue("daemon")
    yield
    if daemon.process is None:
        daemon.start()
    daemon.remove_containers()
    assert daemon.http("POST", "/networks/prune").status == 200
    assert daemon._traces.bridges() == {daemon.config.bridge_name}


class Network:
    """The actions of tests on a daemon's networks."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon

    def run(self, name: str, *options: str) -> str:
        """A container that does nothing; its id."""
        arguments = ["run", "-d", "--name", name, *options, "busybox", "sleep", "1000"]
        return self.daemon.docker(*arguments).stdout.strip()

    def create(self, name: str, *options: str) -> str:
        return self.daemon.docker("network", "create", *options, name).stdout.strip()

    def inspect(self, container: str, template: str) -> str:
        return self.daemon.docker("inspect", "-f", template, container).stdout.strip()

    def settings(self, container: str) -> dict[str, Any]:
        found: dict[str, Any] = inspect(self.daemon, container)["NetworkSettings"]
        return found

    def address(self, container: str, network: str = "bridge") -> str:
        return str(self.settings(container)["Networks"][network]["IPAddress"])

    def sandbox(self, container: str) -> Path:
        return Path(self.settings(container)["SandboxKey"])

    def port(self, container: str, port: str) -> int:
        return int(self.settings(container)["Ports"][port if "/" in port else f"{port}/tcp"][0]["HostPort"])

    def pings(self, container: str, address: str, seconds: int = 3) -> bool:
        command = ["nsenter", f"--net={self.sandbox(container)}", "busybox", "ping", "-c1", f"-W{seconds}", address]
        return subprocess.run(command, capture_output=True).returncode == 0

    @property
    def gateway(self) -> str:
        return self.daemon.config.bip.partition("/")[0]


@pytest.fixture
def net(daemon: Daemon) -> Network:
    return Network(daemon)


def inside(namespace: Path | None, work: Callable[[], T]) -> T:
    """In a container's network, or the host's own."""
    return work() if namespace is None else namespaces.run_inside(namespace, work)


@contextmanager
def serving(namespace: Path | None, port: int, kind: int = socket.SOCK_STREAM, address: str = "") -> Iterator[None]:
    """A server that tells everybody the address it sees them at."""

    def listen() -> socket.socket:
        made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((address, port))
        if kind == socket.SOCK_STREAM:
            made.listen(8)
        return made

    server = inside(namespace, listen)
    # A thread that waits on a closed descriptor would take over the next one with its number.
    server.settimeout(0.1)
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            with contextlib.suppress(TimeoutError):
                if kind == socket.SOCK_STREAM:
                    connection, peer = server.accept()
                    with connection:
                        connection.sendall(peer[0].encode())
                else:
                    _, peer = server.recvfrom(100)
                    server.sendto(peer[0].encode(), peer)

    thread = threading.Thread(daemon=True, target=serve)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        server.close()


def reach(
    address: str, port: int, namespace: Path | None = None, kind: int = socket.SOCK_STREAM, seconds: float = PATIENCE
) -> str:
    """Return the answer of a server; "" when there is none."""

    def connect() -> socket.socket:
        made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
        made.settimeout(seconds)
        made.connect((address, port))
        return made

    try:
        with inside(namespace, connect) as channel:
            if kind == socket.SOCK_DGRAM:
                channel.send(b"?")
            return channel.recv(100).decode()
    except OSError:
        return ""


@pytest.fixture
def prefix() -> str:
    """A /48 of documentation addresses (RFC 3849) that no other test has."""
    return f"2001:db8:{secrets.randbelow(0xFFFF):x}"


@pytest.fixture
def outside6(tmp_path: Path, prefix: str) -> Iterator[Outside]:
    here, there = IPv6Interface(f"{prefix}:ffff::1/64"), IPv6Interface(f"{prefix}:ffff::2/64")
    with outside_at(tmp_path / "outside6", here, there) as made:
        yield made


def address6(net: Network, container: str, network: str) -> str:
    return str(net.settings(container)["Networks"][network]["GlobalIPv6Address"])


def aaaa(response: bytes) -> list[str]:
    """The addresses at the end of a response with one record or none."""
    count = int.from_bytes(response[6:8])
    return [socket.inet_ntop(socket.AF_INET6, response[-16:])] if count else []


def refused(net: Network, *arguments: str) -> str:
    done = net.daemon.docker(*arguments, check=False)
    assert done.returncode != 0
    return done.stderr.strip()


def network(net: Network, name: str) -> dict[str, Any]:
    answer = net.daemon.http("GET", f"/networks/{name}")
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json()
    return found


def routes(net: Network, container: str) -> str:
    return inside(net.sandbox(container), lambda: subprocess.check_output(["busybox", "ip", "route"], text=True))


def bridge(net: Network, name: str) -> str:
    return network(net, name)["Options"].get("com.docker.network.bridge.name") or f"br-{network(net, name)['Id'][:12]}"
