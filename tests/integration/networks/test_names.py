"""Containers find each other by name, and everybody else through the servers they are given."""

import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address
from pathlib import Path

from husk.network import dns
from tests.integration.networks.conftest import Network, inside
from tests.support.waiting import wait_until

SERVER = ("127.0.0.11", 53)


def question(name: str, kind: int = dns.A, edns: bool = False) -> bytes:
    body = dns.encode_name(name) + struct.pack("!HH", kind, 1)
    options = b"\0" + struct.pack("!HHIH", dns.OPT, 4096, 0, 0) if edns else b""
    return struct.pack("!HHHHHH", random.randrange(1 << 16), 0x0100, 1, 0, 0, 1 if edns else 0) + body + options


def ask(sandbox: Path, name: str, kind: int = dns.A, *, tcp: bool = False, edns: bool = False) -> bytes:
    """The response, over UDP or TCP, as the container gets it."""
    sent = question(name, kind, edns)

    def connect() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM)
        made.settimeout(10)
        made.connect(SERVER)
        return made

    with inside(sandbox, connect) as channel:
        if not tcp:
            channel.send(sent)
            response = channel.recv(1 << 16)
        else:
            channel.sendall(len(sent).to_bytes(2) + sent)
            with channel.makefile("rb") as stream:
                response = stream.read(int.from_bytes(stream.read(2)))
    assert dns.answers(dns.parse(sent), response)
    return response


def addresses(response: bytes) -> list[str]:
    """The A records of a response whose names are compressed."""
    _, _, _, count, _, _ = struct.unpack_from("!HHHHHH", response)
    offset = 12
    while response[offset]:
        offset += response[offset] + 1
    offset += 5
    found = []
    for _ in range(count):
        kind, _, _, length = struct.unpack_from("!HHIH", response, offset + 2)
        if kind == dns.A:
            found.append(str(IPv4Address(response[offset + 12 : offset + 16])))
        offset += 12 + length
    return found


def lookup(net: Network, container: str, name: str, **how: bool) -> list[str]:
    return sorted(addresses(ask(net.sandbox(container), name, **how)))


@contextmanager
def upstream(answer: Callable[[dns.DnsQuery, bytes, bool], bytes | None]) -> Iterator[str]:
    """A name server on a loopback address of the host; `answer` gets the query, its bytes, and whether it is TCP."""
    address = f"127.53.{random.randrange(256)}.{random.randrange(1, 255)}"
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind((address, 53))
    listener = socket.create_server((address, 53))

    ended = threading.Event()
    for channel in (datagrams, listener):
        channel.settimeout(0.1)

    def serve_datagrams() -> None:
        while not ended.is_set():
            with suppress(TimeoutError):
                data, sender = datagrams.recvfrom(1 << 16)
                if response := answer(dns.parse(data), data, False):
                    datagrams.sendto(response, sender)

    def serve_streams() -> None:
        while not ended.is_set():
            with suppress(TimeoutError):
                channel, _ = listener.accept()
                channel.settimeout(5)
                with channel, channel.makefile("rb") as stream:
                    data = stream.read(int.from_bytes(stream.read(2)))
                    if response := answer(dns.parse(data), data, True):
                        channel.sendall(len(response).to_bytes(2) + response)

    threads = [threading.Thread(daemon=True, target=work) for work in (serve_datagrams, serve_streams)]
    for thread in threads:
        thread.start()
    try:
        yield address
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        datagrams.close()
        listener.close()


def fixed(address: str) -> Callable[[dns.DnsQuery, bytes, bool], bytes]:
    return lambda query, data, tcp: dns.addresses(query, [IPv4Address(address)])


# --- the container's own networks


def test_by_name_id_host_name_and_alias(net):
    net.create("home")
    net.run("asker", "--network", "home")
    identity = net.run("web", "--network", "home", "--network-alias", "www", "--hostname", "server")
    wanted = [net.address("web", "home")]
    for name in ("web", "WEB", identity[:12], "server", "www", "web.home", "www.home"):
        assert lookup(net, "asker", name) == wanted, name
        assert lookup(net, "asker", name, tcp=True) == wanted, name
        assert lookup(net, "asker", name, edns=True) == wanted, name
    assert net.daemon.docker("exec", "asker", "ping", "-c1", "-W20", "web").returncode == 0
    net.daemon.docker("rename", "web", "shop")
    assert lookup(net, "asker", "shop") == wanted


