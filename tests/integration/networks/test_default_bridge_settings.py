"""Packets follow the settings of the default bridge: its IPv6 address, another gateway, no masquerading."""

import secrets
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_interface
from pathlib import Path

import pytest

from husk.kernel import namespaces, rtaddresses, rtnetlink
from husk.kernel.netlink import NetlinkSocket
from tests.integration.networks.conftest import Network, Outside, address6, inside, reach, serving
from tests.support.daemon import Daemon

pytestmark = pytest.mark.skipif(not Path("/proc/sys/net/ipv6").exists(), reason="the kernel has no IPv6")


@pytest.fixture
def net(prefix: str) -> Iterator[Network]:
    settings = ("--ipv6", "--bip6", f"{prefix}:1::5/64", "--default-gateway-v6", f"{prefix}:1::9", "--ip-masq=false")
    with Daemon(*settings) as daemon:
        yield Network(daemon)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


@contextmanager
def machine_on(bridge: str, path: Path, *addresses: str) -> Iterator[Path]:
    """A machine that is plugged into a bridge; its network namespace."""
    link = "ot" + secrets.token_hex(5)

    with NetlinkSocket() as host:
        master = socket.if_nametoindex(bridge)

        def plug_in(namespace: int) -> None:
            host.execute(rtnetlink.add_veth(link, "eth0", peer_namespace=namespace, master=master))
            with NetlinkSocket() as inside:
                for address in addresses:
                    inside.execute(rtaddresses.add_address(socket.if_nametoindex("eth0"), ip_interface(address)))
                inside.execute(rtnetlink.set_up("eth0"))

        namespaces.create(path, plug_in)
        try:
            host.execute(rtnetlink.set_up(link))
            yield path
        finally:
            namespaces.remove(path)
            host.attempt([rtnetlink.delete_link(link)])


def test_the_bridge_has_the_address_of_bip6_and_containers_leave_by_the_gateway(
    net: Network, prefix: str, outside6: Outside, tmp_path: Path
) -> None:
    net.run("one")
    assert address6(net, "one", "bridge").startswith(f"{prefix}:1::")
    assert net.pings("one", f"{prefix}:1::5")
    inside(outside6.namespace, lambda: ip("route", "add", f"{prefix}:1::/64", "via", outside6.host))
    # The gateway is another machine on the network, which has the address of the outside as well: it answers itself.
    with (
        machine_on(net.daemon.config.bridge_name, tmp_path / "router", f"{prefix}:1::9/64", outside6.address) as router,
        serving(router, 7000, address="::"),
        serving(outside6.namespace, 7001, address="::"),
    ):
        assert reach(outside6.address, 7000, net.sandbox("one")) == address6(net, "one", "bridge")
        assert reach(outside6.address, 7001, net.sandbox("one"), seconds=1) == "", "the host is no gateway"


def test_a_bridge_with_another_name_is_the_administrators() -> None:
    """As with dockerd: a wrong name makes no bridge."""
    name = "ot" + secrets.token_hex(5)
    daemon = Daemon("--bridge", name, choose_subnet=True)
    try:
        with pytest.raises(
            AssertionError, match=f"bridge device with non default name {name} must be created manually"
        ):
            daemon.start()
    finally:
        daemon.close()
    ip("link", "add", name, "type", "bridge")
    try:
        ip("address", "add", "10.219.11.1/24", "dev", name)
        with Daemon("--bridge", name, choose_subnet=True) as there:
            net = Network(there)
            net.run("box")
            assert net.address("box") == "10.219.11.2" and net.pings("box", "10.219.11.1")
    finally:
        ip("link", "delete", name)


def test_without_masquerading_the_outside_sees_the_container(net: Network, outside: Outside) -> None:
    net.run("one")
    subnet = ip_interface(net.daemon.config.bip).network
    inside(outside.namespace, lambda: ip("route", "add", str(subnet), "via", outside.host))
    with serving(outside.namespace, 7000):
        assert reach(outside.address, 7000, net.sandbox("one")) == net.address("one")
