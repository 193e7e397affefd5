"""The text of the rules: which packets may cross a bridge, whose addresses are hidden, where ports lead. Pure.

The chains are fixed; networks are elements of sets and published ports elements of maps, so that one more of either is
an element and not a rule. Each daemon has tables of its own, one for each kind of packets: two never touch each
other's, and removing a daemon's rules is removing its tables. An `accept` here does not outvote a `drop` elsewhere.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Literal, NamedTuple

from husk.errors import InvalidParameter
from husk.kernel import nfelements
from husk.kernel.nfelements import Element
from husk.network.ports import PublishedPort
from husk.text.interface_names import validate_interface
from husk.text.patterns import pattern

_TABLE_NAME = pattern(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}")
_NAME_BYTES = 16
_SETS = pattern(r"^add (?:set|map) \S+ \S+ (\w+)", re.MULTILINE)

# Every statement is idempotent and all are one transaction: no packet sees a half-written table.
#
# Containers that are given the loopback's answers (route_localnet) must not be able to ask the loopback themselves:
# `guard`. Nor may they seem to be it: the kernel asks that only of the addresses that interfaces have, and of IPv6 not
# at all. Hence `strict`: a packet comes from where its sender would be reached. A connection from a container that was
# led to a published port is masqueraded, because the other container would answer it directly, past the translation,
# if it saw where it came from.
#
# Into a bridge come translations of published ports alone, told by where the packet was sent at first: others on this
# host translate too, and what they lead here is not published. Ports that lead to several containers are translated by
# another table (`balance`), which goes on while this one is written anew: it tells by a mark.
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
add set {family} {table} published {{ type inet_proto . inet_service; }}
add set {family} {table} bound_published {{ type inet_proto . {address} . inet_service; }}
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
flush set {family} {table} published
flush set {family} {table} bound_published
flush map {family} {table} ports
flush map {family} {table} bound_ports
add chain {family} {table} guard {{ type filter hook prerouting priority raw; policy accept; }}
add chain {family} {table} prerouting {{ type nat hook prerouting priority dstnat; policy accept; }}
add chain {family} {table} output {{ type nat hook output priority -100; policy accept; }}
add chain {family} {table} input {{ type filter hook input priority filter; policy accept; }}
add chain {family} {table} forward {{ type filter hook forward priority filter; policy accept; }}
add chain {family} {table} postrouting {{ type nat hook postrouting priority srcnat; policy accept; }}
flush chain {family} {table} guard
flush chain {family} {table} prerouting
flush chain {family} {table} output
flush chain {family} {table} input
flush chain {family} {table} forward
flush chain {family} {table} postrouting
add rule {family} {table} guard iifname @bridges {family} daddr {loopback} drop
add rule {family} {table} guard iifname @bridges {family} saddr {loopback} drop
{strict_guard}add rule {family} {table} prerouting dnat to meta l4proto . {family} daddr . th dport map @bound_ports
add rule {family} {table} prerouting fib daddr type local dnat to meta l4proto . th dport map @ports
add rule {family} {table} output {not_loopback}dnat to meta l4proto . {family} daddr . th dport map @bound_ports
add rule {family} {table} output {not_loopback}fib daddr type local dnat to meta l4proto . th dport map @ports
{strict_input}add rule {family} {table} forward iifname . oifname @within accept
{strict_forward}add rule {family} {table} forward iifname @closed drop
add rule {family} {table} forward oifname @closed drop
add rule {family} {table} forward oifname != @bridges accept
add rule {family} {table} forward ct state established,related accept
add rule {family} {table} forward ct status dnat {ported} meta l4proto . ct original proto-dst @published accept
add rule {family} {table} forward ct status dnat {ported} \
meta l4proto . ct original {family} daddr . ct original proto-dst @bound_published accept
add rule {family} {table} forward ct status dnat meta mark and {mark} != 0 \
meta mark set meta mark and {unmarked} accept
add rule {family} {table} forward meta l4proto . {family} daddr . th dport @opened accept
add rule {family} {table} forward oifname @unprotected accept
add rule {family} {table} forward oifname @routed meta l4proto {icmp} accept
add rule {family} {table} forward drop
add rule {family} {table} postrouting ct status dnat {family} saddr @subnets oifname @bridges masquerade
add rule {family} {table} postrouting {family} saddr {loopback} oifname @bridges masquerade
add rule {family} {table} postrouting {family} saddr @masqueraded oifname != @bridges masquerade
"""

