import time
from datetime import UTC, datetime

import pytest

from husk.client.moments import moment
from husk.errors import InvalidParameter


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (None, None),
        ("", None),
        (0, "0"),
        (1.5, "1.5"),
        (1700000000, "1700000000"),
        ("1700000000.25", "1700000000.25"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "1767323045.000000"),
        ("2026-01-02T03:04:05Z", "1767323045.000000"),
        ("2026-01-02T04:04:05.5+01:00", "1767323045.500000"),
    ],
)
def test_moments(given, seconds):
    assert moment(given) == seconds


@pytest.mark.parametrize(("given", "ago"), [("10m", 600), ("1h30m", 5400), ("90s", 90), ("1.5h", 5400), ("20ms", 0.02)])
def test_a_time_ago(given, ago):
    told = moment(given)
    assert told is not None
    assert time.time() - float(told) == pytest.approx(ago, abs=30)


def test_no_moment():
    with pytest.raises(InvalidParameter, match="expected seconds"):
        moment("yesterday")
