"""Messages about keys and policies have the kernel's form, read with the functions that read its own."""

from ipaddress import ip_address

import pytest

from husk.kernel import xfrm
from husk.kernel.netlink import attributes
from husk.kernel.xfrm import INWARD, OUTWARD, Association, Policy

FOUR = ip_address("192.0.2.1"), ip_address("192.0.2.2")
SIX = ip_address("2001:db8::1"), ip_address("2001:db8::2")
MARK = 0x68751234


@pytest.mark.parametrize("ends", [FOUR, SIX])
def test_an_association_comes_back(ends):
    association = Association(ends[0], ends[1], 0x80001234, MARK)
    payload = xfrm.add_association(association, bytes(36)).payload
    assert xfrm.parse_association(payload) == association
    algorithm = attributes(payload[224:])[18]
    assert algorithm[:17] == b"rfc4106(gcm(aes))"
    assert algorithm[64:72] == (288).to_bytes(4, "little") + (128).to_bytes(4, "little")


def test_a_deletion_names_target_number_and_source():
    payload = xfrm.delete_association(Association(*FOUR, 0x80001234, MARK)).payload
    assert payload[:4] == FOUR[1].packed
    assert payload[16:20] == bytes.fromhex("80001234")
    assert attributes(payload[24:])[13][:4] == FOUR[0].packed


@pytest.mark.parametrize(
    "policy",
    [
        Policy(OUTWARD, 4790, 4, MARK, *FOUR, 0x80001234),
        Policy(INWARD, 4790, 4, MARK, *FOUR),
        Policy(INWARD, 4790, 6, MARK, *SIX),
        Policy(OUTWARD, 4790, 4, MARK),
        Policy(INWARD, 4790, 6, MARK),
    ],
)
def test_a_policy_comes_back(policy):
    assert xfrm.parse_policy(xfrm.set_policy(policy).payload, MARK) == policy
    assert xfrm.delete_policy(policy).payload[:56] == xfrm.set_policy(policy).payload[:56]


def test_policies_of_others_are_left_out():
    payload = bytearray(xfrm.set_policy(Policy(OUTWARD, 4790, 4, MARK, *FOUR)).payload)
    payload[44] = 6  # TCP
    assert xfrm.parse_policy(bytes(payload), MARK) is None
    without_template = xfrm.set_policy(Policy(OUTWARD, 4790, 4, MARK, *FOUR)).payload[:168]
    assert xfrm.parse_policy(without_template, MARK) is None
