"""Rules of the old kind, of `iptables-legacy`, that drop the packets of containers: nftables does not show them.

Packets pass both kinds, so that a `drop` there counts as one in a table of nftables does. Looked at is only what is
loaded already: to ask for the rules loads the kernel's part of it.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec import Struct

from husk.errors import SystemFault
from husk.kernel import process
from husk.network.firewall_owners import hint, owner_of
from husk.patterns import pattern

# Where the kernel tells which tables there are.
NAMES = {"iptables-legacy": Path("/proc/net/ip_tables_names"), "ip6tables-legacy": Path("/proc/net/ip6_tables_names")}
_THE_REST = pattern(r"-A FORWARD -j (?:DROP|REJECT)(?: .*)?")


class LegacyRules(Struct, frozen=True):
    """The rules of a program for forwarded packets."""

    program: str
    # Whether they drop what nobody accepted; None where the program is not here to tell.
    drop: bool | None
    owner: str = ""

    @property
    def warning(self) -> str:
        return (
            f"WARNING: chain FORWARD of {self.program} drops forwarded packets by default: containers reach other "
            f"networks, and are reached at published ports, only where its rules accept that{hint(self.owner)}"
        )


def drops(rules: str, interfaces: Collection[str]) -> bool:
    """Whether the rest is dropped, by what `-S FORWARD` prints. A word about one of ours: somebody thought of us."""
    lines = rules.splitlines()
    refused = "-P FORWARD DROP" in lines or bool(lines and _THE_REST.fullmatch(lines[-1]))
    words = set(rules.split())
    return refused and not words & set(interfaces)


async def look(interfaces: Collection[str], names: Mapping[str, Path] = NAMES) -> list[LegacyRules]:
    """Of each program that has rules for what is forwarded."""
    found = []
    for program, path in names.items():
        try:
            if "filter" not in path.read_text().split():
                continue
        except OSError:
            continue
        found.append(await _asked(program, interfaces))
    return found


async def _asked(program: str, interfaces: Collection[str]) -> LegacyRules:
    try:
        done = await process.run([program, "-w", "1", "-S", "FORWARD"], timeout=5)
    except (OSError, SystemFault):
        return LegacyRules(program, None)
    if done.returncode != 0:
        return LegacyRules(program, None)
    rules = done.stdout.decode(errors="replace")
    return LegacyRules(program, drops(rules, interfaces), owner_of("", rules) or program)
