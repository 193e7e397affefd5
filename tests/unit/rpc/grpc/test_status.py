"""Ends of calls are written to trailers and read from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.rpc.grpc import status
from husk.rpc.grpc.status import GrpcError


@given(st.integers(1, 16), st.text(max_size=200), st.binary(max_size=100))
def test_an_error_is_read_as_it_was_written(code: int, message: str, details: bytes) -> None:
    read = status.outcome(status.trailers(GrpcError(code, message, details)))
    assert read is not None
    expected = message.encode(errors="replace").decode()
    assert (read.code, read.message, read.details) == (code, expected, details)


def test_no_error_is_ok() -> None:
    assert status.trailers() == [(b"grpc-status", b"0")]
    assert status.outcome(status.trailers()) is None


def test_a_message_is_cut_and_details_dropped_where_headers_would_be_too_large() -> None:
    read = status.outcome(status.trailers(GrpcError(2, "x" * 100_000, b"y" * 100_000)))
    assert read is not None and len(read.message) == 8192 and read.details == b""


def test_an_answer_of_http_without_a_status_is_an_error() -> None:
    read = status.outcome([(b":status", b"503")])
    assert read is not None and read.code == status.UNAVAILABLE


def test_a_value_that_is_not_base64_is_nothing() -> None:
    assert status.binary(b"***") == b""


@pytest.mark.parametrize(
    ("value", "expected"), [(b"5S", 5.0), (b"250m", 0.25), (b"1H", 3600.0), (b"", None), (b"S", None), (b"1x", None)]
)
def test_times_are_read(value: bytes, expected: float | None) -> None:
    assert status.seconds(value) == expected
