import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from husk.cli.kit import words


@pytest.mark.parametrize(
    ("count", "decimal", "binary"),
    [(0, "0B", "0B"), (999, "999B", "999B"), (1982000, "1.98MB", "1.89MiB"), (64 << 20, "67.1MB", "64MiB")],
)
def test_sizes(count, decimal, binary):
    assert words.size(count) == decimal
    assert words.binary_size(count) == binary


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.5, "Less than a second"),
        (1.5, "1 second"),
        (59, "59 seconds"),
        (61, "About a minute"),
        (150, "2 minutes"),
        (3600, "About an hour"),
        (5400, "2 hours"),
        (86400 * 3, "3 days"),
        (86400 * 20, "2 weeks"),
        (86400 * 90, "3 months"),
        (86400 * 365 * 3, "3 years"),
    ],
)
def test_durations(seconds, told):
    assert words.duration(seconds) == told


def test_ports_that_lead_to_themselves_are_ranges():
    ports: list[dict[str, Any]] = [
        {"PrivatePort": 80, "PublicPort": 8080, "IP": "0.0.0.0", "Type": "tcp"},
        {"PrivatePort": 80, "PublicPort": 8080, "IP": "::", "Type": "tcp"},
        *({"PrivatePort": port, "PublicPort": port, "IP": "0.0.0.0", "Type": "tcp"} for port in (9001, 9000, 9005)),
        {"PrivatePort": 53, "Type": "udp"},
    ]
    told = "0.0.0.0:9000-9001->9000-9001/tcp, 53/udp, 0.0.0.0:9005->9005/tcp, 0.0.0.0:8080->80/tcp, [::]:8080->80/tcp"
    assert words.ports(ports) == told
    assert words.ports([]) == ""


def test_texts():
    assert words.shortened("short", 5) == "short"
    assert words.shortened("longer", 5) == "long…"
    assert words.quoted('say "hi"\n') == '"say \\"hi\\"\\n"'
    assert words.short_id("sha256:" + "ab" * 32) == "ab" * 6
    assert words.pairs({"a": "1", "b": ""}) == "a=1,b="
    assert words.pairs(None) == ""


HOSTILE = "a\x1b]0;title\x07\x1b[2J\r\x08\x9b1A\x7f\x00b"


@pytest.mark.parametrize("shown", [words.visible, words.in_line, words.coloured, words.json_text])
def test_what_is_shown_is_not_obeyed(shown: Callable[[str], str]) -> None:
    given = HOSTILE if shown is not words.json_text else json.dumps(HOSTILE + "\udc9b", ensure_ascii=False)
    told = shown(given)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\udc80-\udcff]", told) and told.startswith(("a", '"a'))
    assert "\\x1b]0;title\\x07" in told or "\\u001b]0;title\\u0007" in told


def test_what_has_nothing_of_that_stays_as_it_is() -> None:
    text = "Grüße, 日本, ✓ \u00a0\tline\nanother"
    assert words.visible(text) == text
    assert words.in_line(text) == text.replace("\n", "\\n"), "a part of a line begins no other one"
    assert words.visible("\udcff") == "\\xff"
    document = json.dumps({"a": [HOSTILE, "ü\udc80"]}, ensure_ascii=False, indent=1)
    assert json.loads(words.json_text(document)) == json.loads(document)


def test_colours_may_stay() -> None:
    assert words.coloured("\x1b[1;31mred\x1b[0m and \x1b[2Jgone") == "\x1b[1;31mred\x1b[0m and \\x1b[2Jgone"
    assert words.coloured("\x1b[31\x1b[m\x1b[") == "\\x1b[31\x1b[m\\x1b["
