"""Rules of the old kind, of `iptables-legacy`, that drop the packets of containers: nftables does not show them.

Packets pass both kinds, so that a `drop` there counts as one in a table of nftables does. Looked at is only what is
loaded already: to ask for the rules loads the kernel's part of it.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from msgspec import Struct

from husk.errors import SystemFault
from husk.kernel import process
from husk.network.firewall_owners import hint, owner_of
from husk.text.patterns import pattern

# Where the kernel tells which tables there are.
NAMES = {"iptables-legacy": Path("/proc/net/ip_tables_names"), "ip6tables-legacy": Path("/proc/net/ip6_tables_names")}
# Seconds for which an answer is good: who asks every moment starts no programs each time.
_GOOD = 5.0
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
    """Return True if `-S FORWARD` shows that the rest is dropped, and names none of ours: nobody thought of us."""
    lines = rules.splitlines()
    refused = "-P FORWARD DROP" in lines or bool(lines and _THE_REST.fullmatch(lines[-1]))
    words = set(rules.split())
    return refused and not words & set(interfaces)


async def look(interfaces: Collection[str], names: Mapping[str, Path] = NAMES) -> list[LegacyRules]:
    """Of each program that has rules for what is forwarded."""
    return [await _asked(program, interfaces) for program in await asyncio.to_thread(_loaded, names)]


def _loaded(names: Mapping[str, Path]) -> list[str]:
    """The programs that have rules. Blocks."""
    found = []
    for program, path in names.items():
        try:
            if "filter" in path.read_text().split():
                found.append(program)
        except OSError:
            continue
    return found


class RememberedRules:
    """The findings of `look`, kept for some seconds."""

    def __init__(self, names: Mapping[str, Path] = NAMES, clock: Callable[[], float] = time.monotonic) -> None:
        self._names = names
        self._clock = clock
        self._looking = asyncio.Lock()
        self._found: list[LegacyRules] = []
        self._asked: frozenset[str] | None = None
        self._moment = 0.0

    async def look(self, interfaces: Collection[str]) -> list[LegacyRules]:
        asked = frozenset(interfaces)
        async with self._looking:
            if asked != self._asked or self._clock() - self._moment > _GOOD:
                self._found = await look(interfaces, self._names)
                self._asked, self._moment = asked, self._clock()
            return self._found


async def _asked(program: str, interfaces: Collection[str]) -> LegacyRules:
    try:
        done = await process.run([program, "-w", "1", "-S", "FORWARD"], timeout=5)
    except (OSError, SystemFault):
        return LegacyRules(program, None)
    if done.returncode != 0:
        return LegacyRules(program, None)
    rules = done.stdout.decode(errors="replace")
    return LegacyRules(program, drops(rules, interfaces), owner_of("", rules) or program)
