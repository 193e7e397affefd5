"""The hosts whose VXLAN packets are taken: those that a network's endpoints are on, and nobody else.

The kernel takes a packet for a VXLAN interface from wherever it comes. A container that sends to the port of VXLAN
would put frames into networks that it is not on: those of its own host, or, under its host's address, those of another
host. So what comes in is dropped unless a host sent it that has endpoints on the network of that number, and what is
passed on to the port of a host is dropped unless a host sent it. Packets of other numbers are not ours: an
administrator's own VXLAN may use the port too.

Addresses can be forged on the way between hosts: what is to be safe there is encrypted, and does not come this way.
"""

import logging
import threading
from collections.abc import Collection
from ipaddress import ip_address

from msgspec import Struct

from husk.errors import SystemFault
from husk.kernel import nflisting
from husk.kernel.nftables import Nftables
from husk.network import integrity
from husk.network.rules import FAMILIES, validate_table

log = logging.getLogger(__name__)

# Behind UDP's head of 64 bits are flags, of 32, and the number, of 24.
_NUMBER = "@th,96,24"
_TABLE = """\
add table {family} {table}
delete table {family} {table}
add table {family} {table}
add set {family} {table} numbers {{ typeof {number}; }}
add set {family} {table} senders {{ typeof {family} saddr . {number}; }}
add set {family} {table} hosts {{ typeof {family} saddr; }}
add chain {family} {table} input {{ type filter hook input priority filter; policy accept; }}
add chain {family} {table} forward {{ type filter hook forward priority filter; policy accept; }}
add rule {family} {table} input udp dport {port} {number} @numbers {family} saddr . {number} != @senders drop
add rule {family} {table} forward udp dport {port} {family} daddr @hosts {family} saddr != @hosts drop
"""
_REMOVE = "add table {family} {table}\ndelete table {family} {table}\n"


class Senders(Struct, frozen=True):
    """The hosts that may send: the UDP port, this host's address among the others', and of each network by its number
    the hosts that it is on besides."""

    port: int
    local: str
    networks: tuple[tuple[int, frozenset[str]], ...]

    @property
    def family(self) -> str:
        return "ip6" if ":" in self.local else "ip"


def elements(senders: Senders) -> dict[str, set[str]]:
    """Compute what the sets are to hold, by their names. A host with an address of the other version of IP sends
    nothing that comes here, and keeps no other from it. Pure."""
    version = ip_address(senders.local).version
    hosts_of = [(int(number), map(ip_address, hosts)) for number, hosts in senders.networks]
    pairs = {(str(host), number) for number, hosts in hosts_of for host in hosts if host.version == version}
    return {
        "numbers": {str(int(number)) for number, _ in senders.networks},
        "senders": {f"{host} . {number}" for host, number in pairs},
        "hosts": {str(ip_address(senders.local)), *(host for host, _ in pairs)},
    }


def ruleset(table: str, senders: Senders) -> str:
    """Commands that bring the table to this, whatever it was."""
    begin = _TABLE.format(family=senders.family, table=validate_table(table), port=int(senders.port), number=_NUMBER)
    return begin + _changes("add", table, senders.family, elements(senders))


def difference(table: str, old: Senders, new: Senders) -> str:
    """Commands that bring the table from one to the other, where port and version of IP are the same. Pure."""
    before, after = elements(old), elements(new)
    gone = {name: before[name] - after[name] for name in before}
    come = {name: after[name] - before[name] for name in after}
    return _changes("delete", table, new.family, gone) + _changes("add", table, new.family, come)


def _changes(verb: str, table: str, family: str, sets: dict[str, set[str]]) -> str:
    return "".join(
        f"{verb} element {family} {table} {name} {{ {', '.join(sorted(some))} }}\n"
        for name, some in sets.items()
        if some
    )


class SenderRules:
    """`guardian.Guarded`, while a network leads to other hosts. The methods block: call them from a thread."""

    def __init__(self, table: str) -> None:
        self._table = validate_table(table)
        self._lock = threading.Lock()
        self._present: Senders | None = None
        self._known = integrity.Written(self._table)

    @property
    def table(self) -> str:
        return self._table

    def intact(self) -> bool:
        with self._lock:
            if (senders := self._present) is None:
                return True
            try:
                return self._known.same(senders.family) and all(
                    len(nflisting.elements(senders.family, self._table, name)) == len(wanted)
                    for name, wanted in elements(senders).items()
                )
            except FileNotFoundError:
                return False

    def apply(self) -> None:
        with self._lock:
            if self._present is not None:
                self._write(self._present)

    def change(self, senders: Senders) -> None:
        """Let these send, and nobody else."""
        with self._lock:
            known = self._present
            if known == senders:
                return
            if known is not None and (known.port, known.local) == (senders.port, senders.local):
                try:
                    Nftables().run(difference(self._table, known, senders))
                except SystemFault as error:
                    log.debug("table %s is written anew: %s", self._table, error)
                else:
                    self._present = senders
                    return
            self._write(senders)

    def remove(self) -> None:
        """No network leads to other hosts any more. Safe to call twice."""
        with self._lock:
            self._present = None
            Nftables().run("".join(_REMOVE.format(family=family, table=self._table) for family in self._tables()))

    def _write(self, senders: Senders) -> None:
        commands = ruleset(self._table, senders)
        stale: Collection[str] = self._tables() - {senders.family}
        Nftables().run(commands + "".join(_REMOVE.format(family=family, table=self._table) for family in stale))
        self._present = senders
        self._known.note(commands)

    def _tables(self) -> set[str]:
        """The families of IP for which there is a table of ours."""
        listed = Nftables().run("list tables\n").splitlines()
        return {family for family in FAMILIES if f"table {family} {self._table}" in listed}
