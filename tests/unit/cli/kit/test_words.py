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
