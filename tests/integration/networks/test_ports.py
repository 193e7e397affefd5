"""Published ports lead to the container from everywhere they should, and from nowhere else."""

import contextlib
import json
import socket
import struct
import subprocess

import pytest

from husk.kernel import sysctl
from tests.integration.networks.conftest import Network, inside, reach, serving
from tests.support import frames
from tests.support.free_ports import free_port
from tests.support.waiting import wait_until


def elements(net: Network) -> str:
    table = net.daemon.config.nft_table
    listed = [subprocess.run(["nft", "list", "map", "ip", table, name], capture_output=True, text=True).stdout
              for name in ("ports", "bound_ports")]  # fmt: skip
    return "".join(
        line for text in listed for line in text.splitlines(keepends=True) if " . " in line and "type" not in line
    )


def test_a_port_is_reached_from_everywhere(net, outside):
    net.run("web", "-p", "80")
    net.run("other")
    net.create("elsewhere")
    net.run("far", "--network", "elsewhere")
    port = net.port("web", "80/tcp")
    with serving(net.sandbox("web"), 80):
        assert reach("127.0.0.1", port) != ""
        assert reach(net.gateway, port) != ""
        assert reach(outside.host, port) != ""
        assert reach(outside.host, port, outside.namespace) == outside.address, "the container sees who asks"
        for container in ("web", "other", "far"):
            assert reach(net.gateway, port, net.sandbox(container)) != "", container
        assert reach(outside.host, port, net.sandbox("other")) != ""


def test_udp(net, outside):
    net.run("dns", "-p", "53/udp")
    port = net.port("dns", "53/udp")
    with serving(net.sandbox("dns"), 53, socket.SOCK_DGRAM):
        assert reach("127.0.0.1", port, kind=socket.SOCK_DGRAM) != ""
        assert reach(outside.host, port, outside.namespace, socket.SOCK_DGRAM) == outside.address
        assert reach(net.gateway, port, net.sandbox("dns"), socket.SOCK_DGRAM) != ""


def test_a_udp_client_that_never_pauses_finds_each_new_container(net, outside):
    port = free_port(socket.SOCK_DGRAM)

    def connect() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.connect((outside.host, port))
        made.settimeout(0.2)
        return made

    with inside(outside.namespace, connect) as client:

        def asks() -> bytes:
            with contextlib.suppress(OSError):
                client.send(b"?")
                return client.recv(100)
            return b""

        assert asks() == b""
        for name in ("first", "second"):
            net.run(name, "-p", f"{port}:53/udp")
            with serving(net.sandbox(name), 53, socket.SOCK_DGRAM):
                wait_until(asks, f"{name} answers")
            net.run("between" + name)  # takes the address that becomes free
            net.daemon.docker("rm", "-f", name)
            assert asks() == b""


def sctp_greeting(source: int, port: int) -> bytes:
    """The first packet of an association (RFC 9260): kernels without SCTP of their own pass it on all the same."""
    chunk = struct.pack("!BBHIIHHI", 1, 0, 20, 7, 65536, 1, 1, 9)
    header = struct.pack("!HHI", source, port, 0)
    crc = 0xFFFFFFFF
    for byte in header + bytes(4) + chunk:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return header + struct.pack("<I", crc ^ 0xFFFFFFFF) + chunk


@pytest.mark.parametrize("sender", ["outside", "neighbour", "host"])
def test_sctp_packets_arrive(net, outside, sender):
    port = free_port()
    net.run("phone", "-p", f"{port}:7001/sctp")
    net.run("neighbour")

    def raw() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_SCTP)
        made.settimeout(5)
        return made

    source = {"outside": outside.namespace, "neighbour": net.sandbox("neighbour"), "host": None}[sender]
    with inside(net.sandbox("phone"), raw) as phone, inside(source, raw) as caller:
        caller.sendto(sctp_greeting(4711, port), (outside.host, 0))
        packet, (seen, _) = phone.recvfrom(200)
    body = packet[(packet[0] & 0xF) * 4 :]
    assert struct.unpack_from("!H", body, 2) == (7001,), "led to the container's own port"
    assert sender != "outside" or seen == outside.address