# What the host's own bridges and whatever listens on them never get from a container: what a router or a DHCP server
# says. By ports, whose names begin alike: other ports of an administrator's bridge may lead to real ones.
_BRIDGE_TABLE = """\
add table bridge {table}
add chain bridge {table} input {{ type filter hook input priority filter; policy accept; }}
flush chain bridge {table} input
add rule bridge {table} input iifname "{ports}*" icmpv6 type {{ nd-router-advert, nd-redirect }} drop
add rule bridge {table} input iifname "{ports}*" icmp type redirect drop
add rule bridge {table} input iifname "{ports}*" ether type ip udp sport 67 udp dport 68 drop
add rule bridge {table} input iifname "{ports}*" ether type ip6 udp sport 547 udp dport 546 drop
"""

REMOVE = """\
add table {family} {table}
delete table {family} {table}
"""

# Of a packet whose connection is to a published port that `balance` leads on; only while it passes `forward`.
PUBLISHED = 1 << 28
# Without it nftables does not know what kind of number a port of the connection is.
PORTED = "meta l4proto { tcp, udp, sctp }"

# The kernel lets no packet with the address ::1 out: what is sent there reaches the socket that holds the port.
# For IPv4 the kernel has a setting for what is `strict` here (rp_filter). Whoever has no address yet asks from `::`.
_STRICT = "add rule ip6 {{table}} {} iifname @bridges ip6 saddr != :: fib saddr . iif oif missing drop\n"
_STRICT_GUARD = (
    'add rule ip {table} guard iifname != "lo" ip daddr 127.0.0.0/8 '
    "meta l4proto . ip daddr . th dport @bound_published drop\n"
)
_WORDS = {
    "ip": {
        "address": "ipv4_addr",
        "loopback": "127.0.0.0/8",
        "not_loopback": "",
        "icmp": "icmp",
        "strict_guard": _STRICT_GUARD,
        "strict_input": "",
        "strict_forward": "",
    },
    "ip6": {
        "address": "ipv6_addr",
        "loopback": "::1",
        "not_loopback": "ip6 daddr != ::1 ",
        "icmp": "58",  # as a number: its name is in /etc/protocols, which not every machine has
        "strict_guard": "",
        "strict_input": _STRICT.format("input"),
        "strict_forward": _STRICT.format("forward"),
    },
}
FAMILIES = tuple(_WORDS)

# How containers are reached from outside: at ports of the host; also at all of their own ports, by who has a route to
# them; at their published ports, by who has a route, and as themselves; or not at all.
GatewayMode = Literal["nat", "nat-unprotected", "routed", "isolated"]


class GatewayModes(NamedTuple):
    ipv4: GatewayMode = "nat"
    ipv6: GatewayMode = "nat"


class BridgedNetwork(NamedTuple):
    """The properties of a network that the rules need to know."""

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
    words = {name: word.format(table=validate_table(table)) for name, word in _WORDS[family].items()}
    words |= {"ported": PORTED, "mark": str(PUBLISHED), "unmarked": str(0xFFFFFFFF ^ PUBLISHED)}
    commands = _TABLE.format(table=table, family=family, **words)
    for network in networks:
        commands += network_elements("add", table, network, family)
    return commands + port_elements("add", table, ports, family)


def port_prefix(table: str) -> str:
    """Return the beginning of the names of interfaces that lead to containers of the daemon with this table."""
    return "veth" + hashlib.sha256(table.encode()).hexdigest()[:3]


