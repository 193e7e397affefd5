"""One address for many containers: virtual addresses and published ports, shared out by nftables.

A table of its own beside the daemon's, and one for IPv6 while that is needed. Each address and each port is an element
that leads to a chain of its own, and the targets are elements too: a task that comes or goes changes its service's
chain and one element, whatever else there is. Each new connection goes to the next target in turn; one that is under
way stays where it is. What goes to a virtual address that has no target is refused: the address is the host's own, and
the host is not meant.

A virtual address is its network's: it stands for containers to whoever sends from that network's bridge and to the
host itself (`places`), whose own packets there must not seem to come from the virtual address. Packets from anywhere
else, another network or another machine that has a route, are dropped before anything is translated. A translation does
not open a bridge either: connections by a virtual address stay on their bridge, and those by a published port are told
to the daemon's own table by a mark (`rules.PUBLISHED`).

A target may be on another host, reached over an overlay network. Then its answer has to come back here to be translated
back: what is sent there comes from this host's own address on that network (`Balance.sources`). Nobody there begins a
connection to that address: the host's own services are reached by its other addresses, which its firewall knows.
"""

import ipaddress
import logging
import socket
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from typing import NamedTuple

from msgspec import Struct

from husk.errors import SystemFault
from husk.kernel import nflisting, rtaddresses
from husk.kernel.netlink import NetlinkSocket
from husk.kernel.nftables import Nftables
from husk.network import integrity
from husk.network.rules import FAMILIES, PORTED, PUBLISHED, validate_interface, validate_table

log = logging.getLogger(__name__)

