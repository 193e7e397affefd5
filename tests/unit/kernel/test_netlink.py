"""Netlink framing is the inverse of itself, and what the kernel reports becomes an error that says what failed."""

import errno
import os
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.kernel.netlink import (
    ACK,
    REQUEST,
    NetlinkAnswer,
    NetlinkMessage,
    NetlinkSocket,
    attribute,
    attributes,
    decode,
    encode,
    error_of,
    nested,
    repeated,
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


@given(st.lists(st.tuples(kinds, values)))
def test_of_repeated_attributes_the_last_counts(wanted):
    data = b"".join(attribute(kind, value) for kind, value in wanted)
    assert list(repeated(data)) == wanted
    assert attributes(data) == dict(wanted)


@given(st.lists(st.tuples(st.integers(16, 100), values)))
def test_messages_of_a_datagram_come_back_in_order(contents):
    messages = [NetlinkMessage(kind, ACK, payload, "") for kind, payload in contents]
    datagram = b"".join(encode(message, number) for number, message in enumerate(messages))
    assert list(decode(datagram)) == [
        NetlinkAnswer(message.type, ACK | REQUEST, number, message.payload) for number, message in enumerate(messages)
    ]


def test_a_message_longer_than_its_datagram_is_refused():
    with pytest.raises(ValueError, match="malformed"):
        list(decode(struct.pack("=IHHII", 100, 16, 0, 1, 0)))


def test_code_zero_is_an_acknowledgement():
    assert error_of(NetlinkAnswer(2, 0, 1, struct.pack("=i", 0) + bytes(16)), "add veth x") is None


def test_an_error_names_the_request_and_the_kernels_explanation():
    payload = struct.pack("=i", -errno.EEXIST) + bytes(16) + text(1, "name taken")
    error = error_of(NetlinkAnswer(2, 0x200, 1, payload), "add veth x")
    assert isinstance(error, FileExistsError)
    assert "add veth x: File exists (name taken)" in str(error)


_NOTHING = NetlinkMessage(16, 0, bytes(16) + text(3, "no-such-link"), "change a link that is not there")


def test_an_answer_that_never_comes_is_an_error_that_says_what_was_asked():
    with NetlinkSocket(answer_seconds=1) as netlink:
        netlink._socket = _Stolen(netlink._socket)  # type: ignore[assignment]
        with pytest.raises(OSError, match="change a link that is not there: the kernel has not answered") as caught:
            netlink.attempt([_NOTHING])
    assert caught.value.errno == errno.ETIMEDOUT


class _Stolen:
    """A socket whose answers another reader takes, as a thread does that reads from a descriptor it has closed."""

    def __init__(self, real):
        self._real = real

    def send(self, data):
        sent = self._real.send(data)
        self._real.recv(1 << 16)
        return sent

    def __getattr__(self, name):
        return getattr(self._real, name)


@pytest.mark.skipif(os.geteuid() != 0, reason="nobody else may ask to change a link")
def test_more_messages_than_fit_into_one_batch_have_each_their_outcome():
    with NetlinkSocket() as netlink:
        outcomes = netlink.attempt([_NOTHING] * 300)
    assert [outcome and outcome.errno for outcome in outcomes] == [errno.ENODEV] * 300


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may send netlink messages to other processes")
def test_what_another_process_sends_is_not_taken_for_an_answer():
    with NetlinkSocket() as netlink, socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as other:
        netlink.attempt([_NOTHING])
        forged = struct.pack("=IHHII", 36, 2, 0, 2, 0) + struct.pack("=i", 0) + bytes(16)
        other.sendto(forged, (netlink._socket.getsockname()[0], 0))
        (outcome,) = netlink.attempt([_NOTHING])
    assert outcome is not None and outcome.errno == errno.ENODEV


def test_a_question_has_one_answer():
    with NetlinkSocket() as netlink:
        told = netlink.ask(NetlinkMessage(18, 0, bytes(16) + text(3, "lo"), "ask for a link"))
        assert attributes(told[16:])[3] == b"lo\0"
        with pytest.raises(OSError, match="ask for a link: No such device"):
            netlink.ask(NetlinkMessage(18, 0, bytes(16) + text(3, "no-such-link"), "ask for a link"))
