"""A firewall of somebody else that drops what is forwarded: Husk tells, and what docs/networks.md says helps."""

import shutil
import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Interface
from pathlib import Path

import pytest

from husk.kernel import namespaces, rtaddresses, rtnetlink
from husk.kernel.netlink import NetlinkSocket
from tests.support.daemon import Daemon
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(not shutil.which("iptables"), reason="there is no iptables")

PROGRAM = Path(__file__).parents[3] / ".venv/bin/husk"
# For documentation: nothing real is ever reached.
HERE, THERE = IPv4Interface("198.51.100.1/24"), IPv4Interface("198.51.100.2/24")


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[str]:
    path = tmp_path / "outside"
    with NetlinkSocket() as host:

        def connect(namespace: int) -> None:
            host.execute(rtnetlink.add_veth("out0", "eth0", peer_namespace=namespace))
            with NetlinkSocket() as inside:
                inside.execute(rtaddresses.add_address(index("eth0"), THERE), rtnetlink.set_up("eth0"))

        namespaces.create(path, connect)
        host.execute(rtaddresses.add_address(index("out0"), HERE), rtnetlink.set_up("out0"))
    yield str(THERE.ip)
    namespaces.remove(path)


def index(name: str) -> int:
    with NetlinkSocket() as netlink:
        links = map(rtnetlink.parse_link, netlink.dump(rtnetlink.list_links()))
        return next(link.index for link in links if link.name == name)


def iptables(*arguments: str) -> None:
    subprocess.run(["iptables", *arguments], check=True, capture_output=True)


def test_a_firewall_that_drops_is_told_and_can_be_told_about_us(outside: str) -> None:
    with Daemon() as daemon:
        bridge = daemon.config.bridge_name

        def warnings() -> list[str]:
            return [w for w in daemon.http("GET", "/info").json()["Warnings"] or [] if "nftables table" in w]

        def reached(seconds: int = 20) -> bool:
            command = ["run", "--rm", "busybox", "ping", "-c1", f"-W{seconds}", outside]
            return daemon.docker(*command, check=False).returncode == 0

        assert (warnings(), reached()) == ([], True)
        # As dockerd does it.
        iptables("-P", "FORWARD", "DROP")
        iptables("-N", "DOCKER-USER")
        iptables("-A", "FORWARD", "-j", "DOCKER-USER")
        assert not reached(1)
        [warning] = warnings()
        assert "chain FORWARD of the nftables table ip filter drops forwarded packets by default" in warning
        daemon.restart()
        until(lambda: "chain FORWARD of the nftables table ip filter" in daemon.log(100), "the log to say it too")
        iptables("-I", "DOCKER-USER", "-i", bridge, "-j", "ACCEPT")
        iptables("-I", "DOCKER-USER", "-o", bridge, "-j", "ACCEPT")
        assert (warnings(), reached()) == ([], True)


@pytest.mark.skipif(not shutil.which("iptables-legacy"), reason="there is no iptables-legacy")
def test_rules_of_the_old_kind_are_told_and_can_be_told_about_us(outside: str) -> None:
    def legacy(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(["iptables-legacy", *arguments], capture_output=True)

    if legacy("-S", "FORWARD").returncode != 0:
        pytest.skip("this kernel has no iptables of the old kind")
    with Daemon() as daemon:
        bridge = daemon.config.bridge_name

        def warnings() -> list[str]:
            return [w for w in daemon.http("GET", "/info").json()["Warnings"] or [] if "iptables-legacy" in w]

        def reached(seconds: int = 20) -> bool:
            command = ["run", "--rm", "busybox", "ping", "-c1", f"-W{seconds}", outside]
            return daemon.docker(*command, check=False).returncode == 0

        assert warnings() == []
        assert legacy("-P", "FORWARD", "DROP").returncode == 0
        try:
            assert not reached(1)
            [warning] = until(warnings, "the rules to be looked at again")
            assert "chain FORWARD of iptables-legacy drops forwarded packets" in warning
            told = subprocess.run([PROGRAM, "doctor"], capture_output=True, text=True).stdout
            assert "chain FORWARD of iptables-legacy drops what containers send and get" in told
            assert "iptables-legacy -I FORWARD -i husk0 -j ACCEPT" in told
            daemon.restart()
            until(lambda: "chain FORWARD of iptables-legacy drops" in daemon.log(100), "the log to say it too")
            for way in ("-i", "-o"):
                legacy("-I", "FORWARD", way, bridge, "-j", "ACCEPT")
            until(lambda: not warnings(), "the rules to be looked at again")
            assert reached()
        finally:
            legacy("-P", "FORWARD", "ACCEPT")
            legacy("-F", "FORWARD")


def test_a_firewall_whose_last_rule_rejects_is_told_too() -> None:
    """As firewalld's chains are: their policy is to accept."""
    rules = """
    table inet firewalld {
        chain filter_FORWARD {
            type filter hook forward priority filter + 10; policy accept;
            ct state established,related accept
            reject with icmpx admin-prohibited
        }
    }
    """
    with Daemon() as daemon:
        subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True)
        [warning] = [w for w in daemon.http("GET", "/info").json()["Warnings"] or [] if "nftables table" in w]
        assert "chain filter_FORWARD of the nftables table inet firewalld drops forwarded packets" in warning
        told = subprocess.run([PROGRAM, "doctor"], capture_output=True, text=True).stdout
        assert "warn  firewall    chain filter_FORWARD of the nftables table inet firewalld drops" in told
        assert "Cure: run firewall-cmd --permanent --zone=trusted --add-interface=husk0" in told
        accept = f'insert rule inet firewalld filter_FORWARD iifname "{daemon.config.bridge_name}" accept'
        subprocess.run(["nft", accept], check=True)
        assert not [w for w in daemon.http("GET", "/info").json()["Warnings"] or [] if "nftables table" in w]
