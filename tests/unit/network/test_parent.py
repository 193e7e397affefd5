"""The parent of a macvlan or ipvlan network: one of the host's, or made for it and taken back when that was in vain."""

import errno
from collections.abc import Sequence
from ipaddress import IPv4Interface
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.errors import HuskError, InvalidParameter, NotFound, SystemFault
from husk.kernel.netlink import NetlinkMessage
from husk.network import host, parent
from husk.network.parent import ParentHost
from husk.network.sandbox import ParentLink
from husk.network.settings import BridgeSettings


class FakeAround:
    """The host: its interfaces, and what it says to each kind of new one."""

    def __init__(self) -> None:
        self.netlink = self
        self.by_name: dict[str, Any] = {"eth0": SimpleNamespace(index=2)}
        # Errors, by what is to be added.
        self.refuses: dict[str, int] = {}
        self.done: list[str] = []
        self.removed: list[str] = []
        self.decides: HuskError | None = None

    @property
    def under(self) -> ParentHost:
        return ParentHost(
            harden_parent=lambda name: self.done.append(f"harden {name}"),
            harden_port=lambda name: None,
            index_of=lambda name: 2,
            decide=self.decide,
            decide_6=lambda plan, around: None,
            remove=lambda name, owner: self.removed.append(name),
        )

    def around(self, interface: str) -> None:
        return None

    def decide(self, plan: object, around: object) -> IPv4Interface:
        if self.decides is not None:
            raise self.decides
        return IPv4Interface("10.0.0.1/24")

    def attempt(self, messages: Sequence[NetlinkMessage]) -> list[OSError | None]:
        errors: list[OSError | None] = []
        for message in messages:
            refused = next((number for kind, number in self.refuses.items() if f"add {kind} " in message.what), 0)
            errors.append(OSError(refused, "refused") if refused else None)
            self.done += [] if refused else [message.what]
        return errors

    def execute(self, *messages: Any) -> None:
        for error in self.attempt(messages):
            if error is not None:
                raise error


@pytest.fixture
def around() -> FakeAround:
    return FakeAround()


def prepare(around: FakeAround, interface: str, alone: bool = False) -> host.BridgeState:
    settings = BridgeSettings(interface, "ours", Path("/netns"), mtu=1400, alone=alone)
    return parent.prepare(settings, ParentLink("macvlan", 4), cast(Any, None), cast(Any, around), around.under)


def test_an_interface_of_the_host_is_used_as_it_is(around: FakeAround) -> None:
    assert prepare(around, "eth0").gateway == IPv4Interface("10.0.0.1/24")
    tried, gone = around.done
    assert tried.startswith("add macvlan hk") and gone == tried.replace("add macvlan", "delete interface")


def test_one_that_leads_nowhere_is_made_and_marked_as_ours(around: FakeAround) -> None:
    prepare(around, "dm-1", alone=True)
    assert around.done[:4] == ["add dummy dm-1", "set alias of dm-1", "harden dm-1", "set dm-1 up"]


def test_a_kernel_without_dummies_gets_a_pair(around: FakeAround) -> None:
    around.refuses["dummy"] = errno.EOPNOTSUPP
    prepare(around, "dm-1", alone=True)
    assert around.done[0].startswith("add veth dm-1")
    around.refuses["veth"] = errno.EPERM
    with pytest.raises(PermissionError):
        prepare(around, "dm-2", alone=True)


def test_a_vlan_of_an_interface_is_made(around: FakeAround) -> None:
    prepare(around, "eth0.10")
    assert around.done[0] == "add vlan eth0.10"


@pytest.mark.parametrize(
    ("name", "error"),
    [("eth1.10", NotFound), ("eth0.x", NotFound), ("nothing", NotFound), ("eth0.0", InvalidParameter),
     ("eth0.4095", InvalidParameter)],
)  # fmt: skip
def test_what_is_no_vlan(around: FakeAround, name: str, error: type[HuskError]) -> None:
    with pytest.raises(error):
        prepare(around, name)
    assert around.done == []


def test_a_kernel_without_vlans_says_so(around: FakeAround) -> None:
    around.refuses["vlan"] = errno.EOPNOTSUPP
    with pytest.raises(SystemFault, match=r"no 802\.1q interfaces"):
        prepare(around, "eth0.10")


@pytest.mark.parametrize(
    ("number", "says"),
    [(errno.EOPNOTSUPP, "this host's kernel has no macvlan interfaces"), (errno.EBUSY, "takes no macvlan interfaces")],
)
def test_a_parent_that_takes_no_such_interfaces_goes_again_if_it_was_made_for_it(
    around: FakeAround, number: int, says: str
) -> None:
    around.refuses["macvlan"] = number
    with pytest.raises(SystemFault, match=says):
        prepare(around, "eth0")
    assert around.removed == []
    with pytest.raises(SystemFault, match=says):
        prepare(around, "dm-1", alone=True)
    assert around.removed == ["dm-1"]


def test_without_a_free_subnet_nothing_stays(around: FakeAround) -> None:
    around.decides = SystemFault("no subnet is left")
    with pytest.raises(SystemFault):
        prepare(around, "dm-1", alone=True)
    assert around.removed == ["dm-1"]
