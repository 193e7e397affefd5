"""Ways to reach services: names, virtual addresses, published ports."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.networks.conftest import serving
from tests.support.free_ports import free_port, free_ports
from tests.support.swarm import Swarm
from tests.support.waiting import until

# Says who it is to whoever connects.
SERVER = ("sh", "-c", "while :; do hostname | nc -l -p 80; done")


@pytest.fixture
def network(swarm: Swarm) -> Iterator[str]:
    swarm.daemon.docker("network", "create", "-d", "overlay", "--attachable", "mesh")
    yield "mesh"
    swarm.remove_all()
    swarm.daemon.remove_containers()
    swarm.daemon.docker("network", "rm", "mesh")


def ask(port: int) -> str:
    """Return the answer of the server behind a port of the host; empty if nobody is there."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as channel:
            return channel.recv(100).decode().strip()
    except OSError:
        return ""


def sandbox(swarm: Swarm, container: str) -> Path:
    """The network namespace of a running container."""
    pid = swarm.daemon.http("GET", f"/containers/{container}/json").json()["State"]["Pid"]
    return Path(f"/proc/{pid}/ns/net")


def rules(table: str) -> str:
    return subprocess.run(["nft", "list", "map", "ip", table, "tcp_targets"], capture_output=True, text=True).stdout


def lookup(swarm: Swarm, client: str, name: str) -> list[str]:
    """The addresses of a name as a container sees them."""
    said = swarm.daemon.docker("exec", client, "nslookup", "-type=a", name, check=False).stdout
    lines = said.partition("Name:")[2].splitlines()
    return sorted(line.split()[-1] for line in lines if line.startswith("Address"))


def addresses(swarm: Swarm, name: str, network: str) -> list[str]:
    found = (swarm.daemon.http("GET", f"/containers/{id}/json").json() for id in swarm.containers(name))
    return sorted(c["NetworkSettings"]["Networks"][network]["IPAddress"] for c in found)


def test_an_overlay_network(swarm: Swarm, network: str) -> None:
    daemon = swarm.daemon
    shown = daemon.http("GET", "/networks/mesh").json()
    assert (shown["Driver"], shown["Scope"], shown["Attachable"]) == ("overlay", "swarm", True)
    assert "overlay" in daemon.docker("network", "ls", "--filter", "driver=overlay").stdout
    daemon.restart()
    assert daemon.http("GET", "/networks/mesh").json()["Id"] == shown["Id"]
    swarm.create("web", "--network", network)
    refused = daemon.docker("network", "rm", network, check=False)
    assert "in use by service" in refused.stderr
    missing = daemon.docker("service", "create", "-d", "--network", "nowhere", "busybox", check=False)
    assert "nowhere not found" in missing.stderr


def test_a_name_leads_to_the_virtual_address_and_that_to_the_tasks(swarm: Swarm, network: str) -> None:
    daemon = swarm.daemon
    swarm.create("web", "--replicas", "2", "--network", f"name={network},alias=site", args=SERVER)
    tasks = swarm.settles("web", 2)
    client = daemon.docker("run", "-d", "--network", network, "busybox", "sleep", "600").stdout.strip()
    [virtual] = swarm.inspect("web")["Endpoint"]["VirtualIPs"]
    address = virtual["Addr"].partition("/")[0]
    assert lookup(swarm, client, "web") == lookup(swarm, client, "site") == [address]
    assert lookup(swarm, client, "tasks.web") == addresses(swarm, "web", network)
    names = {task[:12] for task in tasks}

    def said() -> str:
        return daemon.docker("exec", client, "nc", "-w", "2", "web", "80", check=False).stdout.strip()

    seen: set[str] = set()

    def both_answered() -> bool:
        seen.add(said())
        return names <= seen

    until(both_answered, "both answer")
    # A task finds its own service too, and so itself in turn.
    until(
        lambda: daemon.docker("exec", tasks[0], "nc", "-w", "2", "web", "80", check=False).stdout.strip(), "an answer"
    )
    # The address stays while tasks come and go, and leads nowhere when there are none.
    daemon.docker("service", "scale", "-d", "web=0")
    until(lambda: not swarm.containers("web"), "no task is left")
    assert lookup(swarm, client, "web") == [address]
    until(lambda: not said(), "nobody answers")
    daemon.docker("service", "scale", "-d", "web=1")
    until(said, "somebody answers again")
    daemon.docker("service", "rm", "web")
    until(lambda: lookup(swarm, client, "web") == [], "the name is gone")


