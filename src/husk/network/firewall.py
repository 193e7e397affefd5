"""Which packets may cross a bridge, and whose addresses are hidden? The daemon's own nftables table.

The chains are fixed; networks are elements of sets, so that one more network (and, with issue 5, one more published
port) is an element and not a rule. One table per daemon: two daemons never touch each other's, and removing a daemon's
rules is removing its table. An `accept` here does not outvote a `drop` in somebody else's table.
"""

import re
from collections.abc import Sequence
from ipaddress import IPv4Network
from typing import NamedTuple

from husk.errors import InvalidParameter
from husk.kernel.nftables import Nftables

_TABLE_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}")
_INTERFACE_NAME = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,14}")

# Every statement is idempotent and all are one transaction: no packet sees a half-written table, and what other parts
# keep in the table (maps of published ports) survives.
_TABLE = """\
add table ip {table}
add set ip {table} bridges {{ type ifname; }}
add set ip {table} within {{ type ifname . ifname; }}
add set ip {table} subnets {{ type ipv4_addr; flags interval; }}
flush set ip {table} bridges
flush set ip {table} within
flush set ip {table} subnets
add chain ip {table} forward {{ type filter hook forward priority filter; policy accept; }}
add chain ip {table} postrouting {{ type nat hook postrouting priority srcnat; policy accept; }}
flush chain ip {table} forward
flush chain ip {table} postrouting
add rule ip {table} forward oifname != @bridges accept
add rule ip {table} forward ct state established,related accept
add rule ip {table} forward iifname . oifname @within accept
add rule ip {table} forward ct status dnat accept
add rule ip {table} forward drop
add rule ip {table} postrouting ip saddr @subnets oifname != @bridges masquerade
"""

_NETWORK = """\
add element ip {table} bridges {{ "{interface}" }}
add element ip {table} within {{ "{interface}" . "{interface}" }}
add element ip {table} subnets {{ {subnet} }}
"""

_REMOVE = """\
add table ip {table}
delete table ip {table}
"""


class BridgedNetwork(NamedTuple):
    """What the rules need to know of a network."""

    interface: str
    subnet: IPv4Network


def validate_interface(name: str) -> str:
    if not _INTERFACE_NAME.fullmatch(name):
        raise InvalidParameter(f"invalid bridge name {name!r}: 1 to 15 letters, digits, '_', '.' or '-'")
    return name


def validate_table(name: str) -> str:
    if not _TABLE_NAME.fullmatch(name):
        raise InvalidParameter(f"invalid nftables table name {name!r}: letters, digits, '_' or '-', a letter first")
    return name


def ruleset(table: str, networks: Sequence[BridgedNetwork]) -> str:
    """Commands that bring the table to exactly these networks, whatever it was before.

    Into a bridge go answers, its own containers' packets and published ports; anything else, another bridge of this
    daemon or of another one included, is dropped. Out of a bridge goes everything, under the host's address.
    """
    commands = _TABLE.format(table=validate_table(table))
    for network in networks:
        interface = validate_interface(network.interface)
        commands += _NETWORK.format(table=table, interface=interface, subnet=network.subnet)
    return commands


class Firewall:
    """One daemon's table. The methods block: call them from a thread."""

    def __init__(self, table: str) -> None:
        self._table = validate_table(table)
        self._nftables = Nftables()

    def apply(self, networks: Sequence[BridgedNetwork]) -> None:
        self._nftables.run(ruleset(self._table, networks))

    def remove(self) -> None:
        """Delete the table; nothing happens when there is none."""
        self._nftables.run(_REMOVE.format(table=self._table))
