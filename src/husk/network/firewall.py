"""Which packets may cross a bridge, whose addresses are hidden, where do published ports lead? The daemon's own table.

The chains are fixed; networks are elements of sets and published ports elements of maps, so that one more of either is
an element and not a rule. One nftables table per daemon: two daemons never touch each other's, and removing a daemon's
rules is removing its table. An `accept` here does not outvote a `drop` in somebody else's table.
"""

import logging
import re
import threading
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network
from typing import NamedTuple

from husk.errors import InvalidParameter, SystemFault
from husk.kernel import conntrack
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
add table ip {table}
add set ip {table} bridges {{ type ifname; }}
add set ip {table} closed {{ type ifname; }}
add set ip {table} within {{ type ifname . ifname; }}
add set ip {table} subnets {{ type ipv4_addr; flags interval; }}
add set ip {table} masqueraded {{ type ipv4_addr; flags interval; }}
add map ip {table} ports {{ type inet_proto . inet_service : ipv4_addr . inet_service; }}
add map ip {table} bound_ports {{ type inet_proto . ipv4_addr . inet_service : ipv4_addr . inet_service; }}
flush set ip {table} bridges
flush set ip {table} closed
flush set ip {table} within
flush set ip {table} subnets
flush set ip {table} masqueraded
flush map ip {table} ports
flush map ip {table} bound_ports
add chain ip {table} guard {{ type filter hook prerouting priority raw; policy accept; }}
add chain ip {table} prerouting {{ type nat hook prerouting priority dstnat; policy accept; }}
add chain ip {table} output {{ type nat hook output priority -100; policy accept; }}
add chain ip {table} forward {{ type filter hook forward priority filter; policy accept; }}
add chain ip {table} postrouting {{ type nat hook postrouting priority srcnat; policy accept; }}
flush chain ip {table} guard
flush chain ip {table} prerouting
flush chain ip {table} output
flush chain ip {table} forward
flush chain ip {table} postrouting
add rule ip {table} guard iifname @bridges ip daddr 127.0.0.0/8 drop
add rule ip {table} prerouting dnat to meta l4proto . ip daddr . th dport map @bound_ports
add rule ip {table} prerouting fib daddr type local dnat to meta l4proto . th dport map @ports
add rule ip {table} output dnat to meta l4proto . ip daddr . th dport map @bound_ports
add rule ip {table} output fib daddr type local dnat to meta l4proto . th dport map @ports
add rule ip {table} forward iifname . oifname @within accept
add rule ip {table} forward iifname @closed drop
add rule ip {table} forward oifname @closed drop
add rule ip {table} forward oifname != @bridges accept
add rule ip {table} forward ct state established,related accept
add rule ip {table} forward ct status dnat accept
add rule ip {table} forward drop
add rule ip {table} postrouting ct status dnat ip saddr @subnets oifname @bridges masquerade
add rule ip {table} postrouting ip saddr 127.0.0.0/8 oifname @bridges masquerade
add rule ip {table} postrouting ip saddr @masqueraded oifname != @bridges masquerade
"""

# How the rules end in a listing.
_ENDINGS = ("accept", "drop", "masquerade", "map @ports", "map @bound_ports")

_REMOVE = """\
add table ip {table}
delete table ip {table}
"""


class BridgedNetwork(NamedTuple):
    """What the rules need to know of a network."""

    interface: str
    subnet: IPv4Network
    # No packet leaves an internal network and none comes in.
    internal: bool = False
    # Whether its containers may talk to each other.
    icc: bool = True
    masquerade: bool = True


def validate_interface(name: str) -> str:
    if not _INTERFACE_NAME.fullmatch(name):
        raise InvalidParameter(f"invalid bridge name {name!r}: 1 to 15 letters, digits, '_', '.' or '-'")
    return name


def validate_table(name: str) -> str:
    if not _TABLE_NAME.fullmatch(name):
        raise InvalidParameter(f"invalid nftables table name {name!r}: letters, digits, '_' or '-', a letter first")
    return name


def ruleset(table: str, networks: Sequence[BridgedNetwork], ports: Iterable[PublishedPort] = ()) -> str:
    """Commands that bring the table to exactly these networks and ports, whatever it was before.

    Into a bridge go answers, its own containers' packets and published ports; anything else, another bridge of this
    daemon or of another one included, is dropped. Out of a bridge goes everything, under the host's address.
    """
    commands = _TABLE.format(table=validate_table(table))
    for network in networks:
        commands += network_elements("add", table, network)
    return commands + port_elements("add", table, ports)


def network_elements(verb: str, table: str, network: BridgedNetwork) -> str:
    name = validate_interface(network.interface)
    elements = [("bridges", f'"{name}"'), ("subnets", str(network.subnet))]
    if network.icc:
        elements.append(("within", f'"{name}" . "{name}"'))
    if network.internal:
        elements.append(("closed", f'"{name}"'))
    elif network.masquerade:
        elements.append(("masqueraded", str(network.subnet)))
    return "".join(f"{verb} element ip {table} {where} {{ {what} }}\n" for where, what in elements)


def port_elements(verb: str, table: str, ports: Iterable[PublishedPort]) -> str:
    commands = ""
    for port in ports:
        target = f" : {port.container_ip} . {port.container_port}" if verb == "add" else ""
        if port.everywhere:
            commands += f"{verb} element ip {table} ports {{ {port.protocol} . {port.host_port}{target} }}\n"
        else:
            key = f"{port.protocol} . {port.host_ip} . {port.host_port}"
            commands += f"{verb} element ip {table} bound_ports {{ {key}{target} }}\n"
    return commands


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

    @property
    def table(self) -> str:
        return self._table

    def intact(self) -> bool:
        """Whether the table is there with all its rules, networks and ports."""
        with self._lock:
            if not self._written:
                return True
            try:
                listed = self._nftables.run(f"list table ip {self._table}\n")
            except SystemFault:
                return False
            wanted = ruleset(self._table, ()).count("add rule")
            rules = sum(line.strip().endswith(_ENDINGS) for line in listed.splitlines())
            # A port's target holds the one " : " of its element.
            ports = listed.count(" : ") - listed.count("type inet_proto")
            networks = all(f'"{name}"' in listed for name in self._networks)
            return rules == wanted and ports == len(self._ports) and networks

    def apply(self) -> None:
        """Write the whole table, whatever it was before."""
        with self._lock:
            self._write()
            self._written = True

    def add_network(self, network: BridgedNetwork) -> None:
        with self._lock:
            old = self._networks.get(network.interface)
            self._networks[network.interface] = network
            if old is None:
                self._change(network_elements("add", self._table, network))
            elif old != network and self._written:
                self._write()

    def remove_network(self, interface: str) -> None:
        """Nothing happens when it is not there."""
        with self._lock:
            if (network := self._networks.pop(interface, None)) is not None:
                self._change(network_elements("delete", self._table, network))

    def publish(self, ports: Sequence[PublishedPort]) -> None:
        with self._lock:
            new = [port for port in ports if port not in self._ports]
            self._ports.update(dict.fromkeys(new))
            if new:
                self._change(port_elements("add", self._table, new))
                _forget(new)

    def withdraw(self, ports: Sequence[PublishedPort]) -> None:
        """Nothing happens for those that are not published."""
        with self._lock:
            known = [port for port in ports if port in self._ports]
            for port in known:
                del self._ports[port]
            if known:
                self._change(port_elements("delete", self._table, known))
                _forget(known)

    def remove(self) -> None:
        """Delete the table; nothing happens when there is none."""
        with self._lock:
            self._networks.clear()
            self._ports.clear()
            self._written = False
            self._nftables.run(_REMOVE.format(table=self._table))

    def _change(self, commands: str) -> None:
        if not self._written:
            return
        try:
            self._nftables.run(commands)
        except SystemFault:
            self._write()

    def _write(self) -> None:
        self._nftables.run(ruleset(self._table, list(self._networks.values()), self._ports))
