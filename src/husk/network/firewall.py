"""Which packets may cross a bridge, whose addresses are hidden, where do published ports lead? The daemon's own table.

The chains are fixed; networks are elements of sets and published ports elements of maps, so that one more of either is
an element and not a rule. One nftables table per daemon: two daemons never touch each other's, and removing a daemon's
rules is removing its table. An `accept` here does not outvote a `drop` in somebody else's table.
"""

import logging
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network
from typing import Literal, NamedTuple

from husk.errors import InvalidParameter, SystemFault
from husk.kernel import conntrack, nfelements
from husk.kernel.nfelements import Element
from husk.kernel.nftables import Nftables
from husk.network.ports import PublishedPort

log = logging.getLogger(__name__)

_TABLE_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}")
_INTERFACE_NAME = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,14}")

# Every statement is idempotent and all are one transaction: no packet sees a half-written table.
#
# Containers that are given the loopback's answers (route_localnet) must not be able to ask the loopback themselves:
# `guard`. A connection from a container that was led to a published port is masqueraded, because the other container
# would answer it directly, past the translation, if it saw where it came from.
_TABLE = """\
add table {family} {table}
add set {family} {table} bridges {{ type ifname; }}
add set {family} {table} closed {{ type ifname; }}
add set {family} {table} within {{ type ifname . ifname; }}
add set {family} {table} subnets {{ type {address}; flags interval; }}
add set {family} {table} masqueraded {{ type {address}; flags interval; }}
add set {family} {table} routed {{ type ifname; }}
add set {family} {table} unprotected {{ type ifname; }}
add set {family} {table} opened {{ type inet_proto . {address} . inet_service; }}
add map {family} {table} ports {{ type inet_proto . inet_service : {address} . inet_service; }}
add map {family} {table} bound_ports {{ type inet_proto . {address} . inet_service : {address} . inet_service; }}
flush set {family} {table} bridges
flush set {family} {table} closed
flush set {family} {table} within
flush set {family} {table} subnets
flush set {family} {table} masqueraded
flush set {family} {table} routed
flush set {family} {table} unprotected
flush set {family} {table} opened
flush map {family} {table} ports
flush map {family} {table} bound_ports
add chain {family} {table} guard {{ type filter hook prerouting priority raw; policy accept; }}
add chain {family} {table} prerouting {{ type nat hook prerouting priority dstnat; policy accept; }}
add chain {family} {table} output {{ type nat hook output priority -100; policy accept; }}
add chain {family} {table} forward {{ type filter hook forward priority filter; policy accept; }}
add chain {family} {table} postrouting {{ type nat hook postrouting priority srcnat; policy accept; }}
flush chain {family} {table} guard
flush chain {family} {table} prerouting
flush chain {family} {table} output
flush chain {family} {table} forward
flush chain {family} {table} postrouting
add rule {family} {table} guard iifname @bridges {family} daddr {loopback} drop
add rule {family} {table} prerouting dnat to meta l4proto . {family} daddr . th dport map @bound_ports
add rule {family} {table} prerouting fib daddr type local dnat to meta l4proto . th dport map @ports
add rule {family} {table} output {not_loopback}dnat to meta l4proto . {family} daddr . th dport map @bound_ports
add rule {family} {table} output {not_loopback}fib daddr type local dnat to meta l4proto . th dport map @ports
add rule {family} {table} forward iifname . oifname @within accept
add rule {family} {table} forward iifname @closed drop
add rule {family} {table} forward oifname @closed drop
add rule {family} {table} forward oifname != @bridges accept
add rule {family} {table} forward ct state established,related accept
add rule {family} {table} forward ct status dnat accept
add rule {family} {table} forward meta l4proto . {family} daddr . th dport @opened accept
add rule {family} {table} forward oifname @unprotected accept
add rule {family} {table} forward oifname @routed meta l4proto {icmp} accept
add rule {family} {table} forward drop
add rule {family} {table} postrouting ct status dnat {family} saddr @subnets oifname @bridges masquerade
add rule {family} {table} postrouting {family} saddr {loopback} oifname @bridges masquerade
add rule {family} {table} postrouting {family} saddr @masqueraded oifname != @bridges masquerade
"""

# How the rules end in a listing.
_ENDINGS = ("accept", "drop", "masquerade", "map @ports", "map @bound_ports")

_REMOVE = """\
add table {family} {table}
delete table {family} {table}
"""

# The kernel lets no packet with the address ::1 out: what is sent there reaches the socket that holds the port.
_WORDS = {
    "ip": {"address": "ipv4_addr", "loopback": "127.0.0.0/8", "not_loopback": "", "icmp": "icmp"},
    "ip6": {"address": "ipv6_addr", "loopback": "::1", "not_loopback": "ip6 daddr != ::1 ", "icmp": "ipv6-icmp"},
}
FAMILIES = tuple(_WORDS)

