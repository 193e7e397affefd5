"""Consequences of an overlay network's settings, without a kernel."""

import errno

import msgspec
import pytest

from husk.errors import InvalidParameter
from husk.network import overlay
from husk.network.overlay import Ends, Overlay, OverlaySettings, largest_mtu
from husk.network.sandbox import Lease

SETTINGS = OverlaySettings("br0", "vx0", "husk", 4097, 4789, "192.0.2.1", "10.0.9.253", 1450)


@pytest.mark.parametrize(
    ("underlay", "version", "encrypted", "mtu"),
    [
        (1500, 4, False, 1450),
        (1500, 6, False, 1430),
        (9000, 4, False, 8950),
        (1500, 4, True, 1370),
        (1500, 6, True, 1350),
    ],
)
def test_the_mtu_leaves_room_for_what_carries_it(underlay, version, encrypted, mtu):
    assert largest_mtu(underlay, version, encrypted) == mtu


def test_an_underlay_that_is_too_narrow_is_refused():
    with pytest.raises(InvalidParameter, match="no room"):
        largest_mtu(100, 4)


def test_the_interface_has_the_mac_of_the_hosts_own_address():
    assert SETTINGS.mac == "02:42:0a:00:09:fd"


@pytest.mark.parametrize("changes", [{"vni": 0}, {"vni": 1 << 24}, {"port": 0}, {"port": 65536}])
def test_numbers_that_there_are_not(changes):
    SETTINGS.check()
    with pytest.raises(InvalidParameter):
        msgspec.structs.replace(SETTINGS, **changes).check()


class FakeEnds(Ends):
    """Those of sandboxes of which some fail, and the interfaces that were given an MTU."""

    def __init__(self, failing: dict[str, OSError]) -> None:
        self.failing = failing
        self.fitted: list[str] = []

    def fit_inside(self, sandbox_path: str, interface: str, mtu: int) -> None:
        if sandbox_path in self.failing:
            raise self.failing[sandbox_path]
        self.fitted.append(interface)

    def fit_outside(self, interface: str, mtu: int) -> None:
        self.fitted.append(interface)


@pytest.mark.parametrize("error", [errno.ENOENT, errno.EINVAL])
def test_a_container_that_has_just_ended_keeps_no_other_from_fitting(error: int) -> None:
    ends = FakeEnds({"gone": OSError(error, "gone")})
    overlay.fit([lease("gone"), lease("here")], 1450, ends)
    assert ends.fitted == ["here", "veth-here"]


def test_one_that_cannot_fit_keeps_no_other_from_it_and_is_told_of() -> None:
    ends = FakeEnds({"broken": OSError(errno.EPERM, "not ours")})
    with pytest.raises(OSError, match="not ours"):
        overlay.fit([lease("broken"), lease("here")], 1450, ends)
    assert ends.fitted == ["here", "veth-here"]


def lease(name: str) -> Lease:
    return Lease(name, f"veth-{name}", "10.0.9.5", 24, "10.0.9.1", "02:42:0a:00:09:05", name)


def test_an_interface_that_somebody_deleted_is_not_there():
    assert not Overlay(SETTINGS).is_there
    assert Overlay(msgspec.structs.replace(SETTINGS, interface="lo")).is_there
