"""Parties that are known by their keys, and the changes of that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.errors import InvalidParameter
from husk.network.wireguard.parties import (
    DeviceChange,
    DeviceState,
    Party,
    difference,
    inner_address,
    key_of_text,
    normal,
    text_of_key,
)

ONE, TWO, OWN = b"1" * 32, b"2" * 32, b"0" * 32
KNOWN = Party(ONE, "fe80::1", "192.0.2.1", 51820)


def test_a_node_has_one_address_of_the_link():
    assert inner_address("a") == inner_address("a") != inner_address("b")
    assert inner_address("a").startswith("fe80::")


def test_what_is_so_is_not_told_again():
    state = DeviceState(OWN, 51820, {ONE: KNOWN})
    assert not difference(state, OWN, 51820, [KNOWN])


def test_a_new_device_is_told_all():
    assert difference(DeviceState(), OWN, 51820, [KNOWN]) == DeviceChange(OWN, 51820, (KNOWN,))


def test_another_key_takes_the_place_of_the_old_one():
    renewed = Party(TWO, KNOWN.inner, KNOWN.address, KNOWN.port)
    change = difference(DeviceState(OWN, 51820, {ONE: KNOWN}), OWN, 51820, [renewed])
    assert change == DeviceChange(parties=(renewed,), gone=(ONE,))


def test_another_address_is_told():
    moved = Party(ONE, KNOWN.inner, "192.0.2.9", KNOWN.port)
    assert difference(DeviceState(OWN, 1, {ONE: KNOWN}), OWN, 2, [moved]) == DeviceChange(port=2, parties=(moved,))


@given(st.binary(min_size=32, max_size=32).filter(any))
def test_keys_are_written_as_wireguard_does(key):
    assert key_of_text(text_of_key(key)) == key


@pytest.mark.parametrize("text", ["", "what", text_of_key(b"short"), text_of_key(bytes(32)), "é" * 44])
def test_what_is_no_key(text):
    with pytest.raises(InvalidParameter, match="no public key"):
        key_of_text(text)


def test_one_address_has_one_form():
    assert normal("2001:DB8:0::1") == "2001:db8::1"


@pytest.mark.parametrize("text", ["", "eth0", "fe80::1%eth0", "fe80::1%lo]:1\nremove=true\nendpoint=[fe80::2"])
def test_what_is_no_address_of_a_host(text: str) -> None:
    with pytest.raises(InvalidParameter, match="no address of a host"):
        normal(text)
