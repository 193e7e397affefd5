"""The driver of one network, with doubles of the host beneath it."""

import asyncio
import errno
import threading
from collections.abc import Sequence
from ipaddress import IPv4Interface
from pathlib import Path
from typing import cast

import pytest

from husk.aio.tasks import Tasks
from husk.errors import SystemFault
from husk.network.bridge import BridgeDriver, BridgeHost
from husk.network.endpoint import DEFAULTS, EndpointOptions
from husk.network.firewall import Firewall
from husk.network.host import BridgeState
from husk.network.ipam import mac_address
from husk.network.provision import BridgeFull
from husk.network.sandbox import Lease, Wiring
from husk.network.settings import BridgeSettings
from tests.support.waiting import until_async


class NoFirewall:
    port_prefix = "veth"


class Host(BridgeHost):
    """A host whose kernel makes what it is told, in no time, and of which `refusal` is what it says instead."""

    def __init__(self) -> None:
        self.refusal: OSError | None = None
        self.cut_off_refusal: OSError | None = None
        self.may_go = threading.Event()
        self.may_go.set()
        self.wired: list[Wiring] = []
        self.taken_back: list[Lease] = []
        self.fitted: list[tuple[list[str], int]] = []
        self.heard: list[str] = []

    def index_of(self, interface: str) -> int:
        return 7

    def build(self, directory: Path, wiring: Wiring) -> Lease:
        return self.attach("/nowhere", wiring)

    def attach(self, sandbox_path: str, wiring: Wiring) -> Lease:
        if self.refusal is not None:
            raise self.refusal
        self.wired.append(wiring)
        self.may_go.wait(60)
        assert wiring.address is not None
        ip = wiring.address.ip
        return Lease(sandbox_path, f"veth-{ip}", str(ip), 24, "10.9.0.1", wiring.mac or mac_address(ip))

    def cut_off(self, interface: str, known: Sequence[Lease], connected: Sequence[Lease]) -> None:
        if self.cut_off_refusal is not None:
            raise self.cut_off_refusal
        self.taken_back.extend(known)

    def fit(self, leases: Sequence[Lease], mtu: int) -> None:
        self.fitted.append(([lease.host_interface for lease in leases], mtu))

    async def retire(self, leases: Sequence[Lease]) -> list[Lease]:
        return []

    async def announce(self, lease: Lease, times: int, interval: float) -> None:
        self.heard.append(lease.ip_address)


@pytest.fixture
def host() -> Host:
    return Host()


def driver_on(host: Host, directory: Path, *, always: bool = False, mac: str = "", crowd: int = 100) -> BridgeDriver:
    settings = BridgeSettings("br-test", "a test", directory, warm=0, always_announced=always)
    state = BridgeState(IPv4Interface("10.9.0.1/24"), 1500, bridge_index=7, mac=mac)
    return BridgeDriver(settings, cast(Firewall, NoFirewall()), state, lambda: None, host, crowd)


@pytest.fixture
def driver(host: Host, tmp_path: Path) -> BridgeDriver:
    return driver_on(host, tmp_path)


@pytest.mark.parametrize("verb", ["acquire", "attach"])
async def test_a_bridge_without_a_free_port_says_so_and_keeps_no_address(
    driver: BridgeDriver, host: Host, verb: str
) -> None:
    host.refusal = OSError(errno.EXFULL, "Exchange full")
    before = driver.usage
    with pytest.raises(BridgeFull, match="br-test has 1023 ports already"):
        await (driver.acquire(DEFAULTS) if verb == "acquire" else driver.attach("/nowhere", DEFAULTS))
    assert driver.usage == before
    await driver.close(remove=False)


async def test_what_else_the_host_refuses_is_told_in_its_words(driver: BridgeDriver, host: Host) -> None:
    host.refusal = OSError(errno.ENOMEM, "Cannot allocate memory")
    with pytest.raises(SystemFault, match=r"network on br-test cannot be set up: .*Cannot allocate memory"):
        await driver.acquire(DEFAULTS)
    await driver.close(remove=False)


async def test_addresses_that_cannot_be_freed_now_are_freed_with_the_next(
    driver: BridgeDriver, host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = await driver.acquire(), await driver.acquire()
    host.cut_off_refusal = OSError(errno.ENOBUFS, "No buffer space available")
    driver.release(one)
    await until_async(lambda: "are removed with the next one that goes" in caplog.text, "the first try")
    assert driver.uses(one.ip_address)
    host.cut_off_refusal = None
    driver.release(other)
    await until_async(lambda: not driver.uses(other.ip_address), "the second try")
    assert not driver.uses(one.ip_address)
    await driver.close(remove=False)


MACS = {"crowd": "02:42:0a:09:00:01", "administrator": ""}


@pytest.mark.parametrize(
    ("endpoints", "bridge", "always", "announced"),
    [(3, "crowd", False, 3), (6, "crowd", False, 4), (6, "crowd", True, 6), (6, "administrator", False, 6)],
)
async def test_who_has_no_news_says_nothing_to_a_crowd(
    host: Host, tmp_path: Path, endpoints: int, bridge: str, always: bool, announced: int
) -> None:
    driver = driver_on(host, tmp_path, always=always, mac=MACS[bridge], crowd=3)
    for number in range(endpoints):
        # The last one has news: a MAC that the address never had.
        await driver.acquire(EndpointOptions(mac="02:00:00:00:00:07") if number == 5 else DEFAULTS)
    await asyncio.sleep(0)
    assert len(host.heard) == announced
    await driver.close(remove=False)


async def test_an_endpoint_that_was_being_made_fits_too(driver: BridgeDriver, host: Host) -> None:
    host.may_go.clear()
    acquiring = Tasks().spawn(driver.acquire(), "acquire", awaited=True)
    await until_async(lambda: host.wired, "it is being made")
    await driver.fit(1450)
    host.may_go.set()
    lease = await acquiring
    assert host.wired[0].mtu == 1500 and host.fitted == [([], 1450), ([lease.host_interface], 1450)]
    await driver.close(remove=False)


async def test_an_endpoint_of_somebody_who_has_gone_meanwhile_is_taken_back(driver: BridgeDriver, host: Host) -> None:
    host.may_go.clear()
    before = driver.usage
    attaching = Tasks().spawn(driver.attach("/nowhere"), "attach", awaited=True)
    await until_async(lambda: driver.usage != before, "an address")
    attaching.cancel()
    host.may_go.set()
    with pytest.raises(asyncio.CancelledError):
        await attaching
    await until_async(lambda: driver.usage == before, "the address to be free again")
    assert len(host.taken_back) == 1
    await driver.close(remove=False)
