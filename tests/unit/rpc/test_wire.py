"""Numbers and fields of protobuf, byte by byte; whole messages are compared with the library in test_protobuf."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from husk.rpc.wire import Malformed, read_span, read_tag, read_varint, skip, write_varint


@given(some.integers(0, (1 << 64) - 1), some.binary(max_size=3))
def test_numbers_come_back(value: int, behind: bytes) -> None:
    data = write_varint(value)
    assert read_varint(b"x" + data + behind, 1) == (value, 1 + len(data))


def test_a_negative_number_has_64_bits() -> None:
    assert read_varint(write_varint(-1), 0) == ((1 << 64) - 1, 10)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80" * 11 + b"\x00"])
def test_a_number_without_an_end(data: bytes) -> None:
    with pytest.raises(Malformed):
        read_varint(data, 0)


def test_the_number_of_a_field_has_its_limits() -> None:
    assert read_tag(b"\x0a", 0) == (10, 1)
    assert read_tag(b"\xff\xff\xff\xff\x0f", 0) == ((1 << 32) - 1, 5)
    for wrong in (b"\xff\xff\xff\xff\x1f", b"\x8a\x80\x80\x80\x80\x00"):
        with pytest.raises(Malformed, match="too large"):
            read_tag(wrong, 0)


def test_where_bytes_are() -> None:
    assert read_span(b"\x02ab", 0) == (1, 3)
    with pytest.raises(Malformed, match="in the middle"):
        read_span(b"\x03ab", 0)


@pytest.mark.parametrize(
    ("tag", "data"),
    [
        (0x08, b"\x96\x01"),  # a number
        (0x09, bytes(8)),
        (0x0A, b"\x02ab"),
        (0x0D, bytes(4)),
        (0x0B, b"\x08\x01\x13\x14\x0c"),  # a group with a number and a group
    ],
)
def test_fields_that_nobody_knows_are_passed_over(tag: int, data: bytes) -> None:
    assert skip(data + b"rest", 0, tag) == len(data)
    with pytest.raises(Malformed):
        skip(data[:-1], 0, tag)


@pytest.mark.parametrize(
    ("tag", "data"),
    [
        (0x00, b"\x01"),  # no number
        (0x0C, b""),  # the end of a group that has not begun
        (0x0B, b"\x14"),  # the end of another one
        (0x0E, b""),  # a form that is not there
        (0x0B, b"\x0b" * 200),
    ],
)
def test_what_no_message_has(tag: int, data: bytes) -> None:
    with pytest.raises(Malformed):
        skip(data, 0, tag)