def test_sctp_is_a_rule_like_the_others(net):
    net.run("phone", "-p", "7000:7000/sctp")
    # nft has no name for it on a machine without /etc/protocols.
    listed = elements(net).replace("132 . ", "sctp . ")
    assert f"sctp . 7000 : {net.address('phone')} . 7000" in listed
    assert net.daemon.docker("port", "phone").stdout == "7000/sctp -> 0.0.0.0:7000\n"


def test_a_host_address_is_the_only_one(net, outside):
    port = free_port()
    net.run("web", "-p", f"127.0.0.1:{port}:80")
    with serving(net.sandbox("web"), 80):
        assert reach("127.0.0.1", port) != ""
        assert reach(outside.host, port, seconds=1) == ""
        assert reach(outside.host, port, outside.namespace, seconds=1) == ""


def test_what_is_published_on_the_loopback_is_the_hosts_alone(net, outside):
    """A neighbour on the wire sends to 127.0.0.1, which rules would translate before the kernel looks at it."""
    port = free_port(socket.SOCK_DGRAM)
    net.run("dns", "-p", f"127.0.0.1:{port}:53/udp")

    def listen() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind(("", 53))
        made.settimeout(5)
        return made

    def neighbours() -> tuple[str, str]:
        """The MACs of the outside and of the host."""
        subprocess.run(["busybox", "ping", "-c1", "-W5", outside.host], check=True, capture_output=True)
        entry = subprocess.check_output(["ip", "neigh", "show", outside.host], text=True)
        return mac_of("eth0"), entry.split("lladdr ")[1].split()[0]

    own, host = inside(outside.namespace, neighbours)
    with inside(net.sandbox("dns"), listen) as dns, frames.raw_socket(outside.namespace) as wire:
        for _ in range(3):
            wire.send(frames.udp(own, host, (outside.address, 4711), ("127.0.0.1", port), b"from the wire"))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.sendto(b"from the host", ("127.0.0.1", port))
        assert dns.recv(100) == b"from the host"
        dns.setblocking(False)
        with pytest.raises(BlockingIOError):
            dns.recv(100)


def mac_of(interface: str) -> str:
    shown = subprocess.check_output(["ip", "-o", "link", "show", interface], text=True)
    return shown.split("link/ether ")[1].split()[0]


def test_one_port_on_two_addresses_leads_to_two_containers(net, outside):
    port = free_port()
    net.run("one", "-p", f"127.0.0.1:{port}:80")
    net.run("two", "-p", f"{outside.host}:{port}:80")
    with serving(net.sandbox("one"), 80):
        assert reach("127.0.0.1", port) != ""
        assert reach(outside.host, port, outside.namespace, seconds=1) == ""
        with serving(net.sandbox("two"), 80):
            assert reach(outside.host, port, outside.namespace) == outside.address


def test_what_clients_are_told(net):
    port = free_port()
    net.run("web", "-p", f"{port}:80", "-p", f"127.0.0.1:{port + 1}:80", "--expose", "81", "--expose", "90-91/udp")
    shown = json.loads(net.inspect("web", "{{json .NetworkSettings.Ports}}"))
    assert shown == {
        "80/tcp": [
            {"HostIp": "0.0.0.0", "HostPort": str(port)},
            {"HostIp": "::", "HostPort": str(port)},
            {"HostIp": "127.0.0.1", "HostPort": str(port + 1)},
        ],
        "81/tcp": None,
        "90/udp": None,
        "91/udp": None,
    }
    listed = net.daemon.docker("ps", "--format", "{{.Ports}}").stdout.strip()
    assert listed == f"81/tcp, 90-91/udp, 0.0.0.0:{port}->80/tcp, 127.0.0.1:{port + 1}->80/tcp, [::]:{port}->80/tcp"
    net.daemon.docker("stop", "-t", "0", "web")
    assert net.inspect("web", "{{json .NetworkSettings.Ports}}") == "{}"