def test_round_robin_by_name(swarm: Swarm, network: str) -> None:
    daemon = swarm.daemon
    swarm.create("web", "--replicas", "3", "--network", network, "--endpoint-mode", "dnsrr")
    swarm.settles("web", 3)
    client = daemon.docker("run", "-d", "--network", network, "busybox", "sleep", "600").stdout.strip()
    assert lookup(swarm, client, "web") == lookup(swarm, client, "tasks.web") == addresses(swarm, "web", network)
    assert not swarm.inspect("web")["Endpoint"].get("VirtualIPs")
    swarm.update("web", "--endpoint-mode", "vip", "--update-parallelism", "0", "--update-monitor", "100ms")
    until(lambda: swarm.update_state("web") == "completed", "it is changed")
    [virtual] = swarm.inspect("web")["Endpoint"]["VirtualIPs"]
    assert lookup(swarm, client, "web") == [virtual["Addr"].partition("/")[0]]
    swarm.update("web", "--endpoint-mode", "dnsrr")
    until(lambda: swarm.update_state("web") == "completed", "it is changed back")
    assert lookup(swarm, client, "web") == addresses(swarm, "web", network)


def test_a_name_leads_to_healthy_tasks_alone(swarm: Swarm, network: str) -> None:
    daemon = swarm.daemon
    health = ("--health-cmd", "test -e /well", "--health-interval", "50ms", "--health-start-period", "10m")
    swarm.create("web", "--network", network, "--endpoint-mode", "dnsrr", "--replicas", "2", *health)
    client = daemon.docker("run", "-d", "--network", network, "busybox", "sleep", "600").stdout.strip()
    first, second = until(lambda: [c for c in [swarm.containers("web")] if len(c) == 2], "two tasks that start")[0]
    until(lambda: len([one for one in addresses(swarm, "web", network) if one]) == 2, "which have addresses")
    name = daemon.http("GET", f"/containers/{first}/json").json()["Name"].removeprefix("/")
    for asked in ("web", "tasks.web", name):
        assert lookup(swarm, client, asked) == []
    daemon.docker("exec", first, "touch", "/well")
    [address] = until(lambda: lookup(swarm, client, "web"), "the one that is healthy")
    shown = daemon.http("GET", f"/containers/{first}/json").json()["NetworkSettings"]["Networks"]
    assert address == shown[network]["IPAddress"] and lookup(swarm, client, name) == [address]
    daemon.docker("exec", second, "touch", "/well")
    until(lambda: lookup(swarm, client, "tasks.web") == addresses(swarm, "web", network), "both")


def test_virtual_addresses_are_kept_and_given_back(fresh_swarm: Swarm) -> None:
    swarm, daemon = fresh_swarm, fresh_swarm.daemon
    daemon.docker("network", "create", "-d", "overlay", "--attachable", "mesh")
    swarm.create("web", "--network", "mesh", args=SERVER)
    swarm.settles("web", 1)
    before = swarm.inspect("web")["Endpoint"]["VirtualIPs"]
    daemon.kill9()
    daemon.start()
    assert swarm.inspect("web")["Endpoint"]["VirtualIPs"] == before
    client = daemon.docker("run", "-d", "--network", "mesh", "busybox", "sleep", "600").stdout.strip()
    until(
        lambda: daemon.docker("exec", client, "nc", "-w", "2", "web", "80", check=False).stdout, "it is reached again"
    )
    daemon.docker("rm", "-f", client)
    daemon.docker("service", "rm", "web")
    until(lambda: not swarm.containers("web", all=True), "it is gone")
    daemon.docker("network", "rm", "mesh")


def test_a_port_in_ingress_mode_is_shared_by_the_tasks(swarm: Swarm) -> None:
    daemon = swarm.daemon
    port = free_ports(2)
    swarm.create("web", "--replicas", "2", "--publish", f"{port}:80", args=SERVER)
    names = {container[:12] for container in swarm.settles("web", 2)}
    seen: set[str] = set()

    def both_answered() -> bool:
        seen.add(ask(port))
        return names <= seen

    until(both_answered, "both answer")
    assert f"*:{port}->80/tcp" in daemon.docker("service", "ls").stdout
    assert swarm.inspect("web")["Endpoint"]["Ports"][0]["PublishedPort"] == port
    # One that is killed gets no more connections.
    victim = swarm.containers("web")[0]
    daemon.docker("rm", "-f", victim)
    until(lambda: victim[:12] not in {ask(port) for _ in range(4)}, "it is not asked any more")
    taken = daemon.docker("service", "create", "-d", "--publish", f"{port}:80", "busybox", check=False)
    assert "already in use by service 'web'" in taken.stderr
    conflict = daemon.docker("run", "--rm", "-p", f"{port}:80", "busybox", "true", check=False)
    assert conflict.returncode != 0 and "already allocated" in conflict.stderr
    swarm.update("web", "--publish-rm", "80", "--publish-add", f"{port + 1}:80")
    until(lambda: ask(port + 1), "the new port leads there")
    assert len(swarm.live("web")) == 2, "a change of ports restarts nothing"
    assert not ask(port)