def test_an_alias_of_several_has_all_their_addresses_in_any_order(net):
    net.create("home")
    for number in range(3):
        net.run(f"worker{number}", "--network", "home", "--network-alias", "worker")
    wanted = sorted(net.address(f"worker{number}", "home") for number in range(3))
    assert lookup(net, "worker0", "worker") == wanted
    orders = {tuple(addresses(ask(net.sandbox("worker0"), "worker"))) for _ in range(50)}
    assert len(orders) > 1
    net.daemon.docker("rm", "-f", "worker2")
    assert len(lookup(net, "worker0", "worker")) == 2


def test_a_known_name_has_no_ipv6_address_and_that_is_no_error(net):
    net.create("home")
    net.run("web", "--network", "home")
    response = ask(net.sandbox("web"), "web", dns.AAAA)
    assert (dns.code(response), addresses(response)) == (dns.NO_ERROR, [])


def test_the_name_of_an_address(net):
    net.create("home")
    net.run("web", "--network", "home")
    reverse = ".".join(reversed(net.address("web", "home").split("."))) + ".in-addr.arpa"
    assert dns.encode_name("web.home") in ask(net.sandbox("web"), reverse, dns.PTR)


def test_only_names_of_its_own_networks(net):
    net.create("here")
    net.create("there")
    with upstream(lambda query, data, tcp: dns.failure(query, dns.NO_SUCH_NAME)) as server:
        net.run("one", "--network", "here", "--dns", server)
        net.run("two", "--network", "there", "--dns", server)
        assert dns.code(ask(net.sandbox("one"), "two")) == dns.NO_SUCH_NAME
        net.daemon.docker("network", "connect", "--alias", "nick", "here", "two")
        assert lookup(net, "one", "nick") == lookup(net, "one", "two") == [net.address("two", "here")]
        net.daemon.docker("network", "disconnect", "here", "two")
        assert dns.code(ask(net.sandbox("one"), "two")) == dns.NO_SUCH_NAME


def test_links_are_aliases_for_one_container(net):
    net.create("home")
    net.run("database", "--network", "home")
    body = {
        "Image": "busybox",
        "Cmd": ["sleep", "1000"],
        "HostConfig": {"NetworkMode": "home"},
        "NetworkingConfig": {"EndpointsConfig": {"home": {"Links": ["database:db"]}}},
    }
    assert net.daemon.http("POST", "/containers/create?name=app", body).status == 201
    net.daemon.docker("start", "app")
    assert lookup(net, "app", "db") == [net.address("database", "home")]


# --- everybody else


def test_other_names_are_asked_of_others(net):
    net.create("home")
    seen: list[bytes] = []

    def answer(query: dns.DnsQuery, data: bytes, tcp: bool) -> bytes:
        seen.append(data)
        return dns.addresses(query, [IPv4Address("192.0.2.1" if not tcp else "192.0.2.2")])

    with upstream(answer) as server:
        net.run("asker", "--network", "home", "--dns", server)
        assert lookup(net, "asker", "example.org") == ["192.0.2.1"]
        assert lookup(net, "asker", "example.org", tcp=True) == ["192.0.2.2"], "over the client's protocol"
        assert lookup(net, "asker", "example.org", edns=True) == ["192.0.2.1"]
        assert dns.parse(seen[-1]).size == 4096, "with the client's own options"


def test_a_large_answer_makes_the_client_come_back_over_tcp(net):
    net.create("home")
    many = [IPv4Address(f"192.0.2.{number}") for number in range(1, 101)]

    def answer(query: dns.DnsQuery, data: bytes, tcp: bool) -> bytes:
        response = dns.addresses(query, many)
        return response if tcp else dns.fit(query, response)

    with upstream(answer) as server:
        net.run("asker", "--network", "home", "--dns", server)
        cut = ask(net.sandbox("asker"), "many.example")
        assert cut[2] & 2 and not addresses(cut)
        assert len(lookup(net, "asker", "many.example", tcp=True)) == 100
        assert len(lookup(net, "asker", "many.example", edns=True)) == 100


def test_a_dead_or_failing_server_is_passed_over(net):
    net.create("home")
    with (
        upstream(lambda query, data, tcp: None) as silent,
        upstream(lambda query, data, tcp: dns.failure(query, dns.SERVER_FAILURE)) as failing,
        upstream(fixed("192.0.2.7")) as good,
    ):
        for number, first in enumerate((silent, failing, "127.53.0.255")):
            net.run(f"asker{number}", "--network", "home", "--dns", first, "--dns", good)
            assert lookup(net, f"asker{number}", "example.org") == ["192.0.2.7"]
        net.run("lost", "--network", "home", "--dns", silent, "--dns", failing)
        assert dns.code(ask(net.sandbox("lost"), "example.org")) == dns.SERVER_FAILURE


