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
from husk.kernel import conntrack, nflisting, rtaddresses
from husk.kernel.netlink import NetlinkSocket
from husk.kernel.nftables import Nftables
from husk.network import integrity
from husk.network.rules import FAMILIES, PORTED, PUBLISHED, validate_table
from husk.text.interface_names import validate_interface

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
add map {family} {table} tcp_targets {{ typeof tcp dport . numgen inc mod 2 : {family} daddr . tcp dport; }}
add map {family} {table} udp_targets {{ typeof udp dport . numgen inc mod 2 : {family} daddr . udp dport; }}
add map {family} {table} sctp_targets {{ typeof sctp dport . numgen inc mod 2 : {family} daddr . sctp dport; }}
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
    """The lead of an address or a port: a chain, an element that leads to it, and the elements of its targets."""

    of: VirtualAddress | BalancedPort
    # Of the chain.
    name: str
    # The map that leads to the chain, with the key there, and the map with the targets, with how their keys begin.
    by: str
    key: str
    to: str
    begin: str
    # What the rule of the chain does with `choice`, the number of the target.
    rule: str
    # The rule where there is no target.
    otherwise: str
    # The targets as they were told, and as they are written; and what is written by their numbers.
    targets: Mapping[str, str]
    slots: tuple[str, ...]

    @property
    def chain_rule(self) -> str:
        count = len(self.slots)
        return self.rule.format(choice=f"numgen inc mod {count} map @{self.to}") if count else self.otherwise


# Empty and the address, or the protocol and the port.
_Name = tuple[str, str | int]


def _leads(balance: Balance, family: str, former: Mapping[_Name, _Lead]) -> dict[_Name, _Lead]:
    """Those that have not changed are the former ones. Ports are those of IPv4 addresses."""
    found: dict[_Name, _Lead] = {}
    for virtual in balance.addresses:
        if _family(virtual.address) == family:
            at = ("", virtual.address)
            known = former.get(at)
            found[at] = known if known is not None and known.of == virtual else _of_address(virtual, family, known)
    for port in balance.ports if family == "ip" else ():
        if port.targets:
            name = (port.protocol, port.port)
            known = former.get(name)
            found[name] = known if known is not None and known.of == port else _of_port(port, known)
    return found


def _of_address(virtual: VirtualAddress, family: str, former: _Lead | None) -> _Lead:
    address = ipaddress.ip_address(virtual.address)
    known = former.targets if former is not None else {}
    targets = {target: known.get(target) or str(ipaddress.ip_address(target)) for target in virtual.targets}
    return _Lead(
        of=virtual,
        name=f"to-{address.packed.hex()}",
        by="services",
        key=str(address),
        to="targets",
        begin=str(address),
        rule=f"dnat {family} to {family} daddr . {{choice}}",
        # To itself: it is refused as the host's own, and no port that is published there answers in its place.
        otherwise=f"dnat {family} to {address}",
        targets=targets,
        slots=reslot(former.slots if former is not None else (), targets.values()),
    )


def _of_port(port: BalancedPort, former: _Lead | None) -> _Lead:
    same = former is not None and former.of.target_port == port.target_port  # type: ignore[union-attr]
    known = former.targets if former is not None and same else {}
    number = int(port.target_port)
    targets = {one: known.get(one) or f"{ipaddress.ip_address(one)} . {number}" for one in port.targets}
    return _Lead(
        of=port,
        name=f"at-{_protocol(port.protocol)}-{int(port.port)}",
        by="ports",
        key=f"{port.protocol} . {int(port.port)}",
        # A map for each protocol: the library takes no rule with a map for several once that is there.
        to=f"{port.protocol}_targets",
        begin=str(int(port.port)),
        rule=f"meta l4proto {port.protocol} dnat ip to {port.protocol} dport . {{choice}}",
        otherwise="",
        targets=targets,
        slots=reslot(former.slots if former is not None else (), targets.values()),
    )


def _protocol(name: str) -> str:
    if name not in ("tcp", "udp", "sctp"):
        raise ValueError(f"{name!r} is no protocol with ports")
    return name


def _family(address: str) -> str:
    return "ip6" if ":" in address else "ip"


class _Contents(NamedTuple):
    """The leads, sources and other elements that a table is to hold."""

    leads: Mapping[_Name, _Lead]
    # The element of each pair of a target on another host and this host's own address; empty where it is none.
    sources: Mapping[tuple[str, str], str]
    # Elements by set or map, without those of the leads; of maps with " : " and what they lead to.
    elements: Mapping[str, Set[str]]


_EMPTY = _Contents({}, {}, {})


