"""Rules of the old kind that drop."""

from pathlib import Path

import pytest

from husk.network.legacy_rules import LegacyRules, RememberedRules, drops, look


@pytest.mark.parametrize(
    ("rules", "drop"),
    [
        ("-P FORWARD ACCEPT\n", False),
        ("-P FORWARD DROP\n", True),
        ("-P FORWARD ACCEPT\n-A FORWARD -j DOCKER\n-A FORWARD -j REJECT --reject-with icmp-host-prohibited\n", True),
        ("-P FORWARD ACCEPT\n-A FORWARD -s 10.0.0.0/8 -j DROP\n", False),
        ("-P FORWARD DROP\n-A FORWARD -i husk0 -j ACCEPT\n", False),
        ("", False),
    ],
)
def test_what_drops_the_rest(rules: str, drop: bool) -> None:
    assert drops(rules, ("husk0",)) is drop


async def test_only_what_is_loaded_is_asked(tmp_path: Path) -> None:
    names = tmp_path / "names"
    program = tmp_path / "old-iptables"
    program.write_text("#!/bin/sh\necho -P FORWARD DROP\n")
    program.chmod(0o755)
    assert await look((), {str(program): names}) == []
    names.write_text("nat\n")
    assert await look((), {str(program): names}) == []
    names.write_text("nat\nfilter\n")
    assert await look((), {str(program): names}) == [LegacyRules(str(program), True, str(program))]
    assert "drops forwarded packets by default" in LegacyRules("iptables-legacy", True).warning


async def test_who_asks_every_moment_starts_no_programs_each_time(tmp_path: Path) -> None:
    names, program, asked = tmp_path / "names", tmp_path / "old-iptables", tmp_path / "asked"
    names.write_text("filter\n")
    program.write_text(f"#!/bin/sh\necho >>{asked}\necho -P FORWARD DROP\n")
    program.chmod(0o755)
    now = [0.0]
    rules = RememberedRules({str(program): names}, lambda: now[0])
    for interfaces in (("a",), ("a",), ("a", "b")):
        assert await rules.look(interfaces) == [LegacyRules(str(program), True, str(program))]
    assert asked.read_text() == "\n\n", "once for each set of interfaces"
    now[0] += 5.1
    await rules.look(("a", "b"))
    assert asked.read_text() == "\n\n\n"


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 3\n", ""])
async def test_a_program_that_cannot_tell(tmp_path: Path, text: str) -> None:
    names, program = tmp_path / "names", tmp_path / "old-iptables"
    names.write_text("filter\n")
    if text:
        program.write_text(text)
        program.chmod(0o755)
    assert await look((), {str(program): names}) == [LegacyRules(str(program), None)]
