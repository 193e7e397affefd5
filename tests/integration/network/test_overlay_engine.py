"""The engine's side of overlay networks on real hosts: told who is where, containers of two hosts reach each other."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from husk.engine.model.network import Network
from husk.engine.networks.live import LiveNetwork, Roster
from husk.engine.networks.overlays import Overlays, OverlayWay, Underlay
from husk.network.bridge import BridgeDriver
from husk.network.firewall import Firewall
from husk.network.peers import OverlayPeer
from husk.network.sandbox import Lease
from husk.network.settings import BridgeSettings
from husk.network.wireguard.parties import Mesh
from tests.support.bridges import pings
from tests.support.hosts import Host, Hosts
from tests.support.overlays import as_peers

T = TypeVar("T")
ID = "abcdef0123456789" * 4
OWNER = "husk-test"
OWN = {"host1": "10.0.9.254", "host2": "10.0.9.253"}


class Engine:
    """The part of an engine that has to do with one overlay network."""

    def __init__(self, host: Host, directory: Path) -> None:
        self.host = host
        number = int(host.name[-1])
        self._settings = BridgeSettings(
            "br-abc", OWNER, directory / host.name, bip="10.0.9.1/24", ip_range=f"10.0.9.{64 * number}/26", warm=1
        )

    async def open(self, leases: list[Lease]) -> None:
        self.firewall = Firewall(OWNER)
        self.driver = await BridgeDriver.open(self._settings, "10.0.9.0/24", leases, self.firewall)
        await asyncio.to_thread(self.firewall.apply)
        roster = Roster()
        network = Network(id=ID, name="net", driver="overlay", created="")
        roster.by_name["net"] = LiveNetwork(network, self.driver)
        self.network, self.overlays = network, Overlays(roster, OWNER)

    async def tell(self, leases: dict[str, Lease]) -> None:
        peers = [OverlayPeer(lease.ip_address, lease.mac_address, address) for address, lease in leases.items()]
        for name, own in OWN.items():
            peers += as_peers([own], own, f"192.0.2.{name[-1]}")
        underlay = Underlay(self.host.address, 4789, Mesh("fe80::1"))
        await self.overlays.apply(underlay, {ID: OverlayWay(4097, OWN[self.host.name], tuple(peers))})


def run(work: Callable[[Engine], Coroutine[Any, Any, T]], engine: Engine) -> T:
    return asyncio.run(work(engine))


def test_containers_that_ran_before_reach_others_when_the_engine_is_told(tmp_path: Path) -> None:
    with Hosts(2) as hosts:
        engines = {host.address: Engine(host, tmp_path) for host in hosts}

        async def start(engine: Engine) -> Lease:
            await engine.open([])
            lease = await engine.driver.acquire()
            await engine.driver.close(remove=False)
            return lease

        leases = {address: engine.host.inside(partial(run, start, engine)) for address, engine in engines.items()}

        async def hear(engine: Engine, end: bool = False) -> None:
            await engine.open([] if end else [leases[engine.host.address]])
            await engine.tell(leases)
            if end:
                await engine.overlays.remove(engine.network)
            await engine.driver.close(remove=end)
            if end:
                await asyncio.to_thread(engine.firewall.remove)

        for _ in range(2):
            for engine in engines.values():
                engine.host.inside(partial(run, hear, engine))
            first, second = leases.values()
            assert pings(first.sandbox_path, second.ip_address)
        mtu = hosts[0].run("ip", "link", "show", first.host_interface)
        assert " mtu 1450 " in mtu
        hosts[0].inside(lambda: asyncio.run(hear(engines[hosts[0].address], end=True)))
        assert hosts[0].left() == []