def test_that_a_name_does_not_exist_is_an_answer(net):
    net.create("home")
    with (
        upstream(lambda query, data, tcp: dns.failure(query, dns.NO_SUCH_NAME)) as first,
        upstream(fixed("192.0.2.7")) as second,
    ):
        net.run("asker", "--network", "home", "--dns", first, "--dns", second)
        assert dns.code(ask(net.sandbox("asker"), "nowhere.example")) == dns.NO_SUCH_NAME


def test_on_an_internal_network_nobody_else_is_asked(net):
    net.create("vault", "--internal")
    with upstream(fixed("192.0.2.7")) as server:
        net.run("inner", "--network", "vault", "--dns", server)
        net.run("peer", "--network", "vault")
        assert lookup(net, "inner", "peer") == [net.address("peer", "vault")]
        assert dns.code(ask(net.sandbox("inner"), "example.org")) == dns.SERVER_FAILURE


def test_nonsense_is_answered_and_does_no_harm(net):
    net.create("home")
    net.run("web", "--network", "home")

    def talk() -> bytes:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
            channel.settimeout(5)
            channel.connect(SERVER)
            for garbage in (b"", b"x", b"\xff" * 600):
                channel.send(garbage)
            channel.send(b"\0\7\1\0\0\2" + b"\0" * 6)
            return channel.recv(512)

    assert dns.code(inside(net.sandbox("web"), talk)) == dns.FORMAT_ERROR
    assert lookup(net, "web", "web") == [net.address("web", "home")]


# --- around it


def test_resolv_conf_and_hosts(net):
    net.create("home")
    options = ["--dns-search", "example.org", "--dns-option", "timeout:1", "--add-host", "db:192.0.2.9"]
    net.run("web", "--network", "home", *options, "--add-host", "outer:host-gateway", "--hostname", "web.example.org")
    text = net.daemon.docker("exec", "web", "cat", "/etc/resolv.conf").stdout
    assert text == "nameserver 127.0.0.11\nsearch example.org\noptions timeout:1 ndots:0\n"
    hosts = net.daemon.docker("exec", "web", "cat", "/etc/hosts").stdout
    assert "192.0.2.9\tdb\n" in hosts
    assert f"{net.gateway}\touter\n" in hosts
    assert f"{net.address('web', 'home')}\tweb.example.org web\n" in hosts


def test_resolv_conf_follows_the_networks_of_a_running_container(net):
    net.create("home")
    net.run("web", "--dns", "192.0.2.53")
    net.run("peer", "--network", "home")

    def text() -> str:
        return net.daemon.docker("exec", "web", "cat", "/etc/resolv.conf").stdout

    assert "nameserver 192.0.2.53\n" in text()
    net.daemon.docker("network", "connect", "home", "web")
    assert "nameserver 127.0.0.11\n" in text()
    assert lookup(net, "web", "peer") == [net.address("peer", "home")]
    net.daemon.docker("network", "disconnect", "home", "web")
    assert "nameserver 192.0.2.53\n" in text()


def test_a_container_may_have_port_53_for_itself(net):
    net.create("home")
    net.run("server", "--network", "home")

    def bind() -> tuple[socket.socket, socket.socket]:
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.bind(("", 53))
        return datagrams, socket.create_server(("", 53))

    for channel in inside(net.sandbox("server"), bind):
        channel.close()


def test_names_are_resolved_again_after_a_crash_of_the_daemon(net):
    net.create("home")
    net.run("one", "--network", "home")
    net.run("two", "--network", "home")
    wanted = [net.address("two", "home")]
    net.daemon.kill9()
    net.daemon.start()
    assert lookup(net, "one", "two") == lookup(net, "one", "two", tcp=True) == wanted
    net.daemon.docker("restart", "-t", "0", "two")
    assert lookup(net, "one", "two") == [net.address("two", "home")]


def test_sharing_a_network_shares_its_names(net):
    net.create("home")
    net.run("one", "--network", "home")
    net.run("guest", "--network", "container:one")
    assert "nameserver 127.0.0.11" in net.daemon.docker("exec", "guest", "cat", "/etc/resolv.conf").stdout
    assert net.daemon.docker("exec", "guest", "ping", "-c1", "-W20", "one").returncode == 0


def test_many_questions_at_once(net):
    net.create("home")
    with upstream(fixed("192.0.2.7")) as server:
        net.run("asker", "--network", "home", "--dns", server)
        sandbox = net.sandbox("asker")
        found: list[list[str]] = []
        threads = [
            threading.Thread(daemon=True, target=lambda n=n: found.append(addresses(ask(sandbox, f"n{n}.example"))))
            for n in range(50)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [["192.0.2.7"]] * 50
    wait_until(lambda: net.daemon.docker("ps", "-q").stdout, "the daemon is well")
