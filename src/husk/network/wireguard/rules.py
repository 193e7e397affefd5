"""The rules for a device of WireGuard: nothing but VXLAN goes in and out there, and nothing of its address elsewhere.
Pure.

Other hosts of the swarm would otherwise reach whatever listens on this host by a way that its firewall may not know.
"""

from ipaddress import IPv6Address

from husk.network.rules import validate_table
from husk.text.interface_names import validate_interface

_TABLE = """\
add table ip6 {table}
delete table ip6 {table}
add table ip6 {table}
add chain ip6 {table} input {{ type filter hook input priority filter; policy accept; }}
add chain ip6 {table} forward {{ type filter hook forward priority filter; policy accept; }}
add chain ip6 {table} output {{ type filter hook output priority filter; policy accept; }}
add rule ip6 {table} input iifname "{interface}" udp dport != {port} drop
add rule ip6 {table} input iifname "{interface}" meta l4proto != udp drop
add rule ip6 {table} forward iifname "{interface}" drop
add rule ip6 {table} forward oifname "{interface}" drop
add rule ip6 {table} output oifname "{interface}" meta l4proto != udp drop
add rule ip6 {table} input iifname != "{interface}" ip6 daddr {own} drop
add rule ip6 {table} output oifname != "{interface}" ip6 saddr {own} drop
"""


def ruleset(table: str, interface: str, own: str, port: int) -> str:
    """Commands that bring the table to that, whatever it was; `own` is this host's address there, `port` VXLAN's."""
    return _TABLE.format(
        table=validate_table(table), interface=validate_interface(interface), own=IPv6Address(own), port=port
    )


def removal(table: str) -> str:
    return f"add table ip6 {validate_table(table)}\ndelete table ip6 {validate_table(table)}\n"