def _contents(balance: Balance, family: str, former: _Contents = _EMPTY) -> _Contents:
    """Compute what a table is to hold. What has not changed is that of `former`, so that one change costs little beside
    many targets. `former` tells also which target has which number: that changes for as few as can be."""
    leads = _leads(balance, family, former.leads)
    known = former.sources
    sources = {pair: known[pair] if pair in known else _source(pair, family) for pair in balance.sources}
    virtual = [lead for lead in leads.values() if lead.by == "services"]
    places = [(one.of.interface, one.key) for one in virtual if isinstance(one.of, VirtualAddress)]
    elements: dict[str, Set[str]] = {
        "virtual": {lead.key for lead in virtual},
        "places": {f'"{validate_interface(interface)}" . {address}' for interface, address in places},
        "own": {str(ipaddress.ip_address(own)) for own in {pair[1] for pair, element in sources.items() if element}},
        "held": {lead.key for lead in leads.values() if lead.by == "ports"},
        "sources": {element for element in sources.values() if element},
    }
    return _Contents(leads, sources, elements)


def _source(pair: tuple[str, str], family: str) -> str:
    """Empty where it is of another family."""
    target, own = map(ipaddress.ip_address, pair)
    version = 6 if family == "ip6" else 4
    return f"{target} : {own}" if target.version == own.version == version else ""


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
    for held in {**old.elements, **new.elements}:
        there, wanted = old.elements.get(held, set()), new.elements.get(held, set())
        gone.setdefault(held, []).extend(sorted(element.partition(" : ")[0] for element in there - wanted))
        come.setdefault(held, []).extend(sorted(wanted - there))
    chains = []
    for name, lead in old.leads.items():
        if name not in new.leads:
            gone.setdefault(lead.by, []).append(lead.key)
            gone.setdefault(lead.to, []).extend(f"{lead.begin} . {number}" for number in range(len(lead.slots)))
            chains.append(f"flush chain {where} {lead.name}\ndelete chain {where} {lead.name}\n")
    rules = []
    for name, lead in new.leads.items():
        former = old.leads.get(name)
        if former is lead:
            continue
        before, after = former.slots if former is not None else (), lead.slots
        if former is None:
            rules.append(f"add chain {where} {lead.name}\n")
            come.setdefault(lead.by, []).append(f"{lead.key} : goto {lead.name}")
        if former is None or len(before) != len(after):
            rules.append(f"flush chain {where} {lead.name}\nadd rule {where} {lead.name} {lead.chain_rule}\n")
        if before != after:
            was = dict(enumerate(before))
            moved = [number for number, target in enumerate(after) if was.get(number) != target]
            lost = [number for number in was if number >= len(after) or was[number] != after[number]]
            gone.setdefault(lead.to, []).extend(f"{lead.begin} . {number}" for number in lost)
            come.setdefault(lead.to, []).extend(f"{lead.begin} . {number} : {after[number]}" for number in moved)
    # All of it is one transaction; only what is named has to be there by then.
    commands += [f"delete element {where} {held} {{ {', '.join(some)} }}\n" for held, some in gone.items() if some]
    commands += [*chains, *rules]
    commands += [f"add element {where} {held} {{ {', '.join(some)} }}\n" for held, some in come.items() if some]
    return "".join(commands)


def _needed(balance: Balance) -> list[str]:
    """The families of IP that need a table."""
    needed = {"ip"} if balance.ports else set()
    needed |= {_family(virtual.address) for virtual in balance.addresses}
    needed |= {_family(target) for target, _ in balance.sources}
    return [family for family in FAMILIES if family in needed]