def test_a_range_of_ports_and_the_first_free_of_a_range(net):
    net.run("many", "-p", "21000-21003:8000-8003")
    assert [net.port("many", f"{8000 + i}/tcp") for i in range(4)] == [21000, 21001, 21002, 21003]
    net.run("first", "-p", "21002-21005:80")
    assert net.port("first", "80/tcp") == 21004


def test_publish_all_takes_what_is_exposed(net):
    net.run("web", "-P", "--expose", "80", "--expose", "53/udp", "-p", "127.0.0.1::81")
    assert net.port("web", "80/tcp") and net.port("web", "53/udp") and net.port("web", "81/tcp")
    assert len({net.port("web", "80/tcp"), net.port("web", "81/tcp")}) == 2


def test_a_port_of_another_container_is_refused(net):
    port = free_port()
    net.run("web", "-p", f"{port}:80")
    done = net.daemon.docker("run", "-d", "--name", "late", "-p", f"{port}:80", "busybox", "sleep", "9", check=False)
    assert done.returncode == 125
    assert "driver failed programming external connectivity on endpoint late (" in done.stderr
    assert f"Bind for 0.0.0.0:{port} failed: port is already allocated" in done.stderr
    assert net.inspect("late", "{{.State.Status}} {{.NetworkSettings.SandboxKey}}") == "created"
    assert net.daemon.http("POST", "/containers/late/start").status == 500
    net.daemon.docker("rm", "-f", "web")
    net.daemon.docker("start", "late")


def test_a_port_of_another_program_is_refused_and_ours_is_kept_from_it(net):
    with socket.socket() as program:
        program.bind(("127.0.0.1", 0))
        program.listen()
        port = program.getsockname()[1]
        done = net.daemon.docker("run", "-d", "-p", f"{port}:80", "--name", "web", "busybox", "sleep", "9", check=False)
        assert done.returncode == 125
        assert f"failed to bind host port for 0.0.0.0:{port}:" in done.stderr
        assert "address already in use" in done.stderr
    net.daemon.docker("start", "web")
    for kind in (socket.SOCK_STREAM,):
        with socket.socket(socket.AF_INET, kind) as program, pytest.raises(OSError, match="in use"):
            program.bind(("", port))
    net.daemon.docker("rm", "-f", "web")
    with socket.socket() as program:
        program.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        program.bind(("", port))


def test_several_ports_of_which_one_is_taken_take_none(net):
    port, taken = free_port(), free_port()
    net.run("web", "-p", f"{taken}:80")
    before = elements(net)
    options = ["-p", f"{port}:1", "-p", f"{taken}:2"]
    assert net.daemon.docker("run", "-d", *options, "busybox", "sleep", "9", check=False).returncode == 125
    assert elements(net) == before
    net.run("next", "-p", f"{port}:80")


def test_nothing_is_left_of_a_removed_container(net):
    net.run("web", "-p", "80", "-p", "127.0.0.1::81", "-p", "82/udp")
    assert elements(net) != ""
    net.daemon.docker("rm", "-f", "web")
    assert elements(net) == ""


def test_ports_outlive_the_daemon_and_are_held_again(net):
    # One of its own: while the daemon is down, another one on this host may take what was given at random.
    port = free_port()
    net.run("web", "-p", f"{port}:80")
    net.daemon.kill9()
    with serving(inside_of(net, "web"), 80):
        assert reach("127.0.0.1", port) != "", "while the daemon is dead"
        net.daemon.start()
        assert reach("127.0.0.1", port) != ""
    assert net.port("web", "80/tcp") == port
    with socket.socket() as program, pytest.raises(OSError, match="in use"):
        program.bind(("", port))
    done = net.daemon.docker("run", "-d", "-p", f"{port}:80", "busybox", "sleep", "9", check=False)
    assert "port is already allocated" in done.stderr
    net.daemon.docker("rm", "-f", "web")
    assert elements(net) == ""


def inside_of(net: Network, container: str):
    """The sandbox of the only running container, without a daemon to ask."""
    [path] = [p for p in (net.daemon.config.exec_root / "netns").iterdir() if has_published(p, net)]
    return path


