"""The driver of one network, with doubles of the host beneath it."""

import errno
from ipaddress import IPv4Interface
from pathlib import Path
from typing import cast

import pytest

from husk.errors import SystemFault
from husk.network import provision, sandbox
from husk.network.bridge import BridgeDriver, BridgeFull
from husk.network.endpoint import DEFAULTS
from husk.network.firewall import Firewall
from husk.network.host import BridgeState
from husk.network.settings import BridgeSettings


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
