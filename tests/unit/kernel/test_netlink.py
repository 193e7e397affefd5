"""Netlink framing is the inverse of itself, and what the kernel reports becomes an error that says what failed."""

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.kernel.netlink import (
    ACK,
    REQUEST,
    Answer,
    Message,
    attribute,
    attributes,
    decode,
    encode,
    error_of,
    nested,
    text,
)

kinds = st.integers(1, 0x3FFF)
values = st.binary(max_size=64)


@given(st.dictionaries(kinds, values))
def test_attributes_come_back_as_they_went_in(wanted):
    assert attributes(b"".join(attribute(kind, value) for kind, value in wanted.items())) == wanted


@given(kinds, values)
def test_an_attribute_is_padded_to_four_bytes(kind, value):
    assert len(attribute(kind, value)) % 4 == 0


def test_a_nested_attribute_is_found_by_its_kind_without_the_flag():
    inner = attributes(nested(18, text(1, "veth")))[18]
    assert attributes(inner) == {1: b"veth\0"}


@given(st.binary(max_size=64))
def test_any_bytes_are_attributes_or_refused(data):
    try:
        attributes(data)
    except ValueError as error:
        assert "malformed" in str(error)


@given(st.lists(st.tuples(st.integers(16, 100), values)))
def test_messages_of_a_datagram_come_back_in_order(contents):
    messages = [Message(kind, ACK, payload, "") for kind, payload in contents]
    datagram = b"".join(encode(message, number) for number, message in enumerate(messages))
    assert list(decode(datagram)) == [
        Answer(message.type, ACK | REQUEST, number, message.payload) for number, message in enumerate(messages)
    ]


def test_a_message_longer_than_its_datagram_is_refused():
    with pytest.raises(ValueError, match="malformed"):
        list(decode(struct.pack("=IHHII", 100, 16, 0, 1, 0)))


def test_code_zero_is_an_acknowledgement():
    assert error_of(Answer(2, 0, 1, struct.pack("=i", 0) + bytes(16)), "add veth x") is None


def test_an_error_names_the_request_and_the_kernels_explanation():
    payload = struct.pack("=i", -errno.EEXIST) + bytes(16) + text(1, "name taken")
    error = error_of(Answer(2, 0x200, 1, payload), "add veth x")
    assert isinstance(error, FileExistsError)
    assert "add veth x: File exists (name taken)" in str(error)