# How containers are reached from outside: at ports of the host; also at all of their own ports, by who has a route to
# them; at their published ports, by who has a route, and as themselves; or not at all.
GatewayMode = Literal["nat", "nat-unprotected", "routed", "isolated"]


class GatewayModes(NamedTuple):
    ipv4: GatewayMode = "nat"
    ipv6: GatewayMode = "nat"


class BridgedNetwork(NamedTuple):
    """What the rules need to know of a network."""

    interface: str
    subnet: IPv4Network | None
    # No packet leaves an internal network and none comes in.
    internal: bool = False
    # Whether its containers may talk to each other.
    icc: bool = True
    masquerade: bool = True
    subnet6: IPv6Network | None = None
    modes: GatewayModes = GatewayModes()

    def has(self, family: str) -> bool:
        return (self.subnet if family == "ip" else self.subnet6) is not None


def validate_interface(name: str) -> str:
    if not _INTERFACE_NAME.fullmatch(name):
        raise InvalidParameter(f"invalid bridge name {name!r}: 1 to 15 letters, digits, '_', '.' or '-'")
    return name


def validate_table(name: str) -> str:
    if not _TABLE_NAME.fullmatch(name):
        raise InvalidParameter(f"invalid nftables table name {name!r}: letters, digits, '_' or '-', a letter first")
    return name


def ruleset(
    table: str, networks: Sequence[BridgedNetwork], ports: Iterable[PublishedPort] = (), family: str = "ip"
) -> str:
    """Commands that bring the table to exactly these networks and ports, whatever it was before.

    Into a bridge go answers, its own containers' packets and published ports; anything else, another bridge of this
    daemon or of another one included, is dropped. Out of a bridge goes everything, under the host's address.
    """
    commands = _TABLE.format(table=validate_table(table), family=family, **_WORDS[family])
    for network in networks:
        commands += network_elements("add", table, network, family)
    return commands + port_elements("add", table, ports, family)


def network_elements(verb: str, table: str, network: BridgedNetwork, family: str = "ip") -> str:
    """Nothing for a network without addresses of the family: what crosses its bridge is the administrator's matter."""
    name = validate_interface(network.interface)
    subnet, mode = (network.subnet, network.modes.ipv4) if family == "ip" else (network.subnet6, network.modes.ipv6)
    if subnet is None:
        return ""
    elements = [("bridges", f'"{name}"'), ("subnets", str(subnet))]
    if network.icc:
        elements.append(("within", f'"{name}" . "{name}"'))
    if network.internal:
        elements.append(("closed", f'"{name}"'))
        return _commands(verb, family, table, elements)
    if network.masquerade and mode != "routed":
        elements.append(("masqueraded", str(subnet)))
    if mode in ("routed", "nat-unprotected"):
        elements.append(("routed" if mode == "routed" else "unprotected", f'"{name}"'))
    return _commands(verb, family, table, elements)


