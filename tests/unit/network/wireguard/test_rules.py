"""The rules for the device."""

import pytest

from husk.errors import InvalidParameter
from husk.network.wireguard.rules import removal, ruleset


def test_nothing_but_vxlan_goes_in():
    text = ruleset("husk-wg", "wg-husk", "fe80::1", 4789)
    assert 'input iifname "wg-husk" udp dport != 4789 drop' in text
    assert 'output oifname != "wg-husk" ip6 saddr fe80::1 drop' in text
    assert removal("husk-wg") == "add table ip6 husk-wg\ndelete table ip6 husk-wg\n"


def test_no_word_gets_into_them_unseen():
    with pytest.raises(InvalidParameter):
        ruleset("husk-wg", 'wg" drop', "fe80::1", 4789)
    with pytest.raises(ValueError, match="drop"):
        ruleset("husk-wg", "wg", "drop", 4789)
