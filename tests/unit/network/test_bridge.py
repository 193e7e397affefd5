"""The driver of one network, with doubles of the host beneath it."""

import asyncio
import errno
import threading
from collections.abc import Iterable
from ipaddress import IPv4Interface
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from husk.aio.tasks import Tasks
from husk.errors import SystemFault
from husk.network import announcement, overlay, provision, sandbox
from husk.network import bridge as bridge_module
from husk.network.bridge import BridgeDriver
from husk.network.endpoint import DEFAULTS, EndpointOptions
from husk.network.firewall import Firewall
from husk.network.host import BridgeState
from husk.network.ipam import mac_address
from husk.network.provision import BridgeFull
from husk.network.settings import BridgeSettings
from tests.support.waiting import until_async

LEASE = sandbox.Lease("/nowhere/one", "veth0", "10.9.0.2", 24, "10.9.0.1", "02:42:0a:09:00:02")


class NoFirewall:
    port_prefix = "veth"


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> BridgeDriver:
    monkeypatch.setattr(provision, "index_of", lambda interface: 7)
    settings = BridgeSettings("br-test", "a test", tmp_path, warm=0)
    state = BridgeState(IPv4Interface("10.9.0.1/24"), 1500, bridge_index=7)
    return BridgeDriver(settings, cast(Firewall, NoFirewall()), state, lambda: None)


@pytest.mark.parametrize("verb", ["acquire", "attach"])
async def test_a_bridge_without_a_free_port_says_so_and_keeps_no_address(
    driver: BridgeDriver, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EXFULL, "Exchange full")

    monkeypatch.setattr(sandbox, "build", refuse)
    monkeypatch.setattr(sandbox, "attach", refuse)
    before = driver.usage
    with pytest.raises(BridgeFull, match="br-test has 1023 ports already"):
        await (driver.acquire(DEFAULTS) if verb == "acquire" else driver.attach("/nowhere", DEFAULTS))
    assert driver.usage == before
    await driver.close(remove=False)


async def test_what_else_the_host_refuses_is_told_in_its_words(
    driver: BridgeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(sandbox, "build", refuse)
    with pytest.raises(SystemFault, match=r"network on br-test cannot be set up: .*Cannot allocate memory"):
        await driver.acquire(DEFAULTS)
    await driver.close(remove=False)


async def test_addresses_that_cannot_be_freed_now_are_freed_with_the_next(
    driver: BridgeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "abandon_all", lambda paths: None)
    monkeypatch.setattr(sandbox, "connected", lambda lease: False)
    failures = [OSError(errno.ENOBUFS, "No buffer space available")]

    def cut_off(*_: object) -> None:
        if failures:
            raise failures.pop()

    monkeypatch.setattr(sandbox, "cut_off", cut_off)
    driver._allocator.adopt(LEASE)
    driver.release(LEASE)
    await until_async(lambda: not failures, "the first try")
    await driver._tasks.join()
    assert driver.uses("10.9.0.2")
    other = replace(LEASE, sandbox_path="/nowhere/two", host_interface="veth1", ip_address="10.9.0.3")
    driver._allocator.adopt(other)
    driver.release(other)
    await driver._tasks.join()
    assert not driver.uses("10.9.0.2") and not driver.uses("10.9.0.3")
    await driver.close(remove=False)


MACS = {"crowd": "02:42:0a:09:00:01", "administrator": ""}


@pytest.mark.parametrize(
    ("endpoints", "bridge", "always", "announced"),
    [(3, "crowd", False, 3), (6, "crowd", False, 4), (6, "crowd", True, 6), (6, "administrator", False, 6)],
)
async def test_who_has_no_news_says_nothing_to_a_crowd(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, endpoints: int, bridge: str, always: bool, announced: int
) -> None:
    monkeypatch.setattr(provision, "index_of", lambda interface: 7)
    monkeypatch.setattr(bridge_module, "_CROWD", 3)
    heard: list[str] = []

    async def repeat(lease: sandbox.Lease, times: int, interval: float) -> None:
        heard.append(lease.ip_address)

    def build(directory: Path, wiring: sandbox.Wiring) -> sandbox.Lease:
        assert wiring.address is not None
        ip = wiring.address.ip
        mac = wiring.mac or mac_address(ip)
        return sandbox.Lease("/nowhere", f"veth-{ip}", str(ip), 24, "10.9.0.1", mac)

    monkeypatch.setattr(announcement, "repeat", repeat)
    monkeypatch.setattr(sandbox, "build", build)
    settings = BridgeSettings("br-test", "a test", tmp_path, warm=0, always_announced=always)
    state = BridgeState(IPv4Interface("10.9.0.1/24"), 1500, bridge_index=7, mac=MACS[bridge])
    driver = BridgeDriver(settings, cast(Firewall, NoFirewall()), state, lambda: None)
    for number in range(endpoints):
        # The last one has news: a MAC that the address never had.
        await driver.acquire(EndpointOptions(mac="02:00:00:00:00:07") if number == 5 else DEFAULTS)
    await asyncio.sleep(0)
    assert len(heard) == announced
    await driver.close(remove=False)


async def test_an_endpoint_that_was_being_made_fits_too(driver: BridgeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    may_go = threading.Event()
    fitted: list[tuple[list[str], int]] = []

    def build(directory: Path, wiring: sandbox.Wiring) -> sandbox.Lease:
        assert wiring.mtu == 1500
        may_go.wait(60)
        return LEASE

    def fit(leases: Iterable[sandbox.Lease], mtu: int) -> None:
        fitted.append(([lease.host_interface for lease in leases], mtu))

    monkeypatch.setattr(sandbox, "build", build)
    monkeypatch.setattr(overlay, "fit", fit)
    acquiring = Tasks().spawn(driver.acquire(), "acquire", awaited=True)
    await asyncio.sleep(0)
    await driver.fit(1450)
    may_go.set()
    await acquiring
    assert fitted == [([], 1450), (["veth0"], 1450)]
    await driver.close(remove=False)


async def test_an_endpoint_of_somebody_who_has_gone_meanwhile_is_taken_back(
    driver: BridgeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go = threading.Event()
    taken_back: list[sandbox.Lease] = []

    def attach(path: str, wiring: sandbox.Wiring) -> sandbox.Lease:
        may_go.wait(60)
        return LEASE

    monkeypatch.setattr(sandbox, "attach", attach)
    monkeypatch.setattr(sandbox, "cut_off", lambda bridge, known, connected: taken_back.extend(known))
    before = driver.usage
    attaching = Tasks().spawn(driver.attach("/nowhere"), "attach", awaited=True)
    await until_async(lambda: driver.usage != before, "an address")
    attaching.cancel()
    may_go.set()
    with pytest.raises(asyncio.CancelledError):
        await attaching
    await until_async(lambda: driver.usage == before, "the address to be free again")
    assert taken_back == [LEASE]
    await driver.close(remove=False)