def _commands(verb: str, family: str, table: str, elements: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{verb} element {family} {table} {where} {{ {what} }}\n" for where, what in elements)


def port_elements(verb: str, table: str, ports: Iterable[PublishedPort], family: str = "ip") -> str:
    """Nothing for ports of the other family, and those that lead from one to the other: no rule can."""
    commands = ""
    for port in ports:
        if port.family != family:
            continue
        target = f" : {port.container_ip} . {port.container_port}" if verb == "add" else ""
        if port.routed:
            commands += f"{verb} element {family} {table} opened {{ {_opened(port)} }}\n"
        elif port.everywhere:
            commands += f"{verb} element {family} {table} ports {{ {port.protocol} . {port.host_port}{target} }}\n"
        else:
            key = f"{port.protocol} . {port.host_ip} . {port.host_port}"
            commands += f"{verb} element {family} {table} bound_ports {{ {key}{target} }}\n"
    return commands


def elements_of(table: str, ports: Iterable[PublishedPort]) -> list[Element]:
    """The same ports as `port_elements`, of both families, for who adds or deletes a few."""
    found = []
    for port in ports:
        number = nfelements.service(port.container_port)
        target = nfelements.address(port.container_ip) + number
        kind = nfelements.protocol(port.protocol)
        if port.routed:
            found.append(Element(port.family, table, "opened", kind + target))
        elif port.family and port.everywhere:
            found.append(Element(port.family, table, "ports", kind + nfelements.service(port.host_port), target))
        elif port.family:
            key = kind + nfelements.address(port.host_ip) + nfelements.service(port.host_port)
            found.append(Element(port.family, table, "bound_ports", key, target))
    return found


def _opened(port: PublishedPort) -> str:
    return f"{port.protocol} . {port.container_ip} . {port.container_port}"


def _forget(ports: Iterable[PublishedPort]) -> None:
    """Let conversations that go on over UDP find their way anew."""
    numbers = {port.host_port for port in ports if port.protocol == "udp"}
    if not numbers:
        return
    try:
        conntrack.forget_udp(numbers)
    except OSError as error:
        log.warning("running UDP conversations may miss the change of port %s: %s", sorted(numbers), error)


class Firewall:
    """One daemon's table and what it must hold. The methods block: call them from a thread, from any.

    Until the first `apply` changes are only noted, so that at a start the old table is replaced in one step. From then
    on a change is a few elements; when it fails because somebody has flushed the table, the whole is written again.
    """

    def __init__(self, table: str) -> None:
        self._table = validate_table(table)
        self._nftables = Nftables()
        self._lock = threading.Lock()
        self._networks: dict[str, BridgedNetwork] = {}
        self._ports: dict[PublishedPort, None] = {}
        self._written = False
        # There is an IPv6 table while there is an IPv6 network: a kernel may lack what it needs.
        self._written6 = False

    @property
    def table(self) -> str:
        return self._table

    def intact(self) -> bool:
        """Whether the table is there with all its rules, networks and ports."""
        with self._lock:
            if not self._written:
                return True
            return self._intact("ip") and (not self._written6 or self._intact("ip6"))

    def _intact(self, family: str) -> bool:
        try:
            listed = self._nftables.run(f"list table {family} {self._table}\n")
        except SystemFault:
            return False
        wanted = ruleset(self._table, (), family=family).count("add rule")
        rules = sum(line.strip().endswith(_ENDINGS) for line in listed.splitlines())
        # A port's target holds the one " : " of its element, as the type of a map does.
        ports = listed.count(" : ") - listed.count("inet_service : ")
        expected = [port for port in self._ports if port.family == family]
        return (
            rules == wanted
            and ports == sum(not port.routed for port in expected)
            and all(_opened(port) in listed for port in expected if port.routed)
            and all(f'"{network.interface}"' in listed for network in self._networks.values() if network.has(family))
        )

    def apply(self) -> None:
        """Write the whole table, whatever it was before."""
        with self._lock:
            self._write()
            self._written = True

    def add_network(self, network: BridgedNetwork) -> None:
        with self._lock:
            old = self._networks.get(network.interface)
            self._networks[network.interface] = network
            try:
                if old is None and (self._written6 or not network.subnet6):
                    self._change("add", network)
                elif old != network and self._written:
                    self._write()
            except SystemFault:
                # What cannot be written must not keep the others from it.
                if old is None:
                    del self._networks[network.interface]
                raise

    def remove_network(self, interface: str) -> None:
        """Nothing happens when it is not there."""
        with self._lock:
            if (network := self._networks.pop(interface, None)) is not None:
                self._change("delete", network)

    def publish(self, ports: Sequence[PublishedPort]) -> None:
        with self._lock:
            new = [port for port in ports if port not in self._ports]
            self._ports.update(dict.fromkeys(new))
            if new:
                self._change_ports(nfelements.add, new)
                _forget(new)

    def withdraw(self, ports: Sequence[PublishedPort]) -> None:
        """Nothing happens for those that are not published."""
        with self._lock:
            known = [port for port in ports if port in self._ports]
            for port in known:
                del self._ports[port]
            if known:
                self._change_ports(nfelements.delete, known)
                _forget(known)

    def remove(self) -> None:
        """Delete the table; nothing happens when there is none."""
        with self._lock:
            self._networks.clear()
            self._ports.clear()
            self._written = False
            self._nftables.run(_REMOVE.format(table=self._table, family="ip"))
            self._remove6()

    def _change(self, verb: str, network: BridgedNetwork) -> None:
        if not self._written:
            return
        families = FAMILIES if self._written6 else FAMILIES[:1]
        commands = "".join(network_elements(verb, self._table, network, family) for family in families)
        if not commands:
            return
        try:
            self._nftables.run(commands)
        except SystemFault:
            self._write()

    def _change_ports(self, change: Callable[[Sequence[Element]], None], ports: Sequence[PublishedPort]) -> None:
        present = FAMILIES if self._written6 else FAMILIES[:1]
        elements = [element for element in elements_of(self._table, ports) if element.family in present]
        if not self._written or not elements:
            return
        try:
            change(elements)
        except OSError as error:
            log.debug("the rules are written anew: %s", error)
            self._write()

    def _write(self) -> None:
        """All in one transaction."""
        networks = list(self._networks.values())
        commands = ruleset(self._table, networks, self._ports)
        if any(network.subnet6 for network in networks):
            commands += ruleset(self._table, networks, self._ports, "ip6")
            self._nftables.run(commands)
            self._written6 = True
            return
        self._nftables.run(commands)
        if self._written6 or not self._written:
            # It may be that of an earlier daemon.
            self._remove6()

    def _remove6(self) -> None:
        with suppress(SystemFault):
            self._nftables.run(_REMOVE.format(table=self._table, family="ip6"))
        self._written6 = False
