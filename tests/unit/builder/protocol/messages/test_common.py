"""Times of ours as messages."""

from husk.builder.protocol.messages.common import Timestamp, timestamp


def test_a_time_is_seconds_and_nanoseconds_and_zero_is_none() -> None:
    assert timestamp(1_500_000_002) == Timestamp(1, 500_000_002)
    assert timestamp(0) is None
