"""One address for many containers: virtual addresses and published ports, shared out by nftables.

A table of its own beside the daemon's, and one for IPv6 while that is needed: they are small, and written as a whole
whenever a task comes or goes, in one transaction. Each new connection goes to the next target in turn; one that is
under way stays where it is. What goes to a virtual address that has no target is refused: the address is the host's
own, and the host is not meant.

A target may be on another host, reached over an overlay network. Then its answer has to come back here to be translated
back: what is sent there comes from this host's own address on that network (`Balance.sources`).
"""

import ipaddress
import logging
import threading
from collections.abc import Sequence

from msgspec import Struct

from husk.kernel import nflisting, rtaddresses, rtnetlink
from husk.kernel.netlink import NetlinkSocket
from husk.kernel.nftables import Nftables
from husk.network import integrity
from husk.network.rules import FAMILIES, validate_interface, validate_table

log = logging.getLogger(__name__)

_TABLE = """\
add table {family} {table}
delete table {family} {table}
add table {family} {table}
add set {family} {table} virtual {{ type {address}; }}
add map {family} {table} sources {{ type {address} : {address}; }}
add chain {family} {table} balance
add chain {family} {table} prerouting {{ type nat hook prerouting priority -101; policy accept; }}
add chain {family} {table} output {{ type nat hook output priority -101; policy accept; }}
add chain {family} {table} input {{ type filter hook input priority filter; policy accept; }}
add chain {family} {table} postrouting {{ type nat hook postrouting priority 99; policy accept; }}
add rule {family} {table} postrouting ct status dnat snat {family} to {family} daddr map @sources
add rule {family} {table} prerouting jump balance
add rule {family} {table} output jump balance
add rule {family} {table} input {family} daddr @virtual reject
"""
_REMOVE = "add table {family} {table}\ndelete table {family} {table}\n"
_ADDRESS = {"ip": "ipv4_addr", "ip6": "ipv6_addr"}


Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class VirtualAddress(Struct, frozen=True):
    """An address on a bridge that stands for containers there."""

    interface: str
    address: str
    targets: tuple[str, ...]


class BalancedPort(Struct, frozen=True):
    """A port of the host that leads to one of several containers."""

    protocol: str
    port: int
    target_port: int
    targets: tuple[str, ...]


class Balance(Struct, frozen=True):
    addresses: tuple[VirtualAddress, ...] = ()
    ports: tuple[BalancedPort, ...] = ()
    # (target on another host, this host's own address on that network).
    sources: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.addresses or self.ports)


NOTHING = Balance()


def ruleset(table: str, balance: Balance, family: str = "ip") -> str:
    """Commands that bring the table to exactly this, whatever it was before. Ports are those of IPv4 addresses."""
    commands = _TABLE.format(table=validate_table(table), family=family, address=_ADDRESS[family])
    for target, source in _sources(balance, family):
        commands += f"add element {family} {table} sources {{ {target} : {source} }}\n"
    for virtual in balance.addresses:
        if _family(virtual) != family:
            continue
        address = ipaddress.ip_address(virtual.address)
        commands += f"add element {family} {table} virtual {{ {address} }}\n"
        if virtual.targets:
            to = _choice(virtual.targets)
            commands += f"add rule {family} {table} balance {family} daddr {address} dnat {family} to {to}\n"
    for port in balance.ports if family == "ip" else ():
        if port.targets:
            where = f"fib daddr type local {port.protocol} dport {port.port}"
            commands += f"add rule ip {table} balance {where} dnat ip to {_choice(port.targets, port.target_port)}\n"
    return commands


def _sources(balance: Balance, family: str) -> list[tuple[Address, Address]]:
    found = [(ipaddress.ip_address(target), ipaddress.ip_address(source)) for target, source in balance.sources]
    return [pair for pair in found if {end.version for end in pair} == {6 if family == "ip6" else 4}]


def _needed(balance: Balance) -> list[str]:
    """The families of IP that need a table."""
    needed = {"ip"} if balance.ports else set()
    needed |= {_family(virtual) for virtual in balance.addresses}
    return [family for family in FAMILIES if family in needed]


def _family(virtual: VirtualAddress) -> str:
    return "ip6" if ":" in virtual.address else "ip"


def _choice(targets: Sequence[str], port: int = 0) -> str:
    """The expression that gives each connection the next target."""
    ends = [str(ipaddress.ip_address(target)) + (f" . {port}" if port else "") for target in targets]
    if len(ends) == 1:
        return ends[0].replace(" . ", ":")
    elements = ", ".join(f"{number} : {end}" for number, end in enumerate(ends))
    return f"numgen inc mod {len(ends)} map {{ {elements} }}"


