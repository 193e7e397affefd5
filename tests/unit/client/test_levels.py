import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.client.levels import LEVELS, at_least, level_of


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ('{"time": "x", "level": "error", "msg": "info: no"}', "error"),
        ('{"level":30,"msg":"pino"}', "info"),
        ("time=2026 level=warn msg=x", "warning"),
        ("severity: CRITICAL", "fatal"),
        ("2026-01-02 03:04:05 [notice] 1#1: start", "info"),
        ("2026-01-02 03:04:05,123 WARNING django: slow", "warning"),
        ("2026-01-02T03:04:05Z ERROR x", "error"),
        ("2026-01-02 03:04:05.1 UTC [1] FATAL:  role does not exist", "fatal"),
        ("2026-01-02 03:04:05.1 UTC [1] LOG:  ready", "info"),
        ("W0102 03:04:05.123456 1 x.go:1] klog", "warning"),
        ("error: no such thing", "error"),
        ("[ERR] x", "error"),
        ("warn: Kestrel", "warning"),
        ("an error came, or no information", ""),
        ("GET /error 200", ""),
        ("", ""),
    ],
)
def test_what_programs_write(line, level):
    assert level_of(line) == level


@given(st.text(max_size=1000))
def test_any_line_has_a_level_or_none(line):
    assert level_of(line) in (*LEVELS, "")


def test_a_level_and_those_above_it():
    assert [level for level in (*LEVELS, "") if at_least(level, "warning")] == ["warning", "error", "fatal"]
    assert at_least("", "") and at_least("debug", "")
