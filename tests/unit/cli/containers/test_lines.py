import pytest

from husk.cli.containers.lines import LevelFilter, Prefixes, fields_of, level_of


@pytest.mark.parametrize(
    ("line", "level"),
    [
        (b'{"level":"WARN","msg":"a"}', "warning"),
        (b'{"severity":"critical"}', "fatal"),
        (b'{"level":50}', "error"),
        (b'{"msg":"an ERROR that is none"}', ""),
        (b'time=1 level=error msg="x"', "error"),
        (b"2026-01-02 [notice] 1#1: start", "info"),
        (b"ERROR: no", "error"),
        (b"DEBUG x", "debug"),
        (b"Traceback (most recent call last):", "error"),
        (b"all is well", ""),
        (b"an error was not found", ""),
        (b'{"level":' + b"[" * 100_000, ""),
        (b"\xff\xfe ERROR", "error"),
    ],
)
def test_levels(line, level):
    assert level_of(line) == level


def test_a_line_without_a_level_belongs_to_the_one_before():
    lines = [b"start", b"ERROR: failed", b"  at line 3", b"INFO: on", b"  with it"]
    wanted = LevelFilter("error")
    assert [line for line in lines if wanted.keeps(line, "stdout")] == lines[1:3]
    wanted = LevelFilter("info")
    assert [line for line in lines if wanted.keeps(line, "stdout")] == lines


def test_fields():
    line = b'{"level":"info","http":{"status":200},"a.b":"c","none":null}'
    assert fields_of(line, ["level", "http.status", "a.b", "none", "missing"]) == b"info 200 c"
    assert fields_of(b"plain", ["level"]) == b"plain"
    assert fields_of(b'{"msg":"a\\ud800b"}', ["msg"]) == b"a?b"


def test_prefixes_are_of_one_width():
    prefixes = Prefixes(["a", "long"], coloured=False)
    assert prefixes.put("a", b"x") == b"a    | x"
    assert Prefixes(["a"], coloured=True).put("a", b"x") == b"\x1b[36ma | \x1b[0mx"
    assert Prefixes(["a\x1b[2J"], coloured=False).put("a\x1b[2J", b"x") == b"a\\x1b[2J | x"
