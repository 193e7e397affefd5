"""The address of a bridge is one that a host may have."""

import pytest

from husk.errors import InvalidParameter
from husk.text.subnets import parse_bip


def test_bip_is_the_gateway_with_its_subnet():
    bip = parse_bip("10.1.2.3/24")
    assert (str(bip.ip), str(bip.network)) == ("10.1.2.3", "10.1.2.0/24")


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1/8",
        "224.0.0.5/24",
        "0.0.0.5/24",
        "",
        "10.1.2.3",
        "10.1.2.0/24",
        "10.1.2.255/24",
        "10.1.2.3/32",
        "fe80::1/64",
        "a/24",
    ],
)
def test_a_bip_that_is_no_host_with_a_prefix_is_refused(text):
    with pytest.raises(InvalidParameter, match="invalid bip"):
        parse_bip(text)