def has_published(path, net: Network) -> bool:
    def addresses() -> str:
        return subprocess.run(["busybox", "ip", "-o", "addr"], capture_output=True, text=True).stdout

    wanted = elements(net).partition(":")[2].split(".", 4)
    address = ".".join(part.strip() for part in wanted[:4])
    return f"inet {address}/" in inside(path, addresses)


@pytest.mark.parametrize("verb", ["flush", "delete"])
def test_rules_that_somebody_removes_come_back(net, verb):
    net.run("web", "-p", "80", "-p", "127.0.0.1::80")
    port = net.port("web", "80/tcp")
    with serving(net.sandbox("web"), 80):
        assert reach("127.0.0.1", port) != ""
        subprocess.run(["nft", verb, "table", "ip", net.daemon.config.nft_table], check=True)
        wait_until(lambda: reach("127.0.0.1", port, seconds=1), "the rules are there again")
    net.daemon.docker("rm", "-f", "web")
    assert elements(net) == ""


def test_publishing_and_sighup_repair_too(net):
    net.run("web", "-p", "80")
    port = net.port("web", "80/tcp")
    with serving(net.sandbox("web"), 80):
        subprocess.run(["nft", "delete", "table", "ip", net.daemon.config.nft_table], check=True)
        net.run("next", "-p", "80")
        assert reach("127.0.0.1", port) != ""
        subprocess.run(["nft", "flush", "map", "ip", net.daemon.config.nft_table, "ports"], check=True)
        net.daemon.reload()
        wait_until(lambda: reach("127.0.0.1", port, seconds=1), "SIGHUP writes the rules")


def test_ordinary_changes_are_no_removals(net):
    complaint = "somebody has removed rules"
    before = net.daemon.log_path.read_text().count(complaint)
    net.create("busy")
    net.run("web", "--network", "busy", "-p", "80", "-p", "53/udp", "-p", "127.0.0.1::81")
    net.daemon.docker("rm", "-f", "web")
    net.daemon.docker("network", "rm", "busy")
    net.run("after", "-p", "80")
    assert net.daemon.log_path.read_text().count(complaint) == before


def test_a_container_does_not_reach_the_hosts_loopback(net):
    net.run("curious")
    with serving(None, port := free_port(), address="127.0.0.1"), contextlib.ExitStack():
        sandbox = net.sandbox("curious")
        inside(
            sandbox, lambda: subprocess.run(["busybox", "ip", "addr", "del", "127.0.0.1/8", "dev", "lo"], check=True)
        )
        route = ["busybox", "ip", "route", "add", "127.0.0.0/8", "via", net.gateway]
        inside(sandbox, lambda: subprocess.run(route, check=True))
        inside(sandbox, lambda: sysctl.write("net/ipv4/conf/eth0/route_localnet", "1"))
        assert reach("127.0.0.1", port, sandbox, seconds=1) == ""
        assert reach("127.0.0.1", port) != ""


def test_with_the_hosts_own_network_ports_are_no_matter(net):
    net.run("web", "--network", "host", "-p", "80:80")
    assert elements(net) == ""
    assert net.inspect("web", "{{json .NetworkSettings.Ports}}") == "{}"


@pytest.mark.parametrize(
    ("bindings", "words"),
    [
        ({"80/tcp": [{"HostPort": "x"}]}, 'invalid port specification: "x"'),
        ({"80/tcp": [{"HostPort": "70000"}]}, "invalid port specification"),
        ({"80/tcp": [{"HostPort": "9-8"}]}, "invalid port specification"),
        ({"0/tcp": [{}]}, "invalid port specification"),
        ({"80/icmp": [{}]}, "invalid proto: icmp"),
        ({"80/tcp": [{"HostIp": "nowhere"}]}, "invalid IP address: nowhere"),
    ],
)
def test_nonsense_is_refused_at_creation(daemon, bindings, words):
    body = {"Image": "busybox", "Cmd": ["true"], "HostConfig": {"PortBindings": bindings}}
    answer = daemon.http("POST", "/containers/create", body)
    assert (answer.status, words in answer.message) == (400, True), answer.body
