"""This host's device of WireGuard, on two hosts: whoever drives it, the kernel or the program."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from husk.errors import Unavailable
from husk.kernel import tun
from husk.kernel.nftables import Nftables
from husk.network.host import has_left, sweep
from husk.network.settings import TunnelSettings
from husk.network.wireguard.parties import DeviceState, Mesh, Party, inner_address, key_of_text
from husk.network.wireguard.program import running
from husk.network.wireguard.tunnel import WireguardTunnel, remove_left
from tests.support.hosts import Host, Hosts

T = TypeVar("T")
VXLAN = 4789


def settings(host: Host) -> TunnelSettings:
    return TunnelSettings(f"wg-{os.getpid()}-{host.name[-1]}", "husk-test", "husk-test-wg", 51820)


def on(host: Host, work: Callable[[WireguardTunnel], Coroutine[Any, Any, T]], going_on: bool = True) -> T:
    """Run work on a tunnel there as a daemon does, from its start to its end."""

    async def run() -> T:
        tunnel = WireguardTunnel(settings(host))
        try:
            return await work(tunnel)
        finally:
            await (tunnel.let_go() if going_on else tunnel.remove())

    return host.inside(lambda: asyncio.run(run()))


async def key(tunnel: WireguardTunnel) -> bytes:
    await tunnel.open()
    assert tunnel.public is not None
    return key_of_text(tunnel.public[0])


def know(host: Host, *others: tuple[Host, bytes]) -> None:
    parties = tuple(Party(key, inner_address(other.name), other.address, 51820) for other, key in others)
    on(host, lambda tunnel: tunnel.apply(Mesh(inner_address(host.name), parties), 1440))


def state(host: Host) -> DeviceState:
    async def read(tunnel: WireguardTunnel) -> DeviceState:
        await tunnel.open()
        assert tunnel._device is not None
        return await asyncio.to_thread(tunnel._device.read)

    return on(host, read)


def reaches(sender: Host, receiver: Host, port: int = VXLAN, attempts: int = 20) -> bool:
    def listen() -> socket.socket:
        made = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        made.bind(("::", port))
        made.settimeout(0.25)
        return made

    def send() -> None:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as made:
            link = socket.if_nametoindex(settings(sender).interface)
            made.sendto(b"x" * 1300, (inner_address(receiver.name), port, 0, link))

    with receiver.inside(listen) as ear:
        for _ in range(attempts):
            sender.inside(send)
            with contextlib.suppress(TimeoutError):
                return len(ear.recv(2000)) == 1300
    return False


def test_two_hosts_know_each_other_until_one_forgets() -> None:
    with Hosts(2) as hosts:
        first, second = hosts
        keys = [on(host, key) for host in hosts]
        know(first, (second, keys[1]))
        know(second, (first, keys[0]))
        assert reaches(first, second) and reaches(second, first)
        assert not reaches(first, second, 4790, attempts=2), "nothing but VXLAN"
        found = state(first)
        assert (found.port, list(found.parties)) == (51820, [keys[1]])
        assert found.parties[keys[1]] == Party(keys[1], inner_address(second.name), second.address, 51820)
        assert [on(host, key) for host in hosts] == keys, "the next daemon finds it"
        if programs := running(settings(first).interface):
            # With no daemon there to know the key it is lost, and the next one is another.
            os.kill(programs[0], signal.SIGKILL)
            new = on(first, key)
            know(first, (second, keys[1]))
            assert new != keys[0] and not reaches(first, second, attempts=2)
            know(second, (first, new))
            assert reaches(first, second) and reaches(second, first)
        know(second)
        assert state(second).parties == {} and not reaches(first, second, attempts=2)
        for host in hosts:
            on(host, key, going_on=False)
            assert host.left() == [] and running(settings(host).interface) == []


def test_what_a_killed_daemon_left_goes_though_the_interface_went_first() -> None:
    with Hosts(1) as hosts:
        [host] = hosts
        given = settings(host)
        know(host)
        assert host.inside(tables) == [given.table]
        assert host.inside(lambda: sweep(given.owner, ())) == [given.interface]
        host.inside(lambda: remove_left(given))
        assert host.inside(tables) == [] and host.left() == [] and running(given.interface) == []
        assert not Path(f"/var/run/wireguard/{given.interface}.sock").exists()


def test_an_interface_that_a_killed_daemon_could_not_mark_goes() -> None:
    with Hosts(1) as hosts:
        [host] = hosts
        given = settings(host)

        def left() -> bool:
            return has_left(given.interface, given.table, Path("/nonexistent"))

        def make() -> None:
            tun.make(given.interface)

        assert not host.inside(left)
        host.inside(make)
        assert host.inside(left)
        host.inside(lambda: remove_left(given))
        assert not host.inside(left) and host.left() == []
        # Rules alone.
        know(host)
        host.inside(lambda: sweep(given.owner, ()))
        assert host.inside(left)
        host.inside(lambda: remove_left(given))
        assert not host.inside(left)


def tables() -> list[str]:
    return [line.split()[-1] for line in Nftables().run("list tables ip6").splitlines() if line]


def test_a_port_that_is_taken_is_told_of() -> None:
    with Hosts(1) as hosts:
        [host] = hosts

        def take() -> socket.socket:
            made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            made.bind(("", 51820))
            return made

        with host.inside(take), pytest.raises(Unavailable, match="--wireguard-port"):
            on(host, key)
        assert host.left() == [] and running(settings(host).interface) == []


def test_somebody_elses_interface_stays_as_it_is() -> None:
    with Hosts(1) as hosts:
        [host] = hosts
        name = settings(host).interface
        host.run("ip", "link", "add", name, "type", "bridge")
        for going_on in (True, False):
            with pytest.raises(Unavailable, match=f"interface {name}, .* somebody else made it"):
                on(host, key, going_on)
        found = host.run("ip", "-details", "link", "show", name)
        assert "bridge" in found and "alias" not in found
        host.run("ip", "link", "delete", name)
        on(host, key, going_on=False)
        assert host.left() == []