_TABLE = """\
add table {family} {table}
delete table {family} {table}
add table {family} {table}
add set {family} {table} virtual {{ type {address}; }}
add set {family} {table} places {{ type ifname . {address}; }}
add set {family} {table} own {{ type {address}; }}
add set {family} {table} held {{ type inet_proto . inet_service; }}
add map {family} {table} services {{ type {address} : verdict; }}
add map {family} {table} ports {{ type inet_proto . inet_service : verdict; }}
add map {family} {table} sources {{ type {address} : {address}; }}
add map {family} {table} targets {{ typeof {family} daddr . numgen inc mod 2 : {family} daddr; }}
add map {family} {table} port_targets {{ \
typeof meta l4proto . th dport . numgen inc mod 2 : {family} daddr . th dport; }}
add chain {family} {table} strangers {{ type filter hook prerouting priority mangle; policy accept; }}
add chain {family} {table} prerouting {{ type nat hook prerouting priority -101; policy accept; }}
add chain {family} {table} output {{ type nat hook output priority -101; policy accept; }}
add chain {family} {table} input {{ type filter hook input priority filter; policy accept; }}
add chain {family} {table} forward {{ type filter hook forward priority -1; policy accept; }}
add chain {family} {table} postrouting {{ type nat hook postrouting priority 99; policy accept; }}
add rule {family} {table} strangers iifname != "lo" {family} daddr @virtual iifname . {family} daddr != @places drop
add rule {family} {table} strangers iifname != "lo" {family} daddr @own ct state new drop
add rule {family} {table} prerouting {family} daddr vmap @services
add rule {family} {table} prerouting fib daddr type local meta l4proto . th dport vmap @ports
add rule {family} {table} output {family} daddr vmap @services
add rule {family} {table} output fib daddr type local meta l4proto . th dport vmap @ports
add rule {family} {table} input {family} daddr @virtual ct direction original reject
add rule {family} {table} forward ct state new ct status dnat {ported} meta l4proto . ct original proto-dst @held \
meta mark set meta mark or {published}
add rule {family} {table} postrouting ct status dnat snat {family} to {family} daddr map @sources
add rule {family} {table} postrouting ct status dnat {family} saddr @virtual masquerade
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
        return bool(self.addresses or self.ports or self.sources)


NOTHING = Balance()


class _Lead(NamedTuple):
    """Where an address or a port leads: a chain, an element that leads to it, and the elements of its targets."""

    # The map that leads to the chain, with the key there, and the map with the targets.
    by: str
    key: str
    to: str
    # What the rule of the chain does with `choice`, the number of the target.
    rule: str
    # The rule where there is no target.
    otherwise: str
    targets: tuple[str, ...]

    def chain_rule(self, count: int) -> str:
        return self.rule.format(choice=f"numgen inc mod {count} map @{self.to}") if count else self.otherwise


def _leads(balance: Balance, family: str) -> dict[str, _Lead]:
    """By the names of their chains. Ports are those of IPv4 addresses."""
    found = {}
    for virtual in balance.addresses:
        if _family(virtual.address) == family:
            address = ipaddress.ip_address(virtual.address)
            rule = f"dnat {family} to {family} daddr . {{choice}}"
            targets = tuple(dict.fromkeys(str(ipaddress.ip_address(target)) for target in virtual.targets))
            # To itself: it is refused as the host's own, and no port that is published there answers in its place.
            otherwise = f"dnat {family} to {address}"
            found[f"to-{address.packed.hex()}"] = _Lead("services", str(address), "targets", rule, otherwise, targets)
    for port in balance.ports if family == "ip" else ():
        if port.targets:
            ends = dict.fromkeys(f"{ipaddress.ip_address(target)} . {int(port.target_port)}" for target in port.targets)
            key = f"{_protocol(port.protocol)} . {int(port.port)}"
            rule = f"meta l4proto {port.protocol} dnat ip to meta l4proto . th dport . {{choice}}"
            found[f"at-{port.protocol}-{port.port}"] = _Lead("ports", key, "port_targets", rule, "", tuple(ends))
    return found


def _protocol(name: str) -> str:
    if name not in ("tcp", "udp", "sctp"):
        raise ValueError(f"{name!r} is no protocol with ports")
    return name


def _family(address: str) -> str:
    return "ip6" if ":" in address else "ip"


class _Contents(NamedTuple):
    """What a table is to hold."""

    leads: Mapping[str, _Lead]
    # The targets of each lead, by their numbers.
    slots: Mapping[str, tuple[str, ...]]
    # Elements by set or map, without those of the leads; of maps with " : " and what they lead to.
    elements: Mapping[str, Set[str]]


_EMPTY = _Contents({}, {}, {})


def _contents(balance: Balance, family: str, former: _Contents = _EMPTY) -> _Contents:
    """`former` tells which target has which number: that changes for as few as can be."""
    leads = _leads(balance, family)
    slots = {name: reslot(former.slots.get(name, ()), lead.targets) for name, lead in leads.items()}
    virtual = [one for one in balance.addresses if _family(one.address) == family]
    sources = _sources(balance, family)
    elements: dict[str, Set[str]] = {
        "virtual": {str(ipaddress.ip_address(one.address)) for one in virtual},
        "places": {f'"{validate_interface(o.interface)}" . {ipaddress.ip_address(o.address)}' for o in virtual},
        "own": {str(source) for _, source in sources},
        "held": {lead.key for lead in leads.values() if lead.by == "ports"},
        "sources": {f"{target} : {source}" for target, source in sources},
    }
    return _Contents(leads, slots, elements)


def reslot(former: Sequence[str], wanted: Iterable[str]) -> tuple[str, ...]:
    """The wanted targets in an order that differs from the former one in as few places as can be. Pure."""
    left = dict.fromkeys(wanted)
    count = len(left)
    found: list[str | None] = [None] * count
    for number, target in enumerate(former[:count]):
        if target in left:
            found[number] = target
            del left[target]
    rest = iter(left)
    return tuple(next(rest) if target is None else target for target in found)


def ruleset(table: str, balance: Balance, family: str = "ip") -> str:
    """Commands that bring the table to exactly this, whatever it was before. Ports are those of IPv4 addresses."""
    return _begin(table, family) + _difference(table, family, _EMPTY, _contents(balance, family))


def _begin(table: str, family: str) -> str:
    words = {"table": validate_table(table), "address": _ADDRESS[family], "published": str(PUBLISHED), "ported": PORTED}
    return _TABLE.format(family=family, **words)


def difference(table: str, old: Balance, new: Balance, family: str = "ip") -> str:
    """Commands that bring the table from one to the other. Pure."""
    former = _contents(old, family)
    return _difference(validate_table(table), family, former, _contents(new, family, former))


def _difference(table: str, family: str, old: _Contents, new: _Contents) -> str:
    commands: list[str] = []
    where = f"{family} {table}"
    gone: dict[str, list[str]] = {}
    come: dict[str, list[str]] = {}
    for name in {**old.elements, **new.elements}:
        there, wanted = old.elements.get(name, set()), new.elements.get(name, set())
        gone.setdefault(name, []).extend(sorted(element.partition(" : ")[0] for element in there - wanted))
        come.setdefault(name, []).extend(sorted(wanted - there))
    chains = []
    for name, lead in old.leads.items():
        if name not in new.leads:
            gone.setdefault(lead.by, []).append(lead.key)
            gone.setdefault(lead.to, []).extend(f"{lead.key} . {number}" for number in range(len(old.slots[name])))
            chains.append(f"flush chain {where} {name}\ndelete chain {where} {name}\n")
    rules = []
    for name, lead in new.leads.items():
        before, after = old.slots.get(name, ()), new.slots[name]
        if name not in old.leads:
            rules.append(f"add chain {where} {name}\n")
            come.setdefault(lead.by, []).append(f"{lead.key} : goto {name}")
        if name not in old.leads or len(before) != len(after):
            rules.append(f"flush chain {where} {name}\nadd rule {where} {name} {lead.chain_rule(len(after))}\n")
        if before != after:
            was = dict(enumerate(before))
            moved = [number for number, target in enumerate(after) if was.get(number) != target]
            lost = [number for number in was if number in moved or number >= len(after)]
            gone.setdefault(lead.to, []).extend(f"{lead.key} . {number}" for number in lost)
            come.setdefault(lead.to, []).extend(f"{lead.key} . {number} : {after[number]}" for number in moved)
    # All of it is one transaction; only what is named has to be there by then.
    commands += [f"delete element {where} {name} {{ {', '.join(some)} }}\n" for name, some in gone.items() if some]
    commands += [*chains, *rules]
    commands += [f"add element {where} {name} {{ {', '.join(some)} }}\n" for name, some in come.items() if some]
    return "".join(commands)


def _sources(balance: Balance, family: str) -> list[tuple[Address, Address]]:
    found = [(ipaddress.ip_address(target), ipaddress.ip_address(source)) for target, source in balance.sources]
    return [pair for pair in found if {end.version for end in pair} == {6 if family == "ip6" else 4}]


def _needed(balance: Balance) -> list[str]:
    """The families of IP that need a table."""
    needed = {"ip"} if balance.ports else set()
    needed |= {_family(virtual.address) for virtual in balance.addresses}
    needed |= {_family(target) for target, _ in balance.sources}
    return [family for family in FAMILIES if family in needed]


class Balancer:
    """What is balanced now. The methods block: call them from a thread."""

    def __init__(self, table: str) -> None:
        self._table = validate_table(table)
        self._nftables = Nftables()
        self._lock = threading.Lock()
        self._present: Balance | None = None
        # What the tables hold, by family; nothing of those that are not there, or are not as they should be.
        self._written: dict[str, _Contents] = {}
        # How the tables looked when they were whole, and the number of the kernel's rules then.
        self._shapes: dict[str, nflisting.Shape] = {}
        self._generation = -1
        # The bridges that have their virtual addresses.
        self._indexes: dict[str, int] = {}

    @property
    def table(self) -> str:
        return self._table

    def intact(self) -> bool:
        """Whether the tables are there with all their rules and addresses."""
        with self._lock:
            balance = self._present or NOTHING
            try:
                if nflisting.generation() == self._generation:
                    return True
                return all(self._intact(balance, family) for family in _needed(balance))
            except OSError:
                return False

    def _intact(self, balance: Balance, family: str) -> bool:
        virtual = {
            (ipaddress.ip_address(one.address).packed, b"")
            for one in balance.addresses
            if _family(one.address) == family
        }
        sources = {(target.packed, source.packed) for target, source in _sources(balance, family)}
        held = self._written.get(family, _EMPTY)

        def count(name: str) -> int:
            return len(nflisting.elements(family, self._table, name))

        return (
            integrity.same(self._shapes, family, self._table)
            and nflisting.elements(family, self._table, "virtual") == virtual
            and nflisting.elements(family, self._table, "sources") == sources
            and all(count(name) == len(held.elements[name]) for name in ("places", "own", "held"))
            and all(count(name) == number for name, number in _counts(held).items())
        )

    def apply(self) -> None:
        """Write all of it again; nothing happens where nothing is balanced."""
        with self._lock:
            if self._present:
                self._written.clear()
                self._write(self._present)
                # A bridge may have been made anew.
                self._indexes.clear()
                self._set_addresses(self._present, self._present)
                _redirect(NOTHING, self._present)

    def change(self, balance: Balance) -> None:
        """Make it so; nothing happens when it is so already."""
        with self._lock:
            if balance == self._present or (self._present is None and balance == NOTHING and not self._tables()):
                # A bridge may have left the host, and come back.
                self._set_addresses(balance, balance)
                return
            self._write(balance)
            old = self._present or NOTHING
            self._set_addresses(old, balance)
            self._present = balance
            _redirect(old, balance)

    def remove(self) -> None:
        """Delete the tables; nothing happens when there is none."""
        with self._lock:
            self._present = None
            self._written.clear()
            if present := self._tables():
                self._nftables.run(self._removal(present))

    def _write(self, balance: Balance) -> None:
        needed = _needed(balance)
        contents = {family: _contents(balance, family, self._written.get(family, _EMPTY)) for family in needed}
        known = bool(self._written)
        before = nflisting.generation()
        try:
            self._nftables.run(self._commands(contents) + self._removal(self._stale(needed)))
        except SystemFault as error:
            if not known:
                raise
            # Somebody has removed something.
            log.debug("table %s is written anew: %s", self._table, error)
            self._written.clear()
            before = nflisting.generation()
            self._nftables.run(self._commands(contents) + self._removal(self._stale(needed)))
        self._written = contents
        self._shapes = integrity.look_for(self._table, {one: _rules(what) for one, what in contents.items()})
        # Nobody else has changed any rule meanwhile: so they are whole.
        whole = len(self._shapes) == len(contents) and nflisting.generation() == before + 1
        self._generation = before + 1 if whole else -1

    def _commands(self, contents: Mapping[str, _Contents]) -> str:
        commands = []
        for family, wanted in contents.items():
            former = self._written.get(family)
            if former is None:
                commands.append(_begin(self._table, family))
            commands.append(_difference(self._table, family, former or _EMPTY, wanted))
        return "".join(commands)

    def _stale(self, needed: Sequence[str]) -> set[str]:
        """The families whose table is to go. What was there before the first write is not known."""
        present = set(self._written) if self._written else self._tables()
        return present - set(needed)

    def _removal(self, families: set[str]) -> str:
        return "".join(_REMOVE.format(table=self._table, family=family) for family in sorted(families))

    def _tables(self) -> set[str]:
        """The families of IP for which there is a table of ours."""
        listed = self._nftables.run("list tables\n").splitlines()
        return {family for family in FAMILIES if f"table {family} {self._table}" in listed}

    def _set_addresses(self, old: Balance, new: Balance) -> None:
        """The host answers for virtual addresses on their bridges. A bridge that is gone took its addresses along."""
        before = {(one.interface, one.address) for one in old.addresses}
        after = {(one.interface, one.address) for one in new.addresses}
        indexes = {}
        for interface in {interface for interface, _ in before | after}:
            with suppress(OSError):
                indexes[interface] = socket.if_nametoindex(validate_interface(interface))
        known = {interface for interface, index in indexes.items() if self._indexes.get(interface) == index}
        _change_addresses(
            [(indexes[interface], address) for interface, address in sorted(before - after) if interface in indexes],
            [
                (indexes[interface], address)
                for interface, address in sorted(after)
                if interface in indexes and not (interface in known and (interface, address) in before)
            ],
        )
        self._indexes = {one: index for one, index in indexes.items() if one in {interface for interface, _ in after}}


def _rules(contents: _Contents) -> Counter[str]:
    """How many rules each chain of a table has. Pure."""
    words = [line.split(maxsplit=5) for line in _TABLE.splitlines() if line.startswith("add rule ")]
    return Counter([*(word[4] for word in words), *contents.leads])


def _counts(contents: _Contents) -> dict[str, int]:
    """How many elements the maps of the leads have. Pure."""
    found = {"services": 0, "ports": 0, "targets": 0, "port_targets": 0}
    for name, lead in contents.leads.items():
        found[lead.by] += 1
        found[lead.to] += len(contents.slots[name])
    return found


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
    virtual = {address.address: address.targets for address in new.addresses}
    return (
        {port for port in before | after if before.get(port, set()) - after.get(port, set()) or not before.get(port)},
        {
            ipaddress.ip_address(a.address)
            for a in old.addresses
            if a.targets != (now := virtual.get(a.address, ())) and set(a.targets) - set(now)
        },
    )


def _udp(balance: Balance) -> dict[int, set[str]]:
    return {port.port: set(port.targets) for port in balance.ports if port.protocol == "udp" and port.targets}


def _change_addresses(gone: Sequence[tuple[int, str]], come: Sequence[tuple[int, str]]) -> None:
    """(index of the interface, address). One address, whatever the prefix of its network: /32, or /128."""
    if not gone and not come:
        return
    with NetlinkSocket() as netlink:
        for what, change in ((gone, rtaddresses.delete_address), (come, rtaddresses.add_address)):
            if what:
                netlink.attempt([change(index, ipaddress.ip_interface(address)) for index, address in what])