def test_a_port_is_chosen_where_none_is_given(swarm: Swarm) -> None:
    swarm.create("web", "--publish", "80", args=SERVER)
    swarm.settles("web", 1)
    port = swarm.inspect("web")["Endpoint"]["Ports"][0]["PublishedPort"]
    assert 30000 <= port <= 32767
    until(lambda: ask(port), "it answers")


def test_a_port_in_host_mode_belongs_to_a_task(swarm: Swarm) -> None:
    port = free_port()
    swarm.create("web", "--publish", f"published={port},target=80,mode=host", args=SERVER)
    [container] = swarm.settles("web", 1)
    assert until(lambda: ask(port), "it answers") == container[:12]
    assert f"{port}->80/tcp" in swarm.daemon.docker("ps").stdout


@pytest.mark.parametrize("verb", ["delete", "flush"])
def test_rules_that_somebody_removes_come_back(swarm: Swarm, verb: str) -> None:
    port = free_port()
    table = swarm.daemon.config.nft_table + "-lb"
    swarm.create("web", "--publish", f"{port}:80", args=SERVER)
    swarm.settles("web", 1)
    until(lambda: ask(port), "it answers")
    complaint = f"somebody has removed rules of table {table}"
    before = swarm.daemon.log_path.read_text().count(complaint)
    subprocess.run(["nft", verb, "table", "ip", table], check=True)
    until(lambda: ask(port), "it answers again, though no task has changed")
    # What the daemon itself changes is no removal.
    for replicas in (3, 1):
        swarm.daemon.docker("service", "scale", "-d", f"web={replicas}")
        swarm.settles("web", replicas)
        until(lambda: ask(port), "it answers")
        until(lambda count=replicas: rules(table).count("80") >= count, "the rules are for all of them")  # type: ignore[misc]
    # A second removal is told, and it is the second: nothing was told in between.
    subprocess.run(["nft", verb, "table", "ip", table], check=True)
    until(lambda: swarm.daemon.log_path.read_text().count(complaint) > before + 1, "the second removal is told")
    assert swarm.daemon.log_path.read_text().count(complaint) == before + 2


def test_sighup_writes_the_rules_again(swarm: Swarm) -> None:
    daemon = swarm.daemon
    table = daemon.config.nft_table + "-lb"
    swarm.create("web", "--publish", f"{free_port()}:80", args=SERVER)
    swarm.settles("web", 1)
    listing = ["nft", "list", "set", "ip", table, "virtual"]
    until(lambda: "elements" in subprocess.run(listing, capture_output=True, text=True).stdout, "it has its address")
    subprocess.run(["nft", "flush", "set", "ip", table, "virtual"], check=True)
    daemon.reload()
    until(lambda: "elements" in subprocess.run(listing, capture_output=True, text=True).stdout, "it is back")


def test_a_conversation_over_udp_survives_its_task(swarm: Swarm) -> None:
    port = free_port()
    swarm.create("names", "--publish", f"{port}:53/udp")
    [first] = swarm.settles("names", 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.connect(("127.0.0.1", port))
        channel.settimeout(0.5)

        def answered() -> bool:
            try:
                channel.send(b"who?")
                return bool(channel.recv(100))
            except OSError:
                return False

        with serving(sandbox(swarm, first), 53, socket.SOCK_DGRAM):
            until(answered, "it answers")
        swarm.daemon.docker("rm", "-f", first)
        until(lambda: swarm.settled("names", 1) not in ([], [first]), "it is replaced")
        with serving(sandbox(swarm, swarm.containers("names")[0]), 53, socket.SOCK_DGRAM):
            until(answered, "the same conversation goes on with the next task")


def test_a_port_that_somebody_else_has_is_taken_when_it_is_free(swarm: Swarm) -> None:
    port = free_port()
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("0.0.0.0", port))
        other.listen()
        swarm.create("web", "--publish", f"{port}:80", args=SERVER)
        [container] = swarm.settles("web", 1)
    assert until(lambda: ask(port), "it is taken") == container[:12]


