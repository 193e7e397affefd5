"""Messages come out of the bytes of a stream as they went in, however they are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.rpc.grpc.framing import MessageReader, framed
from husk.rpc.grpc.status import RESOURCE_EXHAUSTED, UNIMPLEMENTED, GrpcError


@given(st.lists(st.binary(max_size=50), max_size=8), st.integers(1, 60))
def test_messages_survive_any_way_of_cutting(sent: list[bytes], step: int) -> None:
    data = b"".join(map(framed, sent))
    reader = MessageReader()
    received = [one for start in range(0, len(data), step) for one in reader.feed(data[start : start + step])]
    assert received == sent
    assert reader.waiting == 0


def test_an_unfinished_message_is_known() -> None:
    reader = MessageReader()
    assert reader.feed(framed(b"hello")[:-1]) == []
    assert reader.waiting == 9


def test_a_message_that_is_too_large_is_refused_by_its_head() -> None:
    with pytest.raises(GrpcError) as caught:
        MessageReader(largest=10).feed(framed(b"x" * 11)[:5])
    assert caught.value.code == RESOURCE_EXHAUSTED


def test_a_compressed_message_is_refused() -> None:
    with pytest.raises(GrpcError) as caught:
        MessageReader().feed(b"\x01" + bytes(4))
    assert caught.value.code == UNIMPLEMENTED
