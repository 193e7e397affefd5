import json

from husk.cli.kit.streams import StreamLines


def told(capfd) -> list[dict]:
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def test_lines_of_both_streams(capfd):
    lines = StreamLines()
    lines.add("stdout", b"one\ntw")
    lines.add("stderr", b"bad\xff\r\n")
    lines.add("stdout", b"o")
    lines.end()
    lines.end()
    assert told(capfd) == [
        {"Stream": "stdout", "Line": "one"},
        {"Stream": "stderr", "Line": "bad\ufffd"},
        {"Stream": "stdout", "Line": "two"},
    ]


def test_lines_with_their_time(capfd):
    lines = StreamLines(timed=True)
    lines.add("stdout", b"2026-01-01T00:00:00Z hello you\n")
    assert told(capfd) == [{"Stream": "stdout", "Time": "2026-01-01T00:00:00Z", "Line": "hello you"}]
