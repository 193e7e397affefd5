"""Times: one text for one moment, and Go's durations and words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.engine.model import clock
from husk.engine.model.clock import (
    LATEST,
    human_duration,
    lasts,
    parse_duration,
    parse_rfc3339,
    parse_timestamp,
    rfc3339,
)
from husk.errors import InvalidParameter

SECOND = 10**9
MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
YEAR_2 = parse_rfc3339("0002-01-01T00:00:00Z")
moments = st.integers(YEAR_2, LATEST)


@given(moments)
def test_a_time_survives_the_trip_through_its_text(ns: int) -> None:
    assert parse_rfc3339(rfc3339(ns)) == ns


@given(moments, moments)
def test_texts_sort_as_times_do(a: int, b: int) -> None:
    assert (rfc3339(a) < rfc3339(b)) == (a < b)


def test_a_time_has_nine_digits_behind_its_seconds() -> None:
    assert rfc3339(0) == "1970-01-01T00:00:00.000000000Z"
    assert rfc3339(-1) == "1969-12-31T23:59:59.999999999Z"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2026-01-02T03:04:05+01:30", "2026-01-02T01:34:05Z"),
        ("2026-01-02T03:04:05-01:30", "2026-01-02T04:34:05Z"),
        ("2026-01-02 03:04:05.5z", "2026-01-02T03:04:05.500000000Z"),
        ("2026-01-02T03:04", "2026-01-02T03:04:00Z"),
        ("2026-01-02T03", "2026-01-02T03:00:00Z"),
        ("2026-01-02", "2026-01-02T00:00:00Z"),
        ("2026-01-02T00:00:00.1234567891234Z", "2026-01-02T00:00:00.123456789Z"),
    ],
)
def test_shorter_and_other_forms_are_read(text: str, same: str) -> None:
    assert parse_rfc3339(text) == parse_rfc3339(same)


def test_never_is_the_beginning_of_time() -> None:
    assert parse_rfc3339("0001-01-01T00:00:00Z") == 0
    assert parse_rfc3339("0000-01-01T00:00:00Z") == 0


@pytest.mark.parametrize(
    "text",
    [
        "", "today", "2026-13-01", "2026-00-01", "2026-02-30", "2025-02-29", "2026-01-01T24:00", "2026-01-01T00:60",
        "2026-01-01T00:00:60Z", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+00:60", "2026-1-1", "٢٠٢٦-01-01",
    ],
)  # fmt: skip
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match="invalid time"):
        parse_rfc3339(text)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0", 0), ("1s", SECOND), ("1.5s", 3 * SECOND // 2), (".5s", SECOND // 2), ("1.s", SECOND), ("+1m", MINUTE),
        ("-1m30s", -90 * SECOND), ("1h2m3s4ms5us6ns", HOUR + 2 * MINUTE + 3 * SECOND + 4_005_006), ("3µs", 3_000),
        ("3\u03bcs", 3_000), ("0.100000000000000000000s", SECOND // 10), ("9223372036854775807ns", None),
        ("922337203685477580ns", 922337203685477580), ("2562047h", 2562047 * HOUR), ("2562048h", None),
    ],
)  # fmt: skip
def test_a_duration_is_read_as_go_reads_it(text: str, ns: int | None) -> None:
    assert parse_duration(text) == ns


@pytest.mark.parametrize(
    "text", ["", "-", "+", "1", "s", ".s", "1 s", "1s ", "1x", "1sm", "--1s", "1e3s", "٣s", "9" * 5000 + "h"]
)
def test_what_is_no_duration_is_none(text: str) -> None:
    assert parse_duration(text) is None


@given(st.integers(0, 2_000), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999_999_999))
def test_no_nanosecond_of_a_duration_is_lost(hours: int, minutes: int, seconds: int, ns: int) -> None:
    total = hours * HOUR + minutes * MINUTE + seconds * SECOND + ns
    assert parse_duration(f"{hours}h{minutes}m{seconds}.{ns:09d}s") == total
    assert parse_duration(f"-{hours}h{minutes}m{seconds}s{ns}ns") == -total


def test_since_and_until_are_seconds_times_or_durations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now_ns", lambda: 10 * HOUR)
    assert parse_timestamp("") is None
    assert parse_timestamp("0") == 0
    assert parse_timestamp("12") == 12 * SECOND
    assert parse_timestamp("12.000000003") == 12 * SECOND + 3
    assert parse_timestamp("12.0000000039") == 12 * SECOND + 3
    assert parse_timestamp("-1.5") == -SECOND // 2
    assert parse_timestamp("1h") == 9 * HOUR
    assert parse_timestamp("1970-01-01T01:00:00Z") == HOUR


def test_a_time_beyond_all_times_is_the_last_one() -> None:
    assert parse_timestamp("999999999999999999") == LATEST


@pytest.mark.parametrize("text", ["x", "1.2.3", "1,5", "1_000", "now"])
def test_what_is_no_timestamp_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter):
        parse_timestamp(text)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.9, "Less than a second"), (1, "1 second"), (59.9, "59 seconds"), (60, "About a minute"),
        (119, "About a minute"), (120, "2 minutes"), (3599, "59 minutes"), (3600, "About an hour"),
        (5399, "About an hour"), (5400, "2 hours"), (47 * 3600, "47 hours"), (48 * 3600, "2 days"),
        (13 * 86400, "13 days"), (14 * 86400, "2 weeks"), (59 * 86400, "8 weeks"), (60 * 86400, "2 months"),
        (729 * 86400, "24 months"), (730 * 86400, "2 years"),
    ],
)  # fmt: skip
def test_how_long_ago_is_said_in_dockers_words(seconds: float, words: str) -> None:
    assert human_duration(seconds) == words


@given(st.floats(0, 4e8) | st.integers(0, 10**6).map(float), st.floats(0, 1, exclude_max=True))
def test_words_last_as_long_as_is_said(seconds: float, part: float) -> None:
    rest = lasts(seconds)
    assert rest > 0
    if seconds + part * rest < seconds + rest:  # else the sum was rounded up to the very end
        assert human_duration(seconds + part * rest) == human_duration(seconds)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (10**9, "1970-01-01T00:00:01Z"),
        (1_500_000_000, "1970-01-01T00:00:01.5Z"),
        (1_000_000_001, "1970-01-01T00:00:01.000000001Z"),
    ],
)
def test_the_shortest_form_has_no_zeros_at_its_end(ns: int, text: str) -> None:
    assert clock.shortest_rfc3339(ns) == text
