"""What an overlay network's settings give, without a kernel."""

import msgspec
import pytest

from husk.errors import InvalidParameter
from husk.network.overlay import OverlaySettings, largest_mtu

SETTINGS = OverlaySettings("br0", "vx0", "husk", 4097, 4789, "192.0.2.1", "10.0.9.253", 1450)


@pytest.mark.parametrize(
    ("underlay", "version", "encrypted", "mtu"),
    [(1500, 4, False, 1450), (1500, 6, False, 1430), (9000, 4, False, 8950), (1500, 4, True, 1412)],
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