def bridge_ruleset(table: str) -> str:
    """Commands that bring the table for frames to what it must be, whatever it was before."""
    return _BRIDGE_TABLE.format(table=validate_table(table), ports=port_prefix(table))


def network_elements(verb: str, table: str, network: BridgedNetwork, family: str = "ip") -> str:
    """Nothing for a network without addresses of the family: what crosses its bridge is the administrator's matter."""
    elements = _network_elements(network, family)
    return "".join(f"{verb} element {family} {table} {where} {{ {' . '.join(what)} }}\n" for where, what in elements)


def _network_elements(network: BridgedNetwork, family: str) -> list[tuple[str, tuple[str, ...]]]:
    """(set, parts of the element) for each set that knows the network."""
    name = f'"{validate_interface(network.interface)}"'
    subnet, mode = (network.subnet, network.modes.ipv4) if family == "ip" else (network.subnet6, network.modes.ipv6)
    if subnet is None:
        return []
    elements: list[tuple[str, tuple[str, ...]]] = [("bridges", (name,)), ("subnets", (str(subnet),))]
    if network.icc:
        elements.append(("within", (name, name)))
    if network.internal:
        return [*elements, ("closed", (name,))]
    if network.masquerade and mode != "routed":
        elements.append(("masqueraded", (str(subnet),)))
    if mode in ("routed", "nat-unprotected"):
        elements.append(("routed" if mode == "routed" else "unprotected", (name,)))
    return elements


def port_elements(verb: str, table: str, ports: Iterable[PublishedPort], family: str = "ip") -> str:
    """Nothing for ports of the other family, and those that lead from one to the other: no rule can."""
    commands = ""
    for port in ports:
        if port.family != family:
            continue
        target = f" : {port.container_ip} . {port.container_port}" if verb == "add" else ""
        if port.routed:
            commands += f"{verb} element {family} {table} opened {{ {_opened(port)} }}\n"
        else:
            at = "" if port.everywhere else f" . {port.host_ip}"
            key, bound = f"{port.protocol}{at} . {port.host_port}", "bound_" if at else ""
            commands += f"{verb} element {family} {table} {bound}published {{ {key} }}\n"
            commands += f"{verb} element {family} {table} {bound}ports {{ {key}{target} }}\n"
    return commands


def whole_elements(
    table: str, networks: Iterable[BridgedNetwork], ports: Iterable[PublishedPort], family: str
) -> dict[str, set[tuple[bytes, bytes]]]:
    """Compute what each set and map of the table must hold in the kernel: (key, data), of a subnet its beginning."""
    found: dict[str, set[tuple[bytes, bytes]]] = {name: set() for name in _SETS.findall(_TABLE)}
    for network in networks:
        for where, words in _network_elements(network, family):
            found[where].add((b"".join(map(_bytes, words)), b""))
    for element in elements_of(table, ports):
        if element.family == family:
            found[element.where].add((element.key, element.data))
    return found


def _bytes(word: str) -> bytes:
    """An interface's name, or a subnet's beginning."""
    if word.startswith('"'):
        return word.strip('"').encode().ljust(_NAME_BYTES, b"\0")
    return ip_network(word).network_address.packed


def elements_of(table: str, ports: Iterable[PublishedPort]) -> list[Element]:
    """The same ports as `port_elements`, of both families, for who adds or deletes a few."""
    found = []
    for port in ports:
        number = nfelements.service(port.container_port)
        target = nfelements.address(port.container_ip) + number
        kind = nfelements.protocol(port.protocol)
        if port.routed:
            found.append(Element(port.family, table, "opened", kind + target))
        elif port.family:
            at, bound = (b"", "") if port.everywhere else (nfelements.address(port.host_ip), "bound_")
            key = kind + at + nfelements.service(port.host_port)
            found.append(Element(port.family, table, f"{bound}published", key))
            found.append(Element(port.family, table, f"{bound}ports", key, target))
    return found


def _opened(port: PublishedPort) -> str:
    return f"{port.protocol} . {port.container_ip} . {port.container_port}"