@pytest.mark.skipif(not Path("/proc/sys/net/ipv6").exists(), reason="the kernel has no IPv6")
def test_a_virtual_address_of_ipv6(swarm: Swarm) -> None:
    daemon = swarm.daemon
    daemon.docker("network", "create", "-d", "overlay", "--attachable", "--ipv6", "six")
    try:
        swarm.create("web", "--replicas", "2", "--network", "six", args=SERVER)
        names = {task[:12] for task in swarm.settles("web", 2)}
        virtual = [entry["Addr"] for entry in swarm.inspect("web")["Endpoint"]["VirtualIPs"]]
        assert [":" in address for address in virtual] == [False, True]
        address = virtual[-1].partition("/")[0]
        client = daemon.docker("run", "-d", "--network", "six", "busybox", "sleep", "600").stdout.strip()
        found = daemon.docker("exec", client, "nslookup", "-type=aaaa", "web").stdout
        assert f"Address: {address}" in found
        seen: set[str] = set()

        def both_answered() -> bool:
            seen.add(daemon.docker("exec", client, "nc", "-w", "2", address, "80", check=False).stdout.strip())
            return names <= seen

        until(both_answered, "both answer")
        daemon.docker("service", "rm", "web")
        until(lambda: f"{daemon.config.nft_table}-lb" not in tables(), "the tables are gone")
    finally:
        swarm.remove_all()
        daemon.remove_containers()
        daemon.docker("network", "rm", "six")


def tables() -> str:
    return subprocess.check_output(["nft", "list", "tables"], text=True)


def test_a_network_tells_about_its_services(swarm: Swarm, network: str) -> None:
    daemon = swarm.daemon
    assert "Peers" not in daemon.http("GET", "/networks/mesh").json()
    port = free_port()
    swarm.create("web", "--replicas", "2", "--network", network, "-p", f"{port}:80", args=SERVER)
    swarm.create("plain", "--network", network, "--endpoint-mode", "dnsrr")
    swarm.settles("web", 2)
    swarm.settles("plain", 1)
    shown = daemon.http("GET", "/networks/mesh?verbose=true").json()
    node = daemon.http("GET", "/nodes").json()[0]
    assert shown["Peers"] == [{"Name": node["ID"][:12], "IP": node["Status"]["Addr"]}]
    web, plain = shown["Services"]["web"], shown["Services"]["plain"]
    # Another one is on the ingress network.
    all_of_them = swarm.inspect("web")["Endpoint"]["VirtualIPs"]
    [virtual] = [entry for entry in all_of_them if entry["NetworkID"] == shown["Id"]]
    assert (web["VIP"], web["Ports"]) == (virtual["Addr"].partition("/")[0], [f"Target: 80, Publish: {port}"])
    assert sorted(task["EndpointIP"] for task in web["Tasks"]) == addresses(swarm, "web", network)
    known = {entry["Name"]: entry["EndpointID"] for id, entry in shown["Containers"].items() if id != "lb-mesh"}
    assert {task["Name"]: task["EndpointID"] for task in (*web["Tasks"], *plain["Tasks"])} == known
    assert web["Tasks"][0]["Info"] == {"Host IP": node["Status"]["Addr"]}
    assert (plain["VIP"], len(plain["Tasks"])) == ("", 1)
    assert "Services" not in daemon.http("GET", "/networks/mesh").json()
    assert list(daemon.http("GET", "/networks/ingress?verbose=true").json()["Services"]) == ["web"]
    daemon.docker("network", "create", "--driver", "overlay", "unused")
    assert "Services" not in daemon.http("GET", "/networks/unused?verbose=true").json()
    daemon.docker("network", "rm", "unused")


def test_a_daemon_that_starts_takes_no_virtual_address_off(swarm: Swarm, network: str) -> None:
    swarm.create("web", "--network", network, args=SERVER)
    swarm.settles("web", 1)
    virtual = swarm.inspect("web")["Endpoint"]["VirtualIPs"][0]["Addr"].partition("/")[0]

    def there() -> bool:
        return f" {virtual}/32 " in subprocess.run(["ip", "-o", "addr"], capture_output=True, text=True).stdout

    until(there, "the virtual address on the bridge")
    with subprocess.Popen(["ip", "-o", "monitor", "address"], stdout=subprocess.PIPE, text=True) as monitor:
        try:
            swarm.daemon.kill9()
            swarm.daemon.start()
            until(lambda: swarm.daemon.http("GET", "/services").status == 200, "the swarm")
        finally:
            monitor.terminate()
        said = monitor.stdout.read() if monitor.stdout is not None else ""
    assert not [line for line in said.splitlines() if line.startswith("Deleted") and f" {virtual}/" in line]
    assert there()
    # What a service that is gone had goes with it, also from before the start.
    swarm.daemon.docker("service", "rm", "web")
    until(lambda: not there(), "the virtual address gone")