class Balancer:
    """The virtual addresses and ports that are balanced now. The methods block: call them from a thread."""

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
        """Return True if the tables are there with all their rules and addresses."""
        with self._lock:
            balance = self._present or NOTHING
            try:
                if (generation := nflisting.generation()) == self._generation:
                    return True
                if not all(self._intact(family) for family in _needed(balance)):
                    return False
                self._generation = generation
                return True
            except FileNotFoundError:
                return False

    def _intact(self, family: str) -> bool:
        held = self._written.get(family, _EMPTY)
        version = socket.AF_INET6 if family == "ip6" else socket.AF_INET
        virtual = {(socket.inet_pton(version, address), b"") for address in held.elements.get("virtual", ())}
        pairs = (pair for pair, element in held.sources.items() if element)
        sources = {(socket.inet_pton(version, target), socket.inet_pton(version, own)) for target, own in pairs}

        def count(name: str) -> int:
            return len(nflisting.elements(family, self._table, name))

        return (
            family in self._written
            and integrity.same(self._shapes, family, self._table)
            and nflisting.elements(family, self._table, "virtual") == virtual
            and nflisting.elements(family, self._table, "sources") == sources
            and all(count(name) == len(held.elements[name]) for name in ("places", "own", "held"))
            and all(count(name) == number for name, number in _counts(held).items())
        )

    def apply(self) -> None:
        """Write all of it again; nothing happens where nothing is balanced."""
        with self._lock:
            if self._present:
                self._written = {}
                self._write(self._present)
                # A bridge may have been made anew.
                self._indexes.clear()
                self._set_addresses(self._present, self._present)
                _redirect(NOTHING, self._present)

    def change(self, balance: Balance) -> None:
        """Make it so; nothing happens when it is so already."""
        with self._lock:
            if self._is_so(balance):
                # A bridge may have left the host, and come back.
                self._set_addresses(balance, balance)
                return
            self._write(balance)
            old = self._present or NOTHING
            self._set_addresses(old, balance)
            self._present = balance
            _redirect(old, balance)

    def _is_so(self, balance: Balance) -> bool:
        if self._present is None:
            return balance == NOTHING and not self._tables()
        return balance == self._present and bool(self._written) == bool(balance)

    def remove(self) -> None:
        """Delete the tables; nothing happens when there is none."""
        with self._lock:
            self._present, self._written = None, {}
            if present := self._tables():
                self._nftables.run(self._removal(present))

    def _write(self, balance: Balance) -> None:
        needed = _needed(balance)
        known = self._generation
        # What fails, or is cut off, may be done or not: then all of it is written anew.
        former, self._written, self._generation = self._written, {}, -1
        contents = {family: _contents(balance, family, former.get(family, _EMPTY)) for family in needed}
        before = nflisting.generation()
        try:
            self._nftables.run(self._commands(former, contents) + self._removal(self._stale(former, needed)))
        except SystemFault as error:
            if not former:
                raise
            # Somebody has removed something.
            log.debug("table %s is written anew: %s", self._table, error)
            former = {}
            before = nflisting.generation()
            self._nftables.run(self._commands(former, contents) + self._removal(self._stale(former, needed)))
        self._shapes = self._look(former, contents)
        self._written = contents
        # Nobody else has changed any rule meanwhile, nor since they were whole: so they are. What else somebody has
        # removed, a difference does not bring back.
        whole = len(self._shapes) == len(contents) and (not former or known == before)
        if whole and nflisting.generation() == before + 1:
            self._generation = before + 1

    def _look(self, former: Mapping[str, _Contents], contents: Mapping[str, _Contents]) -> dict[str, nflisting.Shape]:
        """Read the shapes of the tables by family, directly after they were changed."""
        found = {}
        for family, wanted in contents.items():
            if family in former:
                changed, gone = _changed_chains(former[family], wanted)
                shape = integrity.look_again(self._shapes, family, self._table, changed, gone)
            else:
                shape = integrity.look_for(self._table, {family: _rules(wanted)}).get(family)
            if shape is not None:
                found[family] = shape
        return found

    def _commands(self, former: Mapping[str, _Contents], contents: Mapping[str, _Contents]) -> str:
        commands = []
        for family, wanted in contents.items():
            if family not in former:
                commands.append(_begin(self._table, family))
            commands.append(_difference(self._table, family, former.get(family, _EMPTY), wanted))
        return "".join(commands)

    def _stale(self, former: Mapping[str, _Contents], needed: Sequence[str]) -> set[str]:
        """The families whose table is to go. What was there before the first write is not known."""
        return (set(former) or self._tables()) - set(needed)

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
    """Count the rules of each chain of a table. Pure."""
    words = [line.split(maxsplit=5) for line in _TABLE.splitlines() if line.startswith("add rule ")]
    return Counter([*(word[4] for word in words), *(lead.name for lead in contents.leads.values())])


def _changed_chains(old: _Contents, new: _Contents) -> tuple[dict[str, int], set[str]]:
    """The chains that have changed, with the number of their rules now, and those that are gone. Pure."""
    changed = {lead.name: 1 for name, lead in new.leads.items() if old.leads.get(name) is not lead}
    return changed, {lead.name for name, lead in old.leads.items() if name not in new.leads}


def _counts(contents: _Contents) -> dict[str, int]:
    """Count the elements of each map of the leads. Pure."""
    found = dict.fromkeys(("services", "ports", "targets", "tcp_targets", "udp_targets", "sctp_targets"), 0)
    for lead in contents.leads.values():
        found[lead.by] += 1
        found[lead.to] += len(lead.slots)
    return found


def _redirect(old: Balance, new: Balance) -> None:
    """Let conversations over UDP find their way anew where it has changed: they keep the one they began with."""
    ports, addresses = changed(old, new)
    if not ports and not addresses:
        return
    try:
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