class Balancer:
    """What is balanced now. The methods block: call them from a thread."""

    def __init__(self, table: str) -> None:
        self._table = validate_table(table)
        self._nftables = Nftables()
        self._lock = threading.Lock()
        self._present: Balance | None = None
        # How the tables looked when they were whole.
        self._shapes: dict[str, nflisting.Shape] = {}

    @property
    def table(self) -> str:
        return self._table

    def intact(self) -> bool:
        """Whether the tables are there with all their rules and addresses."""
        with self._lock:
            balance = self._present or NOTHING
            try:
                return all(self._intact(balance, family) for family in _needed(balance))
            except OSError:
                return False

    def _intact(self, balance: Balance, family: str) -> bool:
        virtual = {
            (ipaddress.ip_address(one.address).packed, b"") for one in balance.addresses if _family(one) == family
        }
        sources = {(target.packed, source.packed) for target, source in _sources(balance, family)}
        return (
            integrity.same(self._shapes, family, self._table)
            and nflisting.elements(family, self._table, "virtual") == virtual
            and nflisting.elements(family, self._table, "sources") == sources
        )

    def apply(self) -> None:
        """Write all of it again; nothing happens where nothing is balanced."""
        with self._lock:
            if self._present:
                self._write(self._present)
                # A bridge may have been made anew.
                _set_addresses((), [(a.interface, a.address) for a in self._present.addresses])
                _redirect(NOTHING, self._present)

    def change(self, balance: Balance) -> None:
        """Make it so; nothing happens when it is so already."""
        with self._lock:
            if balance == self._present or (self._present is None and balance == NOTHING and not self._tables()):
                return
            self._write(balance)
            old = self._present or NOTHING
            _set_addresses(
                [(a.interface, a.address) for a in old.addresses], [(a.interface, a.address) for a in balance.addresses]
            )
            self._present = balance
            _redirect(old, balance)

    def remove(self) -> None:
        """Delete the tables; nothing happens when there is none."""
        with self._lock:
            self._present = None
            if present := self._tables():
                self._nftables.run(self._removal(present))

    def _write(self, balance: Balance) -> None:
        needed = _needed(balance)
        commands = "".join(ruleset(self._table, balance, family) for family in needed)
        self._nftables.run(commands + self._removal(self._tables() - set(needed)))
        self._shapes = integrity.look(self._table, commands)

    def _removal(self, families: set[str]) -> str:
        return "".join(_REMOVE.format(table=self._table, family=family) for family in sorted(families))

    def _tables(self) -> set[str]:
        """The families of IP for which there is a table of ours."""
        listed = self._nftables.run("list tables\n").splitlines()
        return {family for family in FAMILIES if f"table {family} {self._table}" in listed}


def _redirect(old: Balance, new: Balance) -> None:
    """Let conversations over UDP find their way anew where it has changed: they keep the one they began with."""
    ports, addresses = changed(old, new)
    if not ports and not addresses:
        return
    try:
        from husk.kernel import conntrack

        conntrack.forget_udp(ports, addresses)
    except OSError as error:
        log.warning("running UDP conversations may miss that tasks have changed: %s", error)


def changed(old: Balance, new: Balance) -> tuple[set[int], set[Address]]:
    """The ports of UDP that lead elsewhere now, and the virtual addresses that have lost a target. Pure.

    What went to a port that led nowhere came to the host itself; what went to such an address was refused.
    """
    before, after = _udp(old), _udp(new)
    virtual = {address.address: set(address.targets) for address in new.addresses}
    return (
        {port for port in before | after if before.get(port, set()) - after.get(port, set()) or not before.get(port)},
        {ipaddress.ip_address(a.address) for a in old.addresses if set(a.targets) - virtual.get(a.address, set())},
    )


def _udp(balance: Balance) -> dict[int, set[str]]:
    return {port.port: set(port.targets) for port in balance.ports if port.protocol == "udp" and port.targets}


def _set_addresses(old: Sequence[tuple[str, str]], new: Sequence[tuple[str, str]]) -> None:
    """The host answers for virtual addresses on their bridges. A bridge that is gone took its addresses along."""
    with NetlinkSocket() as netlink:
        indexes = {link.name: link.index for link in map(rtnetlink.parse_link, netlink.dump(rtnetlink.list_links()))}
        for what, change in (
            ([pair for pair in old if pair not in new], rtaddresses.delete_address),
            (new, rtaddresses.add_address),
        ):
            for interface, address in what:
                if (index := indexes.get(validate_interface(interface))) is not None:
                    # One address, whatever the prefix of its network: /32, or /128.
                    netlink.attempt([change(index, ipaddress.ip_interface(address))])
