"""Chains of other firewalls on this host that drop the packets of containers.

In nftables a packet passes only if every table lets it pass: somebody's `drop` outvotes our `accept`. dockerd on the
same host, for one, makes `drop` the policy of the chain FORWARD and then accepts what is its own. We do not write into
the rules of others: we tell what is so. Rules of the old kind (`iptables-legacy`) are not seen from here.
"""

import logging
from collections.abc import Collection

from msgspec import Struct

from husk.errors import SystemFault
from husk.kernel.nftables import Nftables
from husk.patterns import pattern

log = logging.getLogger(__name__)

_TABLE = pattern(r"table (\S+) (\S+) \{")
_CHAIN = pattern(r"\tchain (\S+) \{")
_DROPS = pattern(r"\t\ttype filter hook forward priority [^;]+; policy drop;")
# `inet` is for both kinds of packets; others, such as `bridge`, see none that are routed.
_FAMILIES = ("ip", "ip6", "inet")


class DropPolicy(Struct, frozen=True):
    """A chain that drops what its rules do not accept."""

    family: str
    table: str
    chain: str

    @property
    def warning(self) -> str:
        where = f"chain {self.chain} of the nftables table {self.family} {self.table}"
        return (
            f"WARNING: {where} drops forwarded packets by default: containers reach other networks, and are reached at "
            "published ports, only where its rules accept that (see docs/networks.md of Husk)"
        )


def find(chains: str) -> list[DropPolicy]:
    """Those in what `nft list chains` prints. Pure."""
    found = []
    family = table = chain = ""
    for line in chains.splitlines():
        if match := _TABLE.fullmatch(line):
            family, table = match[1], match[2]
        elif match := _CHAIN.fullmatch(line):
            chain = match[1]
        elif _DROPS.fullmatch(line) and family in _FAMILIES:
            found.append(DropPolicy(family, table, chain))
    return found


def look(interfaces: Collection[str]) -> list[DropPolicy]:
    """The policies of this host. A table with a word about one of our interfaces is none: somebody thought of us.

    Blocks: call from a thread.
    """
    try:
        nftables = Nftables()
        policies = find(nftables.run("list chains\n"))
        tables = {(o.family, o.table): nftables.run(f"list table {o.family} {o.table}\n") for o in policies}
    except SystemFault as error:
        log.debug("the rules of others cannot be looked at: %s", error)
        return []
    return [o for o in policies if not any(f'"{name}"' in tables[o.family, o.table] for name in interfaces)]
